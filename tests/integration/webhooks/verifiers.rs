//! The signatures, as libraries read them that nobody here wrote: `standardwebhooks` of npm and `PyPI`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mailgate_types::audit::Author;
use mailgate_types::clock::Clock;
use mailgate_types::signing_secret::SigningSecret;
use serde_json::{Value, json};

use super::{SECRET, attempted, configure, connected, gateway, happen, replied, set_own_url};
use crate::support::receiver::{Received, Receiver};

/// Both verifiers.
const VERIFIERS: [(&str, &str); 2] = [
    ("target/peers/node/node", "tests/peers/verify_webhooks.mjs"),
    (
        "target/peers/python/bin/python",
        "tests/peers/verify_webhooks.py",
    ),
];

/// A secret of the customer's own.
const RAW: &str = "correct horse battery staple";

fn below(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a verifier over cases.
fn verify(program: &str, script: &str, cases: &Value) -> Vec<String> {
    let program = below(program);
    // Node looks for packages from its real place.
    let program = if program.ends_with("node") {
        program.canonicalize().unwrap()
    } else {
        program
    };
    let mut child = Command::new(&program)
        .arg(below(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{} ({error}): run tests/peers/install", program.display()));
    let mut input = child.stdin.take().unwrap();
    input.write_all(cases.to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn case(received: &Received, secret: &str, raw: bool) -> Value {
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| (name.to_owned(), json!(received.header(name))));
    json!({
        "secret": secret,
        "raw": raw,
        "headers": Value::Object(headers.into_iter().collect()),
        "body": std::str::from_utf8(&received.body).unwrap(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn libraries_take_what_is_genuine_and_refuse_the_rest() {
    let gateway = gateway().start().await;
    let app = gateway.app.id;
    let events = &["user.connected", "email.reply"];
    let own = gateway.app.webhook_secret.expose().to_owned();
    let mut genuine = Vec::new();
    let mut receivers = Vec::new();
    for (path, secret) in [("/own", own.as_str()), ("/standard", SECRET), ("/raw", RAW)] {
        let receiver = Receiver::start().await;
        if path == "/own" {
            set_own_url(&gateway, &receiver.url(path)).await;
        } else {
            configure(&gateway, app, &receiver.url(path), events, secret).await;
        }
        receivers.push((receiver, secret, path != "/standard"));
    }
    happen(&gateway, &[connected(app)]).await;
    let log = mailgate_types::ids::LogId::at(gateway.clock.now());
    happen(&gateway, &[replied(app, log)]).await;
    attempted(&gateway, 6).await;
    for (receiver, secret, raw) in &receivers {
        for received in receiver.received() {
            genuine.push(case(&received, secret, *raw));
        }
    }
    assert_eq!(genuine.len(), 6);
    // What was signed an hour ago.
    gateway.clock.advance(chrono::TimeDelta::hours(-1));
    happen(&gateway, &[connected(app)]).await;
    attempted(&gateway, 9).await;
    let (standard, ..) = &receivers[1];
    let stale = case(&standard.received()[2], SECRET, false);

    let mut changed = Vec::new();
    let mut change = |what: &str, value: Value| {
        let mut case = genuine[2].clone();
        *case.pointer_mut(what).unwrap() = value;
        changed.push(case);
    };
    let body = genuine[2]["body"].as_str().unwrap();
    change("/body", json!(body.replace("ada", "eve")));
    change("/body", json!(format!("{body} ")));
    change(
        "/headers/webhook-id",
        json!("msg_00000000000000000000000000"),
    );
    let timestamp: i64 = genuine[2]["headers"]["webhook-timestamp"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    change(
        "/headers/webhook-timestamp",
        json!((timestamp + 1).to_string()),
    );
    change("/secret", json!("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"));
    change("/headers/webhook-signature", json!("v1,AAAA"));
    changed.push(stale);

    let all: Vec<Value> = genuine.iter().chain(&changed).cloned().collect();
    for (program, script) in VERIFIERS {
        let verdicts = verify(program, script, &json!(all));
        let (taken, refused) = verdicts.split_at(genuine.len());
        assert!(
            taken.iter().all(|verdict| verdict == "verified"),
            "{script}: {taken:?}"
        );
        assert!(
            refused.iter().all(|verdict| verdict != "verified"),
            "{script}: {refused:?}"
        );
        let stale = refused.last().unwrap();
        assert!(
            stale.to_lowercase().contains("timestamp"),
            "{script}: {stale}"
        );
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_secrets_overlap_either_verifies() {
    let gateway = gateway().start().await;
    let app = gateway.app.id;
    let (hook, own) = (Receiver::start().await, Receiver::start().await);
    set_own_url(&gateway, &own.url("/")).await;
    let events = &["user.connected"];
    let id = configure(&gateway, app, &hook.url("/"), events, SECRET).await;
    let author = Author::operator(None);
    let raw = SigningSecret::parse(RAW).unwrap();
    let webhooks = &gateway.daemon.webhooks;
    let rotated = webhooks.rotate_secret(app, id, Some(raw), author).await;
    assert!(rotated.unwrap().is_some());
    let accounts = &gateway.daemon.accounts;
    let renewed = accounts
        .renew_webhook_secret(app, None, author)
        .await
        .unwrap();
    let (old, new) = (
        gateway.app.webhook_secret.expose().to_owned(),
        renewed.secret.expose().to_owned(),
    );
    happen(&gateway, &[connected(app)]).await;
    attempted(&gateway, 2).await;
    let cases = |number: usize| {
        let (hook, own) = (&hook.received()[number], &own.received()[number]);
        json!([
            case(hook, RAW, true),
            case(own, &new, true),
            case(hook, SECRET, false),
            case(own, &old, true),
        ])
    };
    for (program, script) in VERIFIERS {
        assert_eq!(verify(program, script, &cases(0)), ["verified"; 4]);
    }
    // A day later, which the verifiers' clocks don't know: the old secrets' signatures are not there.
    gateway.clock.advance(chrono::TimeDelta::hours(24));
    happen(&gateway, &[connected(app)]).await;
    attempted(&gateway, 4).await;
    for received in [&hook, &own] {
        let request = &received.received()[1];
        let signature = request.header("webhook-signature");
        assert_eq!(signature.matches("v1,").count(), 1, "{signature}");
    }
    // Nor does any other than the new one verify what comes once it has ended.
    sqlx::query("UPDATE webhook_configs SET previous_secret_expires_at = now() - interval '1 day'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    sqlx::query("UPDATE apps SET previous_webhook_secret_expires_at = now() - interval '1 day'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(chrono::TimeDelta::hours(-24));
    happen(&gateway, &[connected(app)]).await;
    attempted(&gateway, 6).await;
    for (program, script) in VERIFIERS {
        let verdicts = verify(program, script, &cases(2));
        assert_eq!(verdicts[..2], ["verified"; 2], "{script}");
        let refused = &verdicts[2..];
        assert!(
            refused.iter().all(|verdict| verdict != "verified"),
            "{script}: {refused:?}"
        );
    }
    gateway.stop().await;
}
