//! Messages whose words the database refuses: by a value (SQLSTATE class 22), a constraint (23) or the limit
//! of an index row (54).

use mailgate_types::clock::Clock;
use mailgate_types::ids::LogId;
use serde_json::json;

use super::{alter, cjk, listen, log, told};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

async fn send(gateway: &Gateway, subject: &str) -> (u16, serde_json::Value) {
    let fields = json!({ "to": "bob@example.com", "subject": subject, "body": "x" });
    gateway.send(fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_is_logged_without_words_and_delays_no_other() {
    let gateway = Gateway::start().await;
    listen(&gateway).await;
    let long = cjk(998);
    for (table, change, subject) in [
        (
            "email_logs",
            "ALTER TABLE email_logs ADD CONSTRAINT plain CHECK (subject <> 'constraint')",
            "constraint",
        ),
        (
            "email_logs",
            "CREATE INDEX divided ON email_logs ((1 / (length(subject) - 5)))",
            "value",
        ),
        (
            "email_logs",
            "CREATE INDEX indexed ON email_logs (subject)",
            &long,
        ),
        (
            "spool",
            "ALTER TABLE spool ADD CONSTRAINT plain CHECK (subject <> 'at its opening')",
            "at its opening",
        ),
    ] {
        alter(&gateway, change).await;
        let sends = (0..24).map(|number| {
            let gateway = &gateway;
            async move {
                let subject = if number % 8 == 3 { subject } else { "fine" };
                let (status, answer) = send(gateway, subject).await;
                assert_eq!(status, 200, "{table} {subject}: {answer}");
            }
        });
        futures_util::future::join_all(sends).await;
        // All of it is written by the time that it is answered: nothing is tried again.
        assert_eq!(gateway.spooled().await, 0, "{change}");
        let logged = log(&gateway).await;
        assert_eq!(logged.len(), 24, "{change}");
        assert!(
            logged
                .iter()
                .all(|(_, status, error)| status == "sent" && error.is_none())
        );
        let bare = logged.iter().filter(|(subject, ..)| subject.is_empty());
        assert_eq!(bare.count(), 3, "{change}");
        let fine = logged.iter().filter(|(subject, ..)| subject == "fine");
        assert_eq!(fine.count(), 21, "{change}");
        let events = told(&gateway, "email.sent").await;
        assert_eq!(events.len(), 24, "each is told of once: {change}");
        for event in events {
            let data = &event["data"];
            assert_eq!(data["from_address"], MAILBOX);
            assert_eq!(data["subject"] == "", data["message_id"].is_null());
        }
        for statement in [
            "TRUNCATE email_logs, webhook_messages, webhook_queue",
            "DROP INDEX IF EXISTS divided, indexed",
        ] {
            alter(&gateway, statement).await;
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_refused_message_is_answered_by_its_log_row() {
    let gateway = Gateway::start().await;
    alter(
        &gateway,
        "ALTER TABLE email_logs ADD CONSTRAINT plain CHECK (subject <> 'refused')",
    )
    .await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let content = format!(
        "From: {MAILBOX}\r\nSubject: refused\r\nMessage-ID: <k@x>\r\nIdempotency-Key: one\r\n\r\nHi\r\n"
    );
    for _ in 0..2 {
        let reply = client.submit("bob@example.com", content.as_bytes()).await;
        assert!(reply.contains("sent via plugin_a"), "{reply}");
    }
    assert_eq!(gateway.arrived().await.len(), 1);
    assert_eq!(log(&gateway).await.len(), 1);
    gateway.stop().await;
}

/// A row that an earlier release took in, which had no bound: it neither stays nor holds the log's days.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_without_a_bound_comes_to_an_end() {
    let gateway = Gateway::start().await;
    let id = LogId::at(gateway.clock.now());
    sqlx::query(
        "INSERT INTO spool (id, app_id, credential_id, from_address, to_address, cc_addresses,
             bcc_addresses, subject, plugin, message_id, size_bytes, has_attachments, recipients,
             smtputf8, opened_at, state, lease_until)
         VALUES ($1, $2, $3, $4, 'bob@example.com', '{}', '{}', 'x', 'plugin_a', $5, 10, false,
             '{bob@example.com}', false, $6, 'open', $6 - interval '1 hour')",
    )
    .bind(id.0)
    .bind(gateway.app.id.0)
    .bind(gateway.mailbox.credential.0)
    .bind(MAILBOX)
    .bind(format!("<{}@x>", cjk(4_000)))
    .bind(gateway.clock.now())
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    // A process that starts looks for what others have left.
    let replica = gateway.replica().start().await;
    replica
        .eventually("its end", async |replica| replica.spooled().await == 0)
        .await;
    let logged = log(&gateway).await;
    assert_eq!(
        (logged[0].0.as_str(), logged[0].1.as_str()),
        ("", "failed_perm")
    );
    replica.stop().await;
    gateway.stop().await;
}
