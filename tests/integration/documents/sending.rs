//! The examples that send, against a gateway: the message arrives, and once only when its answer was lost; what
//! may be asked again is, and what is refused is not.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use super::examples::Task;
use super::languages::{Environment, Language, Outcome, Program};
use super::line::{Line, set_status};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::receiver::{Receiver, Reply};

/// Longer than the first two pauses together that an example makes by itself.
const RETRY_AFTER: u64 = 5;

async fn programs(task: Task) -> Vec<Program> {
    let mut programs = Vec::new();
    for language in Language::ALL {
        programs.push(Program::of(language, task).await);
    }
    programs
}

fn by_rest(gateway: &Gateway, url: String) -> Environment {
    Environment::from([
        ("MAILGATE_URL", url),
        ("MAILGATE_PK", gateway.app.pushable_key.expose().to_owned()),
        (
            "MAILGATE_SEND_KEY",
            gateway.app.send_key.expose().to_owned(),
        ),
    ])
}

fn by_smtp(gateway: &Gateway, door: SocketAddr) -> Environment {
    let ca_file = gateway.ca_file.display().to_string();
    Environment::from([
        ("MAILGATE_SMTP_HOST", "localhost".to_owned()),
        ("MAILGATE_SMTP_PORT", door.port().to_string()),
        ("MAILGATE_APP_ID", gateway.app.slug.clone()),
        (
            "MAILGATE_SEND_KEY",
            gateway.app.send_key.expose().to_owned(),
        ),
        ("MAILGATE_FROM", MAILBOX.to_owned()),
        ("SSL_CERT_FILE", ca_file.clone()),
        ("NODE_EXTRA_CA_CERTS", ca_file),
    ])
}

fn sends(language: Language, outcome: &Outcome) {
    assert!(outcome.succeeded, "{language:?}: {}", outcome.output);
    assert!(
        outcome.output.contains("sent"),
        "{language:?}: {}",
        outcome.output
    );
}

fn refuses(language: Language, outcome: &Outcome, code: &str) {
    let text = &outcome.output;
    assert!(!outcome.succeeded, "{language:?}: {text}");
    assert!(text.contains(code), "{language:?}: {text}");
    // It gave up at once, and not after its last attempt.
    assert!(!text.contains("again later"), "{language:?}: {text}");
    assert!(!text.contains("Unanswered"), "{language:?}: {text}");
}

/// The newest message is the example's, and nothing in it tells of the key.
async fn arrived(gateway: &Gateway, language: Language, count: usize) {
    let arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), count, "{language:?}");
    let newest = String::from_utf8(arrived.last().unwrap().clone()).unwrap();
    for wanted in ["bob@example.com", "Subject: Hello", "It works.", MAILBOX] {
        assert!(newest.contains(wanted), "{language:?}:\n{newest}");
    }
    assert!(
        !newest.to_lowercase().contains("idempotency"),
        "{language:?}:\n{newest}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn by_rest_a_message_goes_out_once_though_its_answer_was_lost() {
    let gateway = Gateway::start().await;
    for (program, count) in programs(Task::SendByRest).await.iter().zip(1..) {
        let to = gateway.daemon.http_address;
        let line = Line::that_loses_the_answer(to, &gateway.sandbox).await;
        let environment = by_rest(&gateway, format!("http://{}", line.address));
        let outcome = program.run(&environment).await;
        sends(program.language, &outcome);
        assert!(outcome.output.contains("log_"), "{}", outcome.output);
        assert_eq!(line.connections(), 2, "{:?}", program.language);
        arrived(&gateway, program.language, count).await;
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_rest_what_may_be_asked_again_is_and_what_is_refused_is_not() {
    let gateway = Gateway::start().await;
    let sent = r#"{"status":"failed_temp","log_id":"log_1"}"#;
    for program in programs(Task::SendByRest).await {
        let language = program.language;
        let mut environment = by_rest(&gateway, gateway.daemon.base_url.clone());
        environment.insert("MAILGATE_SEND_KEY", "sek_of_nobody".to_owned());
        refuses(language, &program.run(&environment).await, "401");

        let receiver = Receiver::start().await;
        let environment = by_rest(&gateway, receiver.url(""));
        receiver.then([
            Reply::Header(429, "retry-after", RETRY_AFTER.to_string()),
            Reply::Status(409, "{}"),
            Reply::Status(202, sent),
        ]);
        let began = Instant::now();
        let outcome = program.run(&environment).await;
        assert!(outcome.succeeded, "{language:?}: {}", outcome.output);
        assert!(outcome.output.contains("failed_temp log_1"), "{language:?}");
        assert!(
            began.elapsed() >= Duration::from_secs(RETRY_AFTER),
            "{language:?}"
        );
        let asked = receiver.received();
        assert_eq!(asked.len(), 3, "{language:?}");
        for again in &asked[1..] {
            assert_eq!(again.body, asked[0].body, "{language:?}");
            let key = |received: &crate::support::receiver::Received| {
                received.header("idempotency-key").to_owned()
            };
            assert_eq!(key(again), key(&asked[0]), "{language:?}");
        }

        let rejected = json!({ "code": "provider_rejected" }).to_string();
        receiver.then([Reply::Bytes(502, rejected.into_bytes())]);
        refuses(
            language,
            &program.run(&environment).await,
            "provider_rejected",
        );
        assert_eq!(receiver.count(), 4, "{language:?}");
        let keys = receiver.received();
        assert_ne!(
            keys[3].header("idempotency-key"),
            keys[0].header("idempotency-key"),
            "{language:?}: another message, another key"
        );
    }
    assert!(gateway.arrived().await.is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_smtp_a_message_goes_out_once_though_its_answer_was_lost() {
    let gateway = Gateway::start().await;
    for (program, count) in programs(Task::SendBySmtp).await.iter().zip(1..) {
        let to = gateway.starttls_address();
        let line = Line::that_loses_the_answer(to, &gateway.sandbox).await;
        let outcome = program.run(&by_smtp(&gateway, line.address)).await;
        sends(program.language, &outcome);
        assert_eq!(line.connections(), 2, "{:?}", program.language);
        arrived(&gateway, program.language, count).await;
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_smtp_what_may_be_submitted_again_is_and_what_is_refused_is_not() {
    let gateway = Gateway::start().await;
    for (program, count) in programs(Task::SendBySmtp).await.iter().zip(1..) {
        let language = program.language;
        let door = gateway.starttls_address();
        let mut environment = by_smtp(&gateway, door);
        environment.insert("MAILGATE_FROM", "eve@sandbox.example".to_owned());
        refuses(language, &program.run(&environment).await, "550");
        let mut environment = by_smtp(&gateway, door);
        environment.insert("MAILGATE_SEND_KEY", "sek_of_nobody".to_owned());
        refuses(language, &program.run(&environment).await, "535");

        // A payment is due: 451, until it is made.
        set_status(&gateway.database_url, "past_due").await;
        let line = Line::that_waits_for_a_payment(door, &gateway.database_url).await;
        let outcome = program.run(&by_smtp(&gateway, line.address)).await;
        sends(language, &outcome);
        assert_eq!(line.connections(), 2, "{language:?}");
        arrived(&gateway, language, count).await;
    }
    gateway.stop().await;
}
