//! A token that the server of a submission refuses.

use super::mailbox_status;
use crate::support::gateway::Gateway;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_provider_refuses_is_refreshed_and_the_message_sent_once() {
    let gateway = Gateway::start().await;
    let authorization = &gateway.sandbox.authorization;
    authorization.expire_access_tokens().await.unwrap();
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(authorization.refreshes(), 1);
    assert_eq!(gateway.arrived().await.len(), 1);
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_challenge_of_a_refused_token_is_answered_with_an_empty_line() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    submission.once(Stage::Auth, Answer::token_refused());
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(submission.answers_to_challenges(), [""]);
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1"]);
    let messages = submission.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].token, "access-2");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_that_is_refused_too_ends_the_message_and_not_the_mailbox() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    submission.always(Stage::Auth, Answer::token_refused());
    submission.always(Stage::AuthEnd, Answer::reply("535 5.7.8 Not on Sundays"));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("535 5.7.8 Not on Sundays"), "{answer}");
    assert_eq!(stand_in.tokens.refresh_tokens().len(), 1);
    assert_eq!(submission.count("AUTH"), 2);
    assert_eq!(mailbox_status(&gateway).await, "active");
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_without_smtp_submission_needs_no_other_token() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let words = "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled";
    stand_in
        .submission
        .always(Stage::Auth, Answer::reply(words));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert!(
        answer["detail"].as_str().unwrap().contains(words),
        "{answer}"
    );
    assert!(stand_in.tokens.refresh_tokens().is_empty());
    assert_eq!(stand_in.submission.count("AUTH"), 1);
    assert_eq!(mailbox_status(&gateway).await, "active");
    gateway.stop().await;
}
