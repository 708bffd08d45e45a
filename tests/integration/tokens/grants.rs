//! Grants that die, and those that only seem to.

use mailgate_types::plugin::Plugin;
use sqlx::Row;

use super::{LAPSED, mailbox_status};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::oauth::Answer as TokenAnswer;
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_grant_disconnects_the_mailbox_and_says_so() {
    let gateway = Gateway::start().await;
    let authorization = &gateway.sandbox.authorization;
    authorization.withdraw(MAILBOX).await.unwrap();
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert_eq!(answer["code"], "provider_rejected");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("connect it again"), "{answer}");
    let logged = gateway.logged().await;
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0].0, "failed_perm");
    assert_eq!(gateway.spooled().await, 0);

    let row = sqlx::query(
        "SELECT status, disconnect_reason,
                coalesce(refresh_token_sealed, access_token_sealed) IS NULL AS forgotten
         FROM mailboxes WHERE id = $1",
    )
    .bind(gateway.mailbox.credential.0)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(row.get::<String, _>("status"), "disconnected");
    assert_eq!(row.get::<String, _>("disconnect_reason"), "invalid_grant");
    assert!(row.get::<bool, _>("forgotten"));

    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 422, "{answer}");
    assert_eq!(answer["code"], "no_mailbox");
    let mut client = SmtpClient::authenticated(&gateway).await;
    let message = format!("From: {MAILBOX}\r\nTo: bob@example.com\r\n\r\nHello");
    let reply = client.submit("bob@example.com", message.as_bytes()).await;
    let expected = "550 5.7.1 From address not authorized: no connected mailbox";
    assert!(reply.starts_with(expected), "{reply}");
    assert!(gateway.arrived().await.is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_connected_again_keeps_its_ids() {
    let gateway = Gateway::start().await;
    let authorization = &gateway.sandbox.authorization;
    authorization.withdraw(MAILBOX).await.unwrap();
    let (status, _) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 502);
    let again = gateway.connect(None, Plugin::A, MAILBOX).await;
    assert_eq!(again.credential, gateway.mailbox.credential);
    assert_eq!(again.user_key, gateway.mailbox.user_key);
    // Its first token, and then one that is refreshed.
    for _ in 0..2 {
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
        gateway.clock.advance(LAPSED);
    }
    assert_eq!(gateway.arrived().await.len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_grant_in_passing_disconnects_nobody() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in
        .tokens
        .queue(TokenAnswer::error(400, "invalid_grant"));
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1", "refresh-1"]);
    assert_eq!(mailbox_status(&gateway).await, "active");
    gateway.stop().await;
}
