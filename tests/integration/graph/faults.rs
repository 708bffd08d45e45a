//! What answers mean that aren't the awaited one: never a message counted as sent that wasn't, never
//! one sent twice.

use chrono::TimeDelta;
use mailgate_types::clock::Clock;

use super::{next_attempt, send, submit, try_again};
use crate::support::gateway::Gateway;
use crate::support::graph_stand_in::{ADDRESS, Call, Fault, GraphStandIn, READ_WRITE, SEND_ONLY};

#[tokio::test(flavor = "multi_thread")]
async fn an_unclear_answer_to_what_was_sent_is_cleared_up() {
    let builder = Gateway::builder().set("SENDING__DATA_SECONDS", 2);
    let (stand_in, gateway) = GraphStandIn::with(READ_WRITE, builder).await;
    for (number, fault) in (1..).zip([
        Fault::error(504, "UnknownError"),
        Fault::error(404, "ErrorItemNotFound"),
        Fault::answer(200, ""),
        Fault::answer(502, "<html>"),
        // learn.microsoft.com/answers/questions/1465421 and 5629476
        Fault::answer(503, ""),
        Fault::error(429, "ApplicationThrottled"),
        Fault::error(503, "ErrorServerBusy"),
        Fault::error(400, "ErrorServerBusy"),
        Fault::error(409, "ErrorIrresolvableConflict"),
        Fault::hang(),
    ]) {
        // Its own Message-ID wouldn't find it.
        let message_id = format!("<it's-{number}@outlook.example>");
        stand_in.rewrite_message_ids(&message_id);
        stand_in.once(Call::Send, fault.clone().done());
        // It takes a moment to get there, and the look may fail.
        stand_in.once(Call::SentItems, Fault::error(503, "ErrorServerBusy"));
        let (status, answer) = send(&gateway).await;
        assert_eq!(status, 200, "{fault:?}: {answer}");
        assert_eq!(answer["message_id"], *message_id);
        assert_eq!(stand_in.sent().len(), number, "{fault:?}");
        assert_eq!(stand_in.count(Call::Send), number);
        assert_eq!(gateway.spooled().await, 0);
    }
    assert_eq!(stand_in.count(Call::Delete), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_is_not_seen_yet_is_sent_again() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    stand_in.once(Call::Send, Fault::error(404, "ErrorItemNotFound"));
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((stand_in.sent().len(), stand_in.count(Call::Send)), (1, 2));

    // Not without end, and never where it is no draft any longer.
    for _ in 0..3 {
        stand_in.once(Call::Send, Fault::error(404, "ErrorItemNotFound"));
    }
    let (status, answer) = send(&gateway).await;
    assert_eq!(
        (status, &answer["code"]),
        (502, &"outcome_unknown".into()),
        "{answer}"
    );
    assert_eq!((stand_in.sent().len(), stand_in.count(Call::Send)), (1, 5));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_found_by_the_id_of_its_draft_or_by_its_message_id() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    stand_in.once(Call::Send, Fault::error(504, "UnknownError").done());
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.count(Call::SentItems), 0);

    stand_in.forget_ids();
    stand_in.once(Call::Send, Fault::error(504, "UnknownError").done());
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.count(Call::SentItems), 1);
    assert_eq!(stand_in.count(Call::Send), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_found_stays_unknown_and_is_not_sent_again() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    for (number, fault) in (1..).zip([
        Fault::error(504, "UnknownError"),
        Fault::answer(200, ""),
        Fault::error(500, "ErrorInternalServerError"),
    ]) {
        stand_in.once(Call::Send, fault.clone());
        let (status, answer) = send(&gateway).await;
        assert_eq!(
            (status, &answer["code"]),
            (502, &"outcome_unknown".into()),
            "{answer}"
        );
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains("drafts"), "{detail}");
        assert_eq!(gateway.spooled().await, 0);
        assert_eq!(stand_in.count(Call::Send), number, "{fault:?}");
        // It may be going out still: nobody takes it away.
        assert_eq!(stand_in.drafts(), number);
        assert_eq!(gateway.logged().await[number - 1].0, "failed_perm");
    }
    assert!(stand_in.sent().is_empty());
    gateway.clock.advance(TimeDelta::days(1));
    assert_eq!(stand_in.count(Call::Delete), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sent_at_once_nothing_but_202_is_success() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(SEND_ONLY).await;
    for (fault, told) in [
        (Fault::answer(200, ""), "200 instead of 202"),
        (Fault::error(504, "UnknownError"), "504 UnknownError"),
        (Fault::answer(503, ""), "answered 503"),
    ] {
        stand_in.once(Call::SendMail, fault);
        let (status, answer) = send(&gateway).await;
        assert_eq!(
            (status, &answer["code"]),
            (502, &"outcome_unknown".into()),
            "{answer}"
        );
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains(told), "{detail}");
    }
    assert_eq!(stand_in.count(Call::SendMail), 3);
    assert!(stand_in.sent().is_empty());
    gateway.stop().await;
}

