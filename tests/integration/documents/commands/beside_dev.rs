//! What the documents let somebody type beside `make dev`.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::blocks::root;
use super::super::examples::Task;
use super::super::languages::{Environment, Language, Program};
use super::super::receiving::Running;
use super::super::{Use, used};
use super::type_in;
use crate::command_line::dev::Dev;
use crate::command_line::process::Invocation;
use crate::payprov_sandbox::walk::choose_card;
use crate::support::patience;
use crate::support::ports;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_beside_make_dev_works() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join(".mailgate");
    fs::create_dir(&state).unwrap();
    let invocation = Invocation::dev(&state).argument("--ephemeral");
    let mut dev = Dev::start(invocation, &state).await;
    let subscription = dev.trial().await;
    let mut blocks = used(Use::Dev);
    let mut take = |start: &str| {
        let place = blocks
            .iter()
            .position(|block| block.text.starts_with(start));
        let block = blocks.remove(place.expect(start));
        block
            .text
            .replace("http://127.0.0.1:8080", dev.text("/base_url"))
            .replace("http://127.0.0.1:8025", dev.text("/sandbox_url"))
    };

    // The payment fails, a card is entered, what is open is paid.
    let sandbox = dev.text("/sandbox_url");
    let press = format!("{sandbox}/payprov/steering/subscriptions/{subscription}");
    let pressed = dev
        .http
        .post(press)
        .json(&json!({ "action": "payment_fails" }));
    assert!(pressed.send().await.unwrap().status().is_success());
    status_is(&dev, "past_due").await;
    let ask = take("KEY=");
    let printed = type_in(folder.path(), &ask, &Environment::new()).await;
    let page: Value = serde_json::from_str(&printed).unwrap();
    let back = choose_card(page["url"].as_str().unwrap(), "works").await;
    assert!(back.contains("payment=updated"), "{back}");
    let script = format!("{}\n{}", ask.lines().next().unwrap(), take("curl "));
    let printed = type_in(folder.path(), &script, &Environment::new()).await;
    let paid: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(paid, json!({ "reactivated": true, "status": "active" }));

    // The examples find all that they need.
    let script = format!("{}\nenv -0", take("eval "));
    let printed = type_in(folder.path(), &script, &Environment::new()).await;
    let wanted = [
        "MAILGATE_URL",
        "MAILGATE_PK",
        "MAILGATE_SEND_KEY",
        "MAILGATE_SMTP_HOST",
        "MAILGATE_SMTP_PORT",
        "MAILGATE_APP_ID",
        "MAILGATE_FROM",
        "MAILGATE_API_SECRET",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
    ];
    let environment = wanted.map(|name| {
        let value = printed
            .split('\0')
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        (name, value.unwrap_or_else(|| panic!("{name}")).to_owned())
    });
    let environment = Environment::from(environment);
    for (language, task) in [
        (Language::Python, Task::SendBySmtp),
        (Language::JavaScript, Task::SendBySmtp),
    ] {
        let program = Program::of(language, task).await;
        let outcome = program.run(&environment).await;
        assert!(outcome.succeeded, "{language:?}: {}", outcome.output);
    }
    let script = take("python3 ").replace("examples/", &format!("{}/examples/", root().display()));
    let printed = type_in(folder.path(), &script, &environment).await;
    assert!(printed.starts_with("sent log_"), "{printed}");
    assert_eq!(to_bob(&dev).await, 3);

    // A receiver gets the next message's event.
    let [port] = ports::reserve();
    let hook = take("export ").replace("127.0.0.1:9000", &format!("127.0.0.1:{port}"));
    let script = format!("{hook}\necho\nprintf %s \"$MAILGATE_WEBHOOK_SECRET\"");
    let printed = type_in(folder.path(), &script, &environment).await;
    let (_, secret) = printed.rsplit_once('\n').unwrap();
    let receiver = Program::of(Language::Python, Task::Receive).await;
    let receiver = Running::start_at(&receiver, secret, port).await;
    assert_eq!(dev.send("bob@example.com").await.0, 200);
    patience::until("event", async || receiver.said().contains("email.sent")).await;
    assert!(blocks.is_empty(), "not typed here: {blocks:?}");
    dev.child.terminate().await;
}

/// How many messages have arrived there.
async fn to_bob(dev: &Dev) -> usize {
    let arrived = dev.messages().await;
    let to_bob = arrived
        .iter()
        .filter(|message| message["envelope_to"] == json!(["bob@example.com"]));
    to_bob.count()
}

async fn status_is(dev: &Dev, status: &str) {
    let url = format!("{}/payprov/status", dev.text("/base_url"));
    patience::until(&format!("status {status}"), async || {
        let request = dev
            .http
            .get(&url)
            .header("x-api-secret", dev.text("/subscriber/api_secret"));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        answer["status"] == status
    })
    .await;
}
