//! Notices through a real Postfix with Dovecot's SASL, and into the sandbox's own inbox.

use mail_parser::MessageParser;
use toml::{Table, Value};

use super::{payment_failed, settled, tell};
use crate::peers::{APP_PASSWORD, Provider};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn postfix_takes_them_with_both_kinds_of_tls() {
    let provider = Provider::start("http://127.0.0.1:9/oauth/callback").await;
    let sender = "billing@provider.test";
    for (round, tls, port) in [
        (1, "starttls", provider.starttls_port),
        (2, "implicit", provider.tls_port),
    ] {
        let text = |name: &str, value: &str| (name.to_owned(), Value::String(value.to_owned()));
        let relay = Table::from_iter([
            text("host", &provider.smtp_host),
            ("port".to_owned(), Value::Integer(port.into())),
            text("tls", tls),
            text("username", sender),
            text("password", APP_PASSWORD),
            text("from", &format!("Mailgate <{sender}>")),
            text("ca_file", &provider.ca_file.display().to_string()),
        ]);
        let gateway = Gateway::builder().relay(relay).start().await;
        sqlx::query("UPDATE subscribers SET email = 'owner@provider.test', label = 'Grüße'")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        assert!(tell(&gateway, "evt_1", &payment_failed()).await);
        settled(&gateway, &["sent"]).await;
        let delivered = provider
            .wait_for_messages("owner@provider.test", round)
            .await;
        let parsed = MessageParser::new()
            .parse(delivered.last().unwrap())
            .unwrap();
        let subject = "Payment failed: sending is blocked for \"Grüße\"";
        assert_eq!(parsed.subject(), Some(subject));
        assert!(parsed.body_text(0).unwrap().contains("5.00 EUR"));
        assert!(parsed.body_html(0).unwrap().contains("5.00 EUR"));

        sqlx::query("UPDATE subscribers SET email = 'permfail@provider.test'")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        assert!(tell(&gateway, "evt_2", &payment_failed()).await);
        settled(&gateway, &["sent", "given_up"]).await;
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_shows_them() {
    let gateway = Gateway::builder().billed().start().await;
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    settled(&gateway, &["sent"]).await;
    let arrived = gateway.sandbox.inbox.list(10);
    assert_eq!(arrived.len(), 1);
    assert_eq!(arrived[0].envelope_to, ["owner@example.com"]);
    assert_eq!(arrived[0].mailbox, "mailgate@sandbox.example");
    gateway.stop().await;
}
