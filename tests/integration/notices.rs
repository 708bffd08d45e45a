//! Notices to subscribers leave through the relay, each once, whatever the relay does.

mod relayed;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{TimeDelta, Utc};
use mail_parser::MessageParser;
use mailgate_storage::billing_notices;
use mailgate_types::clock::Clock;
use mailgate_types::notice::{AmountDue, Notice};
use toml::{Table, Value};

use crate::support::gateway::Gateway;
use crate::support::stand_in::StandIn;
use crate::support::stand_in::submission::{Answer, Stage, Submitted};

/// What a relay offers that takes passwords.
const OFFERS_BOTH: &str = "250-stand-in\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN";

/// A scripted relay, and a gateway that has it.
async fn start() -> (StandIn, Gateway) {
    let relay = StandIn::start().await;
    offer(&relay, OFFERS_BOTH);
    let gateway = Gateway::builder()
        .relay(relay.relay())
        .set("PORTAL__BASE_URL", "https://portal.example/")
        .start()
        .await;
    (relay, gateway)
}

fn offer(relay: &StandIn, hello: &str) {
    let answer = Answer::reply(hello);
    relay.submission.always(Stage::EncryptedHello, answer);
}

fn payment_failed() -> Notice {
    Notice::PaymentFailed {
        amount_due: AmountDue {
            minor_units: 500,
            currency: "eur".to_owned(),
        },
        payment_url: Some("https://pay.example/in_1?a=1&b=2".to_owned()),
        next_attempt: None,
    }
}

/// Puts a notice into the outbox, as an event does; `false` when that event has brought one.
async fn tell(gateway: &Gateway, event: &str, notice: &Notice) -> bool {
    let now = gateway.clock.now();
    let mut database = gateway.database().await;
    billing_notices::insert(&mut database, gateway.subscriber, event, notice, now)
        .await
        .unwrap()
}