/// Sends a message that isn't sent for now; returns the seconds until its next attempt.
async fn postponed(gateway: &Gateway) -> i64 {
    let (status, answer) = send(gateway).await;
    assert_eq!(
        (status, &answer["status"]),
        (202, &"failed_temp".into()),
        "{answer}"
    );
    (next_attempt(gateway).await - gateway.clock.now()).num_seconds()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    for (number, (call, fault, seconds)) in (1..).zip([
        (Call::Send, Fault::error(429, "ApplicationThrottled"), 60),
        (
            Call::Create,
            Fault::error(429, "TooManyRequests").retry_after("600"),
            600,
        ),
        (Call::Create, Fault::error(504, "UnknownError"), 60),
        (Call::Create, Fault::answer(200, "{}"), 60),
        (Call::Create, Fault::answer(201, "<html>"), 60),
        (Call::Send, Fault::error(503, "ErrorServerBusy"), 60),
        (Call::Send, Fault::answer(503, ""), 60),
        (
            Call::Send,
            Fault::error(403, "ErrorExceededMessageLimit"),
            4 * 3_600,
        ),
        (
            Call::Create,
            Fault::error(400, "ErrorExceededMessageLimit"),
            4 * 3_600,
        ),
    ]) {
        stand_in.once(call, fault.clone());
        let wait = postponed(&gateway).await;
        // With a little jitter.
        assert!(
            (seconds - 5..=seconds + seconds / 8).contains(&wait),
            "{fault:?}: {wait}"
        );
        // What isn't sent leaves no draft behind.
        assert_eq!(stand_in.drafts(), 0, "{fault:?}");
        try_again(&gateway).await;
        assert_eq!(stand_in.sent().len(), number, "{fault:?}");
        assert_eq!(gateway.logged().await[number - 1].0, "sent");
    }
    gateway.stop().await;
}

/// A throttled mailbox doesn't show its drafts either.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_throttled_altogether_is_tried_again() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    let throttled = || Fault::error(429, "ApplicationThrottled").retry_after("90");
    stand_in.once(Call::Send, throttled());
    for _ in 0..3 {
        stand_in.once(Call::Look, throttled());
    }
    let wait = postponed(&gateway).await;
    assert!((85..=102).contains(&wait), "{wait}");
    assert_eq!(stand_in.count(Call::Delete), 0);
    try_again(&gateway).await;
    assert_eq!(stand_in.sent().len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_in_the_providers_words() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    for (call, status, code) in [
        (Call::Create, 400, "ErrorMimeContentInvalid"),
        (Call::Send, 400, "ErrorInvalidRecipients"),
        (Call::Send, 403, "ErrorSendAsDenied"),
        (Call::Send, 413, "ErrorMessageSizeExceeded"),
    ] {
        stand_in.once(call, Fault::error(status, code));
        let (answered, answer) = send(&gateway).await;
        assert_eq!(
            (answered, &answer["code"]),
            (502, &"provider_rejected".into()),
            "{answer}"
        );
        let told = format!("{status} {code}: What the provider says.");
        assert!(
            answer["detail"].as_str().unwrap().contains(&told),
            "{answer}"
        );
        assert_eq!(stand_in.drafts(), 0, "{code}");
    }
    stand_in.once(Call::Send, Fault::error(400, "ErrorInvalidRecipients"));
    let content = format!("From: {ADDRESS}\r\nTo: bob@example.com\r\n\r\nx\r\n");
    let reply = submit(&gateway, &["bob@example.com"], &content).await;
    assert!(
        reply.starts_with("55") && reply.contains("ErrorInvalidRecipients"),
        "{reply}"
    );
    assert!(stand_in.sent().is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_replaced_once() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    stand_in.refuse_tokens();
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((stand_in.sent().len(), stand_in.refreshes()), (1, 1));

    // Refused between the draft and its sending.
    stand_in.once(Call::Send, Fault::error(401, "InvalidAuthenticationToken"));
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((stand_in.sent().len(), stand_in.refreshes()), (2, 2));
    assert_eq!(stand_in.drafts(), 0);
    gateway.stop().await;
}
