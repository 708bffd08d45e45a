//! Connections to the provider: encrypted and trusted before a token leaves, kept between messages,
//! replaced when they have died.

use chrono::TimeDelta;

use crate::support::gateway::Gateway;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, StandIn};

async fn send_well(gateway: &Gateway) {
    let (status, answer) = stand_in::send(gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
}

/// The send fails for now with an error that holds `told`, and no token has left.
async fn nothing_leaves(stand_in: &StandIn, gateway: &Gateway, told: &str) {
    let (status, answer) = stand_in::send(gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains(told), "{error}");
    assert_eq!(stand_in.submission.count("AUTH"), 0);
    assert_eq!(stand_in.submission.count("MAIL"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_leaves_under_tls_only() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    send_well(&gateway).await;
    for command in stand_in.submission.commands() {
        let clear = command.line.starts_with("EHLO ") || command.line == "STARTTLS";
        assert!(command.encrypted || clear, "{command:?}");
    }
    assert_eq!(stand_in.submission.count("EHLO"), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_starttls_gets_nothing() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    for hello in [
        "250 stand-in",
        "250-STARTTLS\r\n250 AUTH XOAUTH2",
        "250-stand-in\r\n250 XSTARTTLS",
    ] {
        submission.once(Stage::Hello, Answer::reply(hello));
        nothing_leaves(&stand_in, &gateway, "offers no STARTTLS").await;
    }
    submission.once(Stage::StartTls, Answer::reply("454 4.7.0 TLS is out"));
    nothing_leaves(&stand_in, &gateway, "454 4.7.0 TLS is out").await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_between_starttls_and_tls_ends_the_connection() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for injected in [
        "220 2.0.0 Go on\r\n250 stand-in",
        "220 2.0.0 Go on\r\n2",
        "220 2.0.0 Go on\r\n250-stand-in\r\n250 AUTH XOAUTH2 PLAIN",
    ] {
        let answer = Answer::reply(injected);
        stand_in.submission.once(Stage::StartTls, answer);
        nothing_leaves(&stand_in, &gateway, "between STARTTLS and TLS").await;
    }
    send_well(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_vouches_for_gets_no_token() {
    let stand_in = StandIn::start().await;
    let builder = Gateway::builder().plugins(stand_in.plugins_without_authority());
    let gateway = builder.start().await;
    stand_in.connect(&gateway).await;
    nothing_leaves(&stand_in, &gateway, "no trusted TLS connection").await;
    assert_eq!(stand_in.submission.count("STARTTLS"), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_in_a_row_share_a_connection() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for _ in 0..5 {
        send_well(&gateway).await;
    }
    // A refusal leaves the connection good.
    let submission = &stand_in.submission;
    submission.once(Stage::Rcpt, Answer::reply("550 5.1.1 No such user"));
    let (status, _) = stand_in::send(&gateway, "nobody@example.com").await;
    assert_eq!(status, 502);
    send_well(&gateway).await;
    assert_eq!(submission.connections(), 1);
    assert_eq!(submission.count("AUTH"), 1);
    assert_eq!(submission.messages().len(), 6);

    // What an old token has opened isn't used with a new one.
    gateway.clock.advance(TimeDelta::hours(2));
    send_well(&gateway).await;
    send_well(&gateway).await;
    assert_eq!(submission.connections(), 2);
    let last = submission.messages().pop().unwrap();
    assert_eq!((last.connection, last.token.as_str()), (2, "access-2"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_that_has_died_is_replaced() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    send_well(&gateway).await;
    submission.close_connections();
    send_well(&gateway).await;
    for answer in [
        Answer::reply("421 4.4.2 Idle for too long"),
        Answer::reply_and_close("421 4.4.2 Idle for too long"),
        Answer::Close,
    ] {
        submission.once(Stage::Mail, answer);
        send_well(&gateway).await;
    }
    assert_eq!(submission.connections(), 5);
    let messages = submission.messages();
    let connections = messages.iter().map(|message| message.connection);
    assert_eq!(connections.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    for (number, message) in messages.iter().enumerate() {
        let others = &messages[number + 1..];
        assert!(others.iter().all(|other| other.content != message.content));
    }
    assert_eq!(gateway.logged().await, vec![("sent".to_owned(), None); 5]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_token_lapsed_meanwhile_costs_a_refresh() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    send_well(&gateway).await;
    let words = "530 5.7.0 Authentication required";
    submission.once(Stage::Mail, Answer::reply(words));
    send_well(&gateway).await;
    assert_eq!(stand_in.tokens.refresh_tokens().len(), 1);
    assert_eq!(submission.connections(), 2);
    let messages = submission.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1].token, "access-2");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_pipelining_gets_one_command_at_a_time() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    let hello = Answer::reply("250-stand-in\r\n250 AUTH XOAUTH2");
    submission.always(Stage::EncryptedHello, hello);
    send_well(&gateway).await;
    // Refused at MAIL, it is asked nothing more but to forget it.
    submission.once(Stage::Mail, Answer::reply("550 5.7.1 Not you"));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert_eq!(submission.count("MAIL"), 2);
    assert_eq!(submission.count("RCPT"), 1);
    assert_eq!(submission.count("RSET"), 1);
    let mail = submission.commands();
    let mail = mail.iter().find(|command| command.line.starts_with("MAIL"));
    // Neither SIZE nor BODY, which it hasn't offered.
    let expected = format!("MAIL FROM:<{}>", stand_in::ADDRESS);
    assert_eq!(mail.unwrap().line, expected);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_wants_a_message_whose_recipient_it_refused_gets_none_of_it() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    submission.once(Stage::Rcpt, Answer::reply("550 5.1.1 No such user"));
    submission.once(Stage::Data, Answer::reply("354 Go on all the same"));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert!(submission.messages().is_empty());
    // The one that still waits for content is given up.
    send_well(&gateway).await;
    assert_eq!(submission.connections(), 2);
    // One that refuses DATA too is kept.
    submission.once(Stage::Rcpt, Answer::reply("550 5.1.1 No such user"));
    let (status, _) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502);
    send_well(&gateway).await;
    assert_eq!(submission.connections(), 2);
    assert_eq!(submission.messages().len(), 2);
    gateway.stop().await;
}