/// The outbox's rows as `(outcome, attempts)`, oldest first.
async fn outcomes(gateway: &Gateway) -> Vec<(Option<String>, i32)> {
    sqlx::query_as("SELECT outcome, attempts FROM billing_notices ORDER BY id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

async fn settled(gateway: &Gateway, expected: &[&str]) {
    gateway
        .eventually(&format!("the outcomes {expected:?}"), async |gateway| {
            let found = outcomes(gateway).await;
            let found = found.iter().map(|(outcome, _)| outcome.as_deref());
            found.eq(expected.iter().copied().map(Some))
        })
        .await;
}

async fn attempts(gateway: &Gateway, expected: i32) {
    gateway
        .eventually(&format!("{expected} attempts"), async |gateway| {
            let found = outcomes(gateway).await;
            found
                .iter()
                .all(|(outcome, attempts)| outcome.is_none() && *attempts == expected)
                && no_lease(gateway).await
        })
        .await;
}

/// Nobody is at work on a notice: its next attempt is nearer than any lease ends.
async fn no_lease(gateway: &Gateway) -> bool {
    let leaving: i64 =
        sqlx::query_scalar("SELECT count(*) FROM billing_notices WHERE leaving_at IS NOT NULL")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    leaving == 0
}

fn shown(message: &Submitted) -> String {
    String::from_utf8_lossy(&message.content).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_arrives_once_with_both_parts() {
    let (relay, gateway) = start().await;
    let trial_end = gateway.clock.now() + TimeDelta::days(3);
    for (event, notice, subject, word) in [
        ("evt_1", payment_failed(), "Payment failed", "5.00 EUR"),
        (
            "evt_2",
            Notice::PaymentActionRequired {
                amount_due: AmountDue {
                    minor_units: 1_200,
                    currency: "usd".to_owned(),
                },
                payment_url: Some("https://pay.example/in_2".to_owned()),
            },
            "Please confirm the payment",
            "https://pay.example/in_2",
        ),
        (
            "evt_3",
            Notice::TrialWillEnd {
                trial_end,
                has_payment_method: false,
            },
            "The trial of \"Demo\" ends soon",
            "no payment method",
        ),
    ] {
        let count = relay.submission.messages().len();
        assert!(tell(&gateway, event, &notice).await);
        assert!(
            !tell(&gateway, event, &notice).await,
            "the same event again"
        );
        gateway
            .eventually(subject, async |_| relay.submission.messages().len() > count)
            .await;
        let messages = relay.submission.messages();
        assert_eq!(messages.len(), count + 1);
        let message = &messages[count];
        assert_eq!(message.recipients, ["RCPT TO:<owner@example.com>"]);
        let parsed = MessageParser::new().parse(&message.content).unwrap();
        assert!(
            parsed.subject().unwrap().starts_with(subject),
            "{}",
            shown(message)
        );
        assert!(
            parsed.body_text(0).unwrap().contains(word),
            "{}",
            shown(message)
        );
        assert!(
            parsed.body_html(0).unwrap().contains(word),
            "{}",
            shown(message)
        );
        for part in [parsed.body_text(0), parsed.body_html(0)] {
            let page = "https://portal.example/billing";
            assert!(part.unwrap().contains(page), "{}", shown(message));
        }
        let from = parsed.from().unwrap().first().unwrap();
        assert_eq!(from.address(), Some("billing@gateway.example"));
        assert_eq!(from.name(), Some("Mailgate"));
        assert_eq!(
            parsed.to().unwrap().first().unwrap().address(),
            Some("owner@example.com")
        );
    }
    settled(&gateway, &["sent"; 3]).await;
    let commands = relay.submission.commands();
    let plain = STANDARD.encode("\0relay-user\0relay-password");
    let shown_at = commands
        .iter()
        .filter(|command| command.line == format!("AUTH PLAIN {plain}"));
    assert_eq!(shown_at.count(), 3);
    for command in commands {
        assert!(
            command.encrypted || !command.line.starts_with("AUTH"),
            "{command:?}"
        );
        if command.line.starts_with("MAIL") {
            assert!(
                command
                    .line
                    .starts_with("MAIL FROM:<billing@gateway.example>")
            );
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn login_where_there_is_no_plain() {
    let (relay, gateway) = start().await;
    offer(&relay, "250-stand-in\r\n250 AUTH LOGIN XOAUTH2");
    for reply in ["334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6", "235 2.7.0 Accepted"] {
        let stage = if reply.ends_with("bWU6") {
            Stage::Auth
        } else {
            Stage::AuthEnd
        };
        relay.submission.once(stage, Answer::reply(reply));
    }
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    settled(&gateway, &["sent"]).await;
    let said = relay.submission.answers_to_challenges();
    assert_eq!(
        said,
        [
            STANDARD.encode("relay-user"),
            STANDARD.encode("relay-password")
        ]
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again_later() {
    let (relay, gateway) = start().await;
    for (stage, reply, minutes) in [
        (Stage::Rcpt, "451 4.3.0 Later", 1),
        (Stage::Content, "452 4.3.1 Full", 5),
        (Stage::Auth, "535 5.7.8 Wrong", 15),
        (Stage::Mail, "530 5.7.0 Authentication required", 60),
    ] {
        relay.submission.once(stage, Answer::reply(reply));
        if minutes == 1 {
            assert!(tell(&gateway, "evt_1", &payment_failed()).await);
        }
        let expected = [1, 5, 15, 60]
            .iter()
            .position(|pause| *pause == minutes)
            .unwrap()
            + 1;
        attempts(&gateway, i32::try_from(expected).unwrap()).await;
        let due: chrono::DateTime<Utc> = sqlx::query_scalar("SELECT due_at FROM billing_notices")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        let pause = due - gateway.clock.now();
        assert!(
            pause > TimeDelta::seconds(minutes * 60 - 50),
            "{reply}: {pause}"
        );
        if minutes < 60 {
            gateway.clock.advance(TimeDelta::minutes(minutes));
        }
    }
    gateway.clock.advance(TimeDelta::minutes(60));
    settled(&gateway, &["sent"]).await;
    let messages = relay.submission.messages();
    assert_eq!(
        messages.len(),
        2,
        "the one that was refused at its end, and the one that arrived"
    );
    let id = |message: &Submitted| {
        let parsed = MessageParser::new().parse(&message.content).unwrap();
        parsed.message_id().unwrap().to_owned()
    };
    assert_eq!(id(&messages[0]), id(&messages[1]));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_good_is_given_up() {
    let (relay, gateway) = start().await;
    relay
        .submission
        .once(Stage::Rcpt, Answer::reply("550 5.1.1 No such user"));
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    settled(&gateway, &["given_up"]).await;
    // One that nobody takes for days is given up too.
    relay
        .submission
        .always(Stage::Greeting, Answer::reply("421 4.3.2 Busy"));
    assert!(tell(&gateway, "evt_2", &payment_failed()).await);
    gateway
        .eventually("an attempt", async |gateway| {
            outcomes(gateway).await[1].1 == 1
        })
        .await;
    gateway.clock.advance(TimeDelta::days(4));
    settled(&gateway, &["given_up"; 2]).await;
    assert!(relay.submission.messages().is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_arrived_is_not_sent_again() {
    let (relay, gateway) = start().await;
    relay.submission.once(Stage::Content, Answer::Close);
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    settled(&gateway, &["unknown"]).await;

    // The process that was sending it has died.
    gateway.stop_daemon().await;
    assert!(tell(&gateway, "evt_2", &payment_failed()).await);
    sqlx::query(
        "UPDATE billing_notices SET attempts = 1, leaving_at = created_at WHERE event_id = 'evt_2'",
    )
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    let next = gateway.replica().relay(relay.relay()).start().await;
    settled(&next, &["unknown"; 2]).await;
    next.clock.advance(TimeDelta::hours(1));
    assert!(tell(&next, "evt_3", &payment_failed()).await);
    settled(&next, &["unknown", "unknown", "sent"]).await;
    assert_eq!(
        relay.submission.messages().len(),
        2,
        "the first and the last"
    );
    next.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_leaves_only_for_a_relay_that_is_trusted() {
    let relay = StandIn::start().await;
    offer(&relay, OFFERS_BOTH);
    let mut untrusted = relay.relay();
    untrusted.remove("ca_file").unwrap();
    let gateway = Gateway::builder().relay(untrusted).start().await;
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    attempts(&gateway, 1).await;
    gateway.stop().await;

    let gateway = Gateway::builder().relay(relay.relay()).start().await;
    relay.submission.always(
        Stage::Hello,
        Answer::reply("250-stand-in\r\n250 AUTH PLAIN"),
    );
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    attempts(&gateway, 1).await;
    assert_eq!(relay.submission.count("AUTH"), 0);
    assert_eq!(relay.submission.count("MAIL"), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_relay_notices_are_skipped() {
    let gateway = Gateway::start().await;
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    settled(&gateway, &["skipped"]).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_outbox() {
    let (relay, gateway) = start().await;
    let second = gateway.replica().relay(relay.relay()).start().await;
    let many = 40;
    for number in 0..many {
        assert!(tell(&gateway, &format!("evt_{number}"), &payment_failed()).await);
    }
    settled(&gateway, &vec!["sent"; many]).await;
    assert_eq!(relay.submission.messages().len(), many);
    second.stop().await;
    gateway.stop().await;
}

/// Settings of a relay in clear.
fn in_clear(port: u16) -> Table {
    let text = |name: &str, value: &str| (name.to_owned(), Value::String(value.to_owned()));
    Table::from_iter([
        text("host", "localhost"),
        ("port".to_owned(), Value::Integer(port.into())),
        text("tls", "none"),
        text("from", "billing@gateway.example"),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_on_this_machine_needs_neither_tls_nor_a_password() {
    let relay = StandIn::start().await;
    let gateway = Gateway::builder()
        .relay(in_clear(relay.submission.port()))
        .start()
        .await;
    assert!(tell(&gateway, "evt_1", &payment_failed()).await);
    settled(&gateway, &["sent"]).await;
    assert_eq!(
        relay.submission.count("STARTTLS") + relay.submission.count("AUTH"),
        0
    );
    assert_eq!(relay.submission.messages().len(), 1);
    gateway.stop().await;
}
