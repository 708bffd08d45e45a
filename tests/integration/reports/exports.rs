//! The log as CSV, its cursors by REST, and what apps attach to their messages.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Reader;
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

/// Writes rows of the gateway's app into the log, with texts of this length.
async fn fill(gateway: &Gateway, rows: i32, length: i32) {
    sqlx::query(
        "INSERT INTO email_logs (id, app_id, credential_id, from_address, to_address, cc_addresses,
                                 bcc_addresses, subject, plugin, status, size_bytes,
                                 has_attachments, sent_at, subscriber_id)
         SELECT overlay(overlay(lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0')
                                || substr(md5(n::text), 1, 20) PLACING '7' FROM 13)
                        PLACING '8' FROM 17)::uuid,
                apps.id, apps.id, 'ada@example.com', 'bob@example.com', '{}', '{}',
                repeat('x', $3), 'plugin_a', 'sent', 1, false, now(), subscriber_id
         FROM apps, generate_series(1, $2) AS n WHERE apps.id = $1",
    )
    .bind(gateway.app.id.0)
    .bind(rows)
    .bind(length)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
}

impl Reader<'_> {
    async fn accepting(&self, path: &str, accept: &str) -> reqwest::Response {
        let url = format!("{}{path}", self.gateway.daemon.base_url);
        let request = self.gateway.http.get(url).header(ACCEPT, accept);
        let request = request.header("x-api-secret", &self.secret);
        request.send().await.unwrap()
    }

    /// A connection that has asked for the CSV, and reads nothing of it.
    async fn asking(&self) -> TcpStream {
        let mut socket = TcpStream::connect(self.gateway.daemon.http_address)
            .await
            .unwrap();
        let request = format!(
            "GET /logs HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\nX-Api-Secret: {}\r\n\r\n",
            self.secret
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_rows_as_csv() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    for subject in ["=1+1", "a \"b\", c;=1", "plain"] {
        let fields = json!({ "to": "bob@example.com", "subject": subject, "body": "x" });
        assert_eq!(gateway.send(fields).await.0, 200);
    }
    fill(&gateway, 3_000, 10).await;
    let answer = reader
        .accepting("/logs?to_address=BOB@example.com", "text/csv")
        .await;
    assert_eq!(answer.status(), 200);
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        header("content-type"),
        "text/csv; charset=utf-8; header=present"
    );
    assert!(header("content-disposition").starts_with("attachment; filename=\"logs-2"));
    assert_eq!(
        (header("vary"), header("cache-control")),
        ("Accept".into(), "no-store".into())
    );
    let text = answer.text().await.unwrap();
    let mut lines = text.split_terminator("\r\n");
    let names = "id,app_id,app_name,oauth_credential_id,from_address,to_address,subject,plugin,\
                 status,error_message,message_id,size_bytes,sent_at,send_at,bounced";
    assert_eq!(lines.next(), Some(names));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 3_003);
    for subject in [",\"'=1+1\",", ",\"a \"\"b\"\", c;'=1\",", ",plain,"] {
        assert_eq!(
            lines.iter().filter(|line| line.contains(subject)).count(),
            1,
            "{subject}"
        );
    }
    let mut ids: Vec<&str> = lines.iter().map(|line| &line[..30]).collect();
    assert!(ids.is_sorted_by(|one, other| one > other));
    ids.dedup();
    assert_eq!(ids.len(), 3_003);
    let none = reader.accepting("/logs?subject=nothing", "text/csv").await;
    assert_eq!(none.text().await.unwrap(), format!("{names}\r\n"));

    for (query, field) in [
        ("limit=1", "limit"),
        ("offset=0", "offset"),
        ("cursor=x", "cursor"),
    ] {
        let refused = reader
            .accepting(&format!("/logs?{query}"), "text/csv")
            .await;
        assert_eq!(refused.status(), 422);
        let body: Value = refused.json().await.unwrap();
        assert_eq!(body["errors"][0]["field"], field);
    }
    let refused = reader.accepting("/logs", "application/json;q=0").await;
    assert_eq!(refused.status(), 406);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["code"], "not_acceptable");
    let json = reader
        .accepting("/logs?limit=1", "text/csv;q=0.5, */*;q=0.8")
        .await;
    assert_eq!(
        (
            json.headers()["vary"].to_str().unwrap(),
            json.status().as_u16()
        ),
        ("Accept", 200)
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_is_not_taken_holds_nothing_and_one_that_fails_breaks_off() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    // Far more than buffers hold.
    fill(&gateway, 40_000, 900).await;
    let mut slow = reader.asking().await;
    let mut first = vec![0; 1_000];
    slow.read_exact(&mut first).await.unwrap();
    assert!(
        first.starts_with(b"HTTP/1.1 200 "),
        "{}",
        String::from_utf8_lossy(&first)
    );
    let second = reader.accepting("/logs", "text/csv").await;
    assert_eq!(second.status(), 429);
    let body: Value = second.json().await.unwrap();
    assert_eq!(body["code"], "export_in_progress");
    let other = Reader::other(&gateway).await;
    assert_eq!(other.accepting("/logs", "text/csv").await.status(), 200);
    // It has come to rest, and no transaction of its is open.
    gateway
        .eventually("nothing of the database is held", async |gateway| {
            let open: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()
                       AND application_name = 'mailgate' AND xact_start IS NOT NULL",
            )
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
            open == 0
        })
        .await;
    let before = reader.ask(Method::GET, "/logs?limit=1").await;
    assert_eq!(before.0, 200);

    sqlx::query("ALTER TABLE email_logs RENAME TO email_logs_away")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let mut rest = Vec::new();
    let taken = tokio::time::timeout(Duration::from_secs(20), slow.read_to_end(&mut rest)).await;
    // The chunk that ends a whole answer doesn't come.
    assert!(taken.is_ok(), "the connection stays open");
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    sqlx::query("ALTER TABLE email_logs_away RENAME TO email_logs")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway
        .eventually("there is a turn again", async |_| {
            reader
                .accepting("/logs?log_id=log_01h2xcejqtf2nbrexx3vqjhp41", "text/csv")
                .await
                .status()
                == 200
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_by_cursor() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    fill(&gateway, 25, 5).await;
    gateway.daemon.pool.acquire().await.unwrap();
    let mut found = Vec::new();
    let mut path = "/logs?limit=10&to_address=bob@example.com".to_owned();
    let mut cursors = Vec::new();
    loop {
        let page = reader.get(&path).await;
        assert_eq!(
            (&page["total"], &page["searched_until"]),
            (&Value::Null, &Value::Null)
        );
        let logs = page["logs"].as_array().unwrap().iter();
        found.extend(logs.map(|log| log["id"].as_str().unwrap().to_owned()));
        assert_eq!(page["has_more"], json!(page["next_cursor"].is_string()));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        cursors.push(cursor.to_owned());
        path = format!("/logs?limit=10&to_address=bob@example.com&cursor={cursor}");
    }
    assert_eq!(found.len(), 25);
    assert!(found.is_sorted_by(|one, other| one > other));
    let cursor = &cursors[0];
    for (query, fields) in [
        (
            format!("to_address=bob@example.com&offset=0&cursor={cursor}"),
            vec!["cursor"],
        ),
        (
            format!("to_address=bob@example.com&cursor={cursor}x"),
            vec!["cursor"],
        ),
        (
            format!("to_address=carol@example.com&cursor={cursor}"),
            vec!["cursor"],
        ),
        (format!("cursor={cursor}"), vec!["cursor"]),
        ("to_address=bob".to_owned(), vec!["to_address"]),
        (
            "subject=&user_id=&message_id=".to_owned(),
            vec!["message_id", "user_id", "subject"],
        ),
        (
            "log_id=x&credential_id=x".to_owned(),
            vec!["log_id", "credential_id"],
        ),
        ("subject=x&offset=10001".to_owned(), vec!["offset"]),
    ] {
        assert_eq!(
            reader.wrong_fields(&format!("/logs?{query}")).await,
            fields,
            "{query}"
        );
    }
    let other = Reader::other(&gateway).await;
    let path = format!("/logs?to_address=bob@example.com&cursor={cursor}");
    assert_eq!(other.wrong_fields(&path).await, ["cursor"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one walk, step by step")]
async fn metadata_is_in_the_log_and_in_the_events() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let metadata = json!({ "Order.ID": "4711", "note": "Gr\u{fc}\u{df}e" });
    let message = |to: &str, metadata: &Value| json!({ "to": to, "subject": "x", "body": "x", "metadata": metadata });
    let (status, sent) = gateway.send(message("bob@example.com", &metadata)).await;
    assert_eq!(status, 200, "{sent}");
    let (status, deferred) = gateway
        .send(message("tempfail@example.com", &metadata))
        .await;
    assert_eq!(status, 202, "{deferred}");
    let (status, plain) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{plain}");
    let mut client = SmtpClient::authenticated(&gateway).await;
    let content = format!(
        "From: {MAILBOX}\r\nTo: bob@example.com\r\nX-Mailgate-Metadata-Order.ID: 4711\r\n\
         X-Mailgate-Metadata-note: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nSubject: x\r\n\r\nx\r\n"
    );
    let reply = client.submit("bob@example.com", content.as_bytes()).await;
    let by_smtp = reply.split(' ').nth(2).unwrap_or_default().to_owned();
    assert!(by_smtp.starts_with("log_"), "{reply}");
    let twice = content.replace("note: ", "order.id: ");
    let reply = client.submit("bob@example.com", twice.as_bytes()).await;
    assert!(
        reply.starts_with("550 5.6.0 X-Mailgate-Metadata-"),
        "{reply}"
    );

    for (id, expected) in [
        (sent["log_id"].as_str().unwrap(), &metadata),
        (deferred["log_id"].as_str().unwrap(), &metadata),
        (plain["log_id"].as_str().unwrap(), &json!({})),
        (&by_smtp, &metadata),
    ] {
        assert_eq!(
            reader.get(&format!("/logs/{id}")).await["metadata"],
            *expected,
            "{id}"
        );
    }
    let bodies: Vec<String> = sqlx::query_scalar("SELECT body FROM webhook_messages ORDER BY id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    let told: Vec<Value> = (bodies.iter())
        .map(|body| serde_json::from_str::<Value>(body).unwrap())
        .filter(|body| body["event"].as_str().unwrap().starts_with("email."))
        .collect();
    assert_eq!(told.len(), 4);
    for event in &told {
        let data = &event["data"];
        let expected = (data["log_id"] != plain["log_id"]).then_some(&metadata);
        assert_eq!(data.get("metadata"), expected, "{event}");
    }
    for raw in gateway.arrived().await {
        let raw = String::from_utf8_lossy(&raw).to_ascii_lowercase();
        assert!(
            !raw.contains("x-mailgate-metadata") && !raw.contains("4711"),
            "{raw}"
        );
    }

    // What waits keeps it to its end.
    gateway.clock.advance(chrono::TimeDelta::days(6));
    gateway
        .eventually("its last attempt", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    let last: String =
        sqlx::query_scalar("SELECT body FROM webhook_messages ORDER BY id DESC LIMIT 1")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(
        (&last["event"], &last["data"]["metadata"]),
        (&json!("email.failed_perm"), &metadata)
    );
    let path = format!("/logs/{}", deferred["log_id"].as_str().unwrap());
    assert_eq!(reader.get(&path).await["metadata"], metadata);

    let many: Value = (0..21)
        .map(|number| (format!("k{number}"), json!("x")))
        .collect();
    for (given, field) in [
        (many, "metadata"),
        (json!("x"), "metadata"),
        (json!({ "a b": "x" }), "metadata.a b"),
        (json!({ "a": 1 }), "metadata.a"),
        (json!({ "a": "x", "A": "y" }), "metadata.a"),
        (json!({ "a": "x".repeat(501) }), "metadata.a"),
        (json!({ "a": "x\ny" }), "metadata.a"),
    ] {
        let (status, body) = gateway.send(message("bob@example.com", &given)).await;
        assert_eq!(
            (status, &body["code"]),
            (422, &json!("invalid_request")),
            "{given}: {body}"
        );
        let named = body["errors"].as_array().unwrap().iter();
        assert!(
            named.map(|it| &it["field"]).any(|it| it == field),
            "{given}: {body}"
        );
    }
    let headers = json!({ "X-Mailgate-Metadata-a": "x" });
    let refused =
        json!({ "to": "bob@example.com", "subject": "x", "body": "x", "headers": headers });
    assert_eq!(gateway.send(refused).await.0, 422);
    gateway.stop().await;
}
