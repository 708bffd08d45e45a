//! What a submission that ends in the middle means: before the dot nothing was sent, behind it
//! nobody can know.

use super::{advance_to_next_attempt, emptied, logged_once};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, ADDRESS, StandIn};

const MAY_HAVE_ARRIVED: &str = "it may have arrived, and was not sent again";

/// More than the sockets between the two take without a reader.
const LARGE: usize = 12_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_is_a_failure_that_says_so() {
    let builder = Gateway::builder().set("SENDING__DATA_SECONDS", 1);
    let (stand_in, gateway) = StandIn::with(builder).await;
    for (number, answer) in (1..).zip([
        Answer::Close,
        Answer::Hang,
        // Neither a promise to keep the message nor a refusal.
        Answer::reply("251 2.1.5 Will forward"),
        Answer::reply("200 whatever"),
        Answer::reply("354 Go on"),
        Answer::reply("what?"),
    ]) {
        stand_in.submission.once(Stage::Content, answer.clone());
        let (status, body) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 502, "{answer:?}: {body}");
        assert_eq!(body["code"], "outcome_unknown");
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains(MAY_HAVE_ARRIVED), "{answer:?}: {detail}");
        assert_eq!(stand_in.submission.messages().len(), number, "{answer:?}");
        let logged = gateway.logged().await;
        assert_eq!(logged.len(), number);
        for (status, error) in logged {
            assert_eq!(status, "failed_perm");
            assert!(error.unwrap().contains(MAY_HAVE_ARRIVED));
        }
        assert_eq!(gateway.spooled().await, 0);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_is_tried_again_where_the_setting_says_so() {
    let builder = Gateway::builder().set("SENDING__UNVERIFIABLE", "retry");
    let (stand_in, gateway) = StandIn::with(builder).await;
    stand_in.submission.once(Stage::Content, Answer::Close);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(logged_once(&gateway).await.0, "failed_temp");
    advance_to_next_attempt(&gateway).await;
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].content, messages[1].content);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_break_before_the_dot_is_temporary() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for (number, stage) in (1..).zip([
        Stage::Greeting,
        Stage::Hello,
        Stage::StartTls,
        Stage::EncryptedHello,
        Stage::Auth,
        Stage::Mail,
        Stage::Rcpt,
        Stage::Data,
    ]) {
        stand_in.submission.once(stage, Answer::Close);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{stage:?}: {answer}");
        assert_eq!(answer["status"], "failed_temp");
        assert!(!answer["error"].as_str().unwrap().is_empty());
        assert_eq!(gateway.spooled().await, number, "{stage:?}");
    }
    assert!(stand_in.submission.messages().is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_break_within_the_message_is_temporary() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in.submission.once(Stage::Body, Answer::Close);
    let mut content = format!("From: {ADDRESS}\r\n\r\n");
    while content.len() < LARGE {
        content.push_str("a line of a message that is long\r\n");
    }
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client.submit("bob@example.com", content.as_bytes()).await;
    assert!(reply.contains("queued"), "{reply}");
    assert!(stand_in.submission.messages().is_empty());
    advance_to_next_attempt(&gateway).await;
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].content.len() > LARGE);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_before_the_dot_is_temporary() {
    let builder = Gateway::builder().set("SENDING__COMMAND_SECONDS", 1);
    let (stand_in, gateway) = StandIn::with(builder).await;
    for stage in [Stage::Greeting, Stage::Auth, Stage::Data] {
        stand_in.submission.once(stage, Answer::Hang);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{stage:?}: {answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains("longer than 1 s"), "{stage:?}: {error}");
    }
    assert!(stand_in.submission.messages().is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_250_behind_the_dot_is_success() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for reply in [
        "250",
        "250 ",
        "250-2.0.0 one\r\n250-two\r\n250 three",
        "250-\r\n250",
    ] {
        stand_in
            .submission
            .once(Stage::Content, Answer::reply(reply));
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{reply:?}: {answer}");
    }
    assert_eq!(stand_in.submission.messages().len(), 4);
    gateway.stop().await;
}

/// A reply that belongs to no command must not be taken for the next one's.
#[tokio::test(flavor = "multi_thread")]
async fn what_answers_nothing_is_no_success() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for (stage, reply) in [
        (Stage::Data, "250 2.0.0 OK"),
        (Stage::Data, "200 fine"),
        (Stage::Data, "334 "),
        (Stage::Data, "354 Go on\r\n250 2.0.0 OK queued already"),
        (Stage::Mail, "354 Go on"),
        (Stage::Rcpt, "354 Go on"),
        (Stage::Rcpt, "250 2.1.5 OK\r\n250 2.1.5 OK"),
        (Stage::Auth, "235 2.7.0 Accepted\r\n250 2.1.0 OK"),
        (
            Stage::Auth,
            "235 2.7.0 Accepted\r\n250 a\r\n250 b\r\n354 c\r\n250 2.0.0 OK queued",
        ),
    ] {
        stand_in.submission.once(stage, Answer::reply(reply));
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{stage:?} {reply}: {answer}");
        assert_eq!(answer["status"], "failed_temp", "{stage:?} {reply}");
        assert!(
            stand_in.submission.messages().is_empty(),
            "{stage:?} {reply}"
        );
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_behind_the_dot_are_told_in_the_providers_words() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for (reply, expected, told) in [
        ("451 4.3.0 Not now", 202, "451 4.3.0 Not now"),
        (
            "550 5.7.1 Looks like spam",
            502,
            "550 5.7.1 Looks like spam",
        ),
        (
            "554-5.2.0 one\r\n554-5.2.0 two\r\n554 5.2.0 three",
            502,
            "554 5.2.0 one 5.2.0 two 5.2.0 three",
        ),
        ("552", 502, "552"),
    ] {
        stand_in
            .submission
            .once(Stage::Content, Answer::reply(reply));
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, expected, "{reply}: {answer}");
        let field = if expected == 202 { "error" } else { "detail" };
        let error = answer[field].as_str().unwrap();
        assert!(error.contains(told), "{reply}: {error}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_up_behind_its_refusal_has_refused_all_the_same() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for (stage, reply, expected) in [
        (Stage::Greeting, "554 5.3.2 No service here", 202),
        (Stage::Greeting, "421 4.3.2 Too many connections", 202),
        (Stage::Auth, "454 4.7.0 Too many log-ins", 202),
        (Stage::Mail, "550 5.1.8 Sender is blocked", 502),
        (Stage::Mail, "421 4.7.0 Too much mail", 202),
        (Stage::Rcpt, "550 5.1.1 No such user", 502),
        (Stage::Rcpt, "421 4.7.0 Too many recipients", 202),
        (Stage::Data, "554 5.5.1 No valid recipients", 502),
        (Stage::Content, "554 5.6.0 Message refused", 502),
        (Stage::Content, "421 4.3.0 Going down", 202),
    ] {
        let answer = Answer::reply_and_close(reply);
        stand_in.submission.once(stage, answer);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, expected, "{stage:?} {reply}: {answer}");
        let field = if expected == 202 { "error" } else { "detail" };
        let error = answer[field].as_str().unwrap();
        assert!(error.contains(reply), "{stage:?} {reply}: {error}");
        stand_in.submission.close_connections();
    }
    gateway.stop().await;
}
