//! A token endpoint whose failures are not the mailbox's.

use tokio_util::sync::CancellationToken;

use super::{LAPSED, mailbox_status};
use crate::support::gateway::Gateway;
use crate::support::stand_in::oauth::Answer as TokenAnswer;
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_are_not_the_mailboxs_queue_the_mail_and_disconnect_nobody() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let elsewhere = format!("{}/token", stand_in.tokens.url());
    let cases = [
        (TokenAnswer::error(401, "invalid_client"), "invalid_client"),
        (
            TokenAnswer::error(400, "unauthorized_client"),
            "unauthorized_client",
        ),
        (TokenAnswer::error(500, "invalid_grant"), "500"),
        (TokenAnswer::new(503, "<html>busy</html>"), "503"),
        (TokenAnswer::new(429, ""), "429"),
        (TokenAnswer::new(200, "<html>hello</html>"), "malformed"),
        (TokenAnswer::new(200, "{}"), "malformed"),
        // Followed, it would bring good tokens; but the secret isn't shown to whoever is named.
        (TokenAnswer::redirect(elsewhere), "307"),
    ];
    for (number, (answer, told)) in (1..).zip(cases) {
        stand_in.tokens.queue(answer);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{told}: {answer}");
        assert_eq!(answer["status"], "failed_temp", "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(told), "{answer}");
        assert_eq!(stand_in.tokens.refresh_tokens().len(), number, "{told}");
        assert_eq!(mailbox_status(&gateway).await, "active", "{told}");
    }
    stand_in.tokens.close();
    gateway
        .eventually("the closed port", async |gateway| {
            let (status, answer) = stand_in::send(gateway, "bob@example.com").await;
            assert_eq!(status, 202, "{answer}");
            let error = answer["error"].as_str().unwrap();
            error.contains("can't be reached") && error.contains("refused")
        })
        .await;
    assert_eq!(mailbox_status(&gateway).await, "active");
    assert_eq!(stand_in.submission.connections(), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_token_endpoint_is_not_waited_for_without_end() {
    let builder = Gateway::builder().set("SENDING__OAUTH_SECONDS", 1);
    let (stand_in, gateway) = StandIn::with(builder).await;
    gateway.clock.advance(LAPSED);
    let late = TokenAnswer::error(400, "invalid_grant").held(&CancellationToken::new());
    stand_in.tokens.queue(late);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    // Nobody is kept from trying again.
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    gateway.stop().await;
}
