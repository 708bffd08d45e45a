//! What Gmail's failures come to, by the stand-in.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_types::clock::Clock;
use serde_json::{Value, json};

use super::{large, submit};
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, Fault, GmailStandIn, SEND_SCOPE, error, refusal};
use crate::support::patience;
use crate::support::stand_in::{self, ADDRESS};

/// Seconds until the next attempt that an answer names.
fn wait(gateway: &Gateway, answer: &Value) -> i64 {
    let next: DateTime<Utc> = answer["next_retry_at"].as_str().unwrap().parse().unwrap();
    (next - gateway.clock.now()).num_seconds()
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_at_once_is_sent_later() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    let limited = || error(429, "rateLimitExceeded", "Slow", "RESOURCE_EXHAUSTED");
    let retry_after = |value: &str| vec![("retry-after", value.to_owned())];
    // A time that is named is a time of the gateway's clock, which this test moves.
    let in_ten_minutes = |gateway: &Gateway| gateway.clock.now() + TimeDelta::minutes(10);
    let faults: [&dyn Fn(&Gateway) -> Fault; 6] = [
        &|_| Fault::Answer(429, vec![], limited()),
        &|_| refusal(403, "userRateLimitExceeded", "Slow"),
        &|_| Fault::Answer(429, retry_after("600"), limited()),
        &|gateway| {
            let date = in_ten_minutes(gateway).format("%a, %d %b %Y %H:%M:%S GMT");
            Fault::Answer(429, retry_after(&date.to_string()), limited())
        },
        &|gateway| {
            let time = in_ten_minutes(gateway).to_rfc3339();
            let text = format!("User-rate limit exceeded.  Retry after {time} (Mail sending)");
            refusal(429, "rateLimitExceeded", &text)
        },
        &|_| refusal(403, "dailyLimitExceeded", "Daily"),
    ];
    let waits = [
        55..=90,
        55..=90,
        590..=600,
        590..=600,
        590..=600,
        14_300..=14_400,
    ];
    for (fault, expected) in faults.into_iter().zip(waits) {
        let fault = fault(&gateway);
        let before = stand_in.sent().len();
        stand_in.fail_once(fault.clone());
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{fault:?}: {answer}");
        assert_eq!(answer["status"], "failed_temp");
        let wait = wait(&gateway, &answer);
        assert!(expected.contains(&wait), "{fault:?}: in {wait} s");
        assert_eq!(stand_in.sent().len(), before);
        gateway.clock.advance(TimeDelta::seconds(wait + 2));
        gateway
            .eventually("the message is sent", async |gateway| {
                gateway.spooled().await == 0
            })
            .await;
        assert_eq!(stand_in.sent().len(), before + 1);
    }
    for (status, _) in gateway.logged().await {
        assert_eq!(status, "sent");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_google_or_the_operator_mends_is_sent_later() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    let disabled = "Gmail API has not been used in project 1 before or it is disabled.";
    let in_details = json!({ "error": {
        "code": 403, "message": disabled, "status": "PERMISSION_DENIED",
        "details": [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED" }],
    } });
    for (number, fault) in [
        refusal(400, "failedPrecondition", "Precondition check failed."),
        refusal(403, "accessNotConfigured", disabled),
        Fault::Answer(403, vec![], in_details),
    ]
    .into_iter()
    .enumerate()
    {
        stand_in.fail_once(fault.clone());
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{fault:?}: {answer}");
        let wait = wait(&gateway, &answer);
        gateway.clock.advance(TimeDelta::seconds(wait + 2));
        gateway
            .eventually("the message is sent", async |gateway| {
                gateway.spooled().await == 0
            })
            .await;
        assert_eq!(stand_in.sent().len(), number + 1);
    }
    for (status, _) in gateway.logged().await {
        assert_eq!(status, "sent");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_in_gmails_words() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    for (code, reason, message) in [
        (400, "invalidArgument", "Invalid To header"),
        (400, "failedPrecondition", "Mail service not enabled"),
        (403, "insufficientPermissions", "Insufficient Permission"),
        (
            403,
            "domainPolicy",
            "The domain administrators have disabled Gmail apps.",
        ),
        (413, "uploadTooLarge", "Request Entity Too Large"),
    ] {
        stand_in.fail_once(refusal(code, reason, message));
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(
            (status, &answer["code"]),
            (502, &json!("provider_rejected")),
            "{answer}"
        );
        let detail = answer["detail"].as_str().unwrap();
        let expected = format!("HTTP {code} {reason}: {message}");
        assert!(detail.contains(&expected), "{detail}");
    }
    assert!(stand_in.sent().is_empty());
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_may_have_arrived_is_not_sent_again() {
    let builder = Gateway::builder().set("SENDING__DATA_SECONDS", 2);
    let (stand_in, gateway) = GmailStandIn::with(builder, SEND_SCOPE).await;
    let faults = [
        Fault::KeptBut(500, error(500, "backendError", "Backend Error", "INTERNAL")),
        Fault::Answer(503, vec![], error(503, "backendError", "x", "UNAVAILABLE")),
        Fault::KeptBut(504, Value::Null),
        Fault::KeptBut(200, json!({})),
        Fault::KeptButBreak,
        Fault::Break,
        Fault::Silence,
    ];
    let mut kept = 0;
    for fault in faults {
        kept += usize::from(matches!(fault, Fault::KeptBut(..) | Fault::KeptButBreak));
        stand_in.fail_once(fault.clone());
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(
            (status, &answer["code"]),
            (502, &json!("outcome_unknown")),
            "{fault:?}: {answer}"
        );
        assert_eq!(stand_in.sent().len(), kept);
        assert_eq!(gateway.spooled().await, 0);
    }
    assert_eq!(stand_in.asked().len(), 7);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_may_have_arrived_is_looked_for_where_that_is_granted() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), FULL_SCOPE).await;
    for fault in [Fault::KeptBut(504, Value::Null), Fault::KeptButBreak] {
        stand_in.fail_once(fault.clone());
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{fault:?}: {answer}");
    }
    // A copy may be filed a moment after the answer broke.
    stand_in.fail_once(Fault::KeptLaterBut(504, Value::Null));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.sent().len(), 3);
    // One that isn't found may lie there under another Message-ID.
    stand_in.fail_once(Fault::Answer(504, vec![], Value::Null));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!((status, &answer["code"]), (502, &json!("outcome_unknown")));
    assert_eq!(stand_in.sent().len(), 3);
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

/// A client that splits a message's recipients gives all of its parts the same Message-ID.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_not_taken_for_another_one_with_its_message_id() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), FULL_SCOPE).await;
    let content = format!("From: {ADDRESS}\r\nMessage-ID: <split@x.example>\r\n\r\nHello");
    let reply = submit(&gateway, &["bob@example.com"], content.as_bytes()).await;
    assert!(reply.contains("sent via"), "{reply}");
    stand_in.fail_once(Fault::Answer(504, vec![], Value::Null));
    let reply = submit(&gateway, &["eve@example.com"], content.as_bytes()).await;
    assert!(reply.starts_with("554 "), "{reply}");
    assert!(reply.contains("may have arrived"), "{reply}");
    assert_eq!(stand_in.sent().len(), 1);
    assert_eq!(gateway.logged().await[1].0, "failed_perm");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_gmail_gave_another_name_is_found_by_ours() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), FULL_SCOPE).await;
    stand_in.rename_message_ids();
    for fault in [Fault::KeptBut(504, Value::Null), Fault::KeptButBreak] {
        stand_in.fail_once(fault.clone());
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{fault:?}: {answer}");
    }
    assert_eq!(stand_in.sent().len(), 2);
    // Another one's mark is not this one's.
    stand_in.fail_once(Fault::Answer(504, vec![], Value::Null));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!((status, &answer["code"]), (502, &json!("outcome_unknown")));
    assert_eq!(stand_in.sent().len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_went_out_in_part_is_sent_later() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    stand_in.fail_once(Fault::BreakEarly);
    let reply = submit(&gateway, &["bob@example.com"], &large(24_000_000)).await;
    assert!(reply.contains(" queued, next attempt "), "{reply}");
    assert!(stand_in.sent().is_empty());
    gateway.clock.advance(TimeDelta::minutes(2));
    gateway
        .eventually("the message is sent", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    assert_eq!(stand_in.sent().len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_listens_nothing_is_lost() {
    let stand_in = GmailStandIn::start().await;
    let mut plugins = stand_in.plugins(SEND_SCOPE);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let plugin = plugins["plugin_b"].as_table_mut().unwrap();
    plugin.insert(
        "api_base_url".to_owned(),
        format!("http://{address}").into(),
    );
    let gateway = Gateway::builder().plugins(plugins).start().await;
    stand_in.connect(&gateway).await;
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(gateway.spooled().await, 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_refreshed_once() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    stand_in.refuse_token("access-1");
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1"]);
    let sent = stand_in.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].token, "access-2");

    // A second refusal is the provider's word.
    stand_in.refuse_token("access-2");
    stand_in.refuse_token("access-3");
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("Invalid Credentials"), "{detail}");
    assert_eq!(stand_in.tokens.refresh_tokens().len(), 2);
    assert_eq!(stand_in.sent().len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_has_no_more_submissions_under_way_than_it_may() {
    let stand_in = GmailStandIn::start().await;
    let builder = Gateway::builder()
        .plugins(stand_in.plugins(SEND_SCOPE))
        .set("PLUGINS__PLUGIN_B__LIMITS__CONCURRENCY", 1)
        .set("SENDING__CONNECT_SECONDS", 1)
        .set("SENDING__COMMAND_SECONDS", 1)
        .set("SENDING__DATA_SECONDS", 10);
    let gateway = builder.start().await;
    stand_in.connect(&gateway).await;
    stand_in.fail_once(Fault::Silence);
    let first = stand_in::send(&gateway, "bob@example.com");
    let second = async {
        patience::until("first submission", async || !stand_in.asked().is_empty()).await;
        stand_in::send(&gateway, "carol@example.com").await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.0, 502, "{}", first.1);
    assert_eq!(second.0, 202, "{}", second.1);
    let error = second.1["error"].as_str().unwrap();
    assert!(error.contains("no place"), "{error}");
    assert_eq!(stand_in.asked().len(), 1);
    gateway.stop().await;
}
