//! `GET /apps/{pushable_key}/refusals`: what was refused before a mailbox was chosen, at either door.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{Answer, Caller, anonymous, has_just, is_moment, path, send, session, text, unlimited};
use crate::support::gateway::{Gateway, MAILBOX};

async fn refusals(gateway: &Gateway, query: &str) -> Value {
    let caller = Caller::owner(gateway).await;
    let path = format!("{}/refusals{query}", path(&gateway.app));
    caller.get(&path).await.success(200)
}

/// `POST /send` with these fields beside `pk`; answers the error code.
async fn refused(gateway: &Gateway, fields: Value) -> String {
    let (status, answer) = gateway.send(fields).await;
    assert!((400..500).contains(&status), "{answer}");
    text(&answer, "code").to_owned()
}

/// What is listed as `(door, reason, from, to)`, the newest first.
fn listed(report: &Value) -> Vec<[Option<&str>; 4]> {
    let refusals = report["refusals"].as_array().unwrap();
    let fields = ["door", "reason", "from", "to"];
    refusals
        .iter()
        .map(|refusal| fields.map(|field| refusal[field].as_str()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_reason_is_listed_and_counted() {
    let gateway = Gateway::start().await;
    let wrong = json!({ "to": "bob@example.com", "from": "ada@sandbox.example", "subject": 7 });
    assert_eq!(refused(&gateway, wrong).await, "invalid_request");
    let nobody = json!({
        "to": "bob@example.com", "from": "eve@sandbox.example", "subject": "s", "body": "b",
    });
    assert_eq!(refused(&gateway, nobody).await, "no_mailbox");
    let (key, another) = (gateway.app.send_key.expose(), "pk_another");
    assert_eq!(
        send(&gateway, key, another).await.problem().1,
        "pk_mismatch"
    );
    // Neither a wrong key nor anything that has a log row is one.
    let pk = gateway.app.pushable_key.expose();
    assert_eq!(send(&gateway, "mg_wrong", pk).await.status, 401);
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    assert_eq!(gateway.send_to("permfail@example.com").await.0, 502);

    let mut client = session(&gateway, &gateway.app.slug, key).await;
    for (content, reply) in [
        ("From: Eve <eve@sandbox.example>\r\n\r\nb\r\n", "550 5.7.1"),
        ("From: a@x.example, b@x.example\r\n\r\nb\r\n", "550 5.7.1"),
        (
            "From: ada@sandbox.example\r\nno header\r\n\r\nb\r\n",
            "550 5.6.0",
        ),
    ] {
        let told = client.submit("carol@example.com", content.as_bytes()).await;
        assert!(told.starts_with(reply), "{told}");
    }
    sqlx::query("UPDATE subscribers SET subscription_status = 'unpaid'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let blocked = json!({ "to": "bob@example.com", "subject": "s", "body": "b" });
    assert_eq!(refused(&gateway, blocked).await, "subscription_blocked");

    let report = refusals(&gateway, "").await;
    has_just(&report, vec!["refusals", "counts"]);
    let (carol, bob) = (Some("carol@example.com"), Some("bob@example.com"));
    let (rest, smtp) = (Some("rest"), Some("smtp"));
    let eve = Some("eve@sandbox.example");
    assert_eq!(
        listed(&report),
        [
            [rest, Some("subscription_blocked"), None, bob],
            [smtp, Some("malformed_message"), None, carol],
            [smtp, Some("from_not_authorized"), None, carol],
            [smtp, Some("from_not_authorized"), eve, carol],
            [rest, Some("pk_mismatch"), None, bob],
            [rest, Some("no_mailbox"), eve, bob],
            [rest, Some("invalid_request"), Some(MAILBOX), bob],
        ]
    );
    let newest = &report["refusals"][0];
    has_just(
        newest,
        vec!["id", "refused_at", "door", "reason", "from", "to"],
    );
    is_moment(text(newest, "refused_at"));
    let counts = report["counts"].as_array().unwrap();
    let total: i64 = counts.iter().map(|it| it["count"].as_i64().unwrap()).sum();
    assert_eq!(total, 7);
    let of_sender = counts
        .iter()
        .filter(|count| count["reason"] == "from_not_authorized");
    let of_sender: i64 = of_sender.map(|it| it["count"].as_i64().unwrap()).sum();
    assert_eq!(of_sender, 2);
    has_just(&counts[0], vec!["hour", "reason", "count"]);
    assert_eq!(listed(&refusals(&gateway, "?limit=2").await).len(), 2);
    let caller = Caller::owner(&gateway).await;
    for query in ["?limit=0", "?limit=101", "?limit=x"] {
        let answer = caller
            .get(&format!("{}/refusals{query}", path(&gateway.app)))
            .await;
        assert_eq!(answer.wrong_fields(), ["limit"]);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_never_more_rows_however_many_are_refused() {
    let gateway = unlimited().await;
    let replica = gateway
        .replica()
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .start()
        .await;
    let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "nobody" });
    for round in 0..2 {
        for _ in 0..150 {
            for gateway_of_call in [&gateway, &replica] {
                let request = anonymous(gateway_of_call, reqwest::Method::POST, "/send")
                    .header("x-send-key", gateway.app.send_key.expose());
                let answer = Answer::to(request.json(&body)).await;
                assert_eq!(answer.problem(), (422, "invalid_request"));
            }
        }
        // Whichever of them is asked: what the other one has not written yet comes with the next write.
        gateway
            .eventually("all counts", async |gateway| {
                let report = refusals(gateway, "?limit=100").await;
                let counts = report["counts"].as_array().unwrap();
                let total: i64 = counts.iter().map(|it| it["count"].as_i64().unwrap()).sum();
                total == 300 * (round + 1)
            })
            .await;
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM refusals")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(rows, 100);
    }
    assert_eq!(listed(&refusals(&gateway, "?limit=100").await).len(), 100);

    gateway.clock.advance(TimeDelta::days(8));
    let later = refusals(&gateway, "").await;
    assert_eq!(later, json!({ "refusals": [], "counts": [] }));
    let caller = Caller::owner(&gateway).await;
    caller.delete(&path(&gateway.app)).await.success(200);
    gateway
        .eventually("no rows of an app that is gone", async |gateway| {
            let rows: i64 = sqlx::query_scalar(
                "SELECT (SELECT count(*) FROM refusals) + (SELECT count(*) FROM refusal_counters)",
            )
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
            rows == 0
        })
        .await;
    replica.stop().await;
    gateway.stop().await;
}
