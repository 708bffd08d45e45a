//! Mail addresses in the log of a real process.

use serde_json::{Value, json};

use crate::command_line::process::http_client;
use crate::command_line::serve::{replica, with_plugins};
use crate::connecting::{cookies_at, keep_cookies};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::stand_in::StandIn;
use crate::support::stand_in::submission::{Answer, Stage};

const WORDS: &str = "451 4.2.1 <Bob@example.com> has moved";

/// What a process logs of two messages that a provider refuses with the recipient's address in its words.
async fn logged(addresses: &str) -> (String, Vec<String>) {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for _ in 0..2 {
        stand_in.submission.once(Stage::Rcpt, Answer::reply(WORDS));
    }
    let serve = with_plugins(replica(&gateway), stand_in.plugins());
    let mut serve = serve.set("LOG__ADDRESSES", addresses).start();
    let http = serve.ready().await.http;
    for _ in 0..2 {
        let body = json!({
            "pk": gateway.app.pushable_key.expose(), "plugin": "plugin_b",
            "to": "bob@example.com", "subject": "Hello", "body": "It works.",
        });
        let request = http_client()
            .post(format!("http://{http}/send"))
            .json(&body);
        let request = request.header("x-send-key", gateway.app.send_key.expose());
        assert_eq!(request.send().await.unwrap().status().as_u16(), 202);
    }
    serve.terminate().await;
    let text = serve.stderr();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = lines.filter_map(|line| {
        (line["message"] == "message").then(|| line["error"].as_str().unwrap().to_owned())
    });
    let errors = errors.collect();
    gateway.stop().await;
    (text, errors)
}

#[tokio::test]
async fn addresses_stand_there_plain_or_hashed_and_alike() {
    let (_, plain) = logged("plain").await;
    assert_eq!(plain, [WORDS, WORDS]);
    let (text, hashed) = logged("hashed").await;
    assert_eq!(hashed.len(), 2);
    assert_eq!(hashed[0], hashed[1], "the same address, the same hash");
    assert!(hashed[0].starts_with("451 4.2.1 <address:"), "{hashed:?}");
    for address in ["Bob@example.com", "bob@example.com", MAILBOX] {
        assert!(!text.contains(address), "{address} in\n{text}");
    }
}

#[tokio::test]
async fn no_line_at_any_level_holds_one() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway)
        .set("LOG__ADDRESSES", "hashed")
        .set("LOG__FILTER", "trace")
        .start();
    let http = serve.ready().await.http;
    gateway
        .sandbox
        .authorization
        .expire_access_tokens()
        .await
        .unwrap();
    let link = format!(
        "http://{http}/connect/{}?plugin=plugin_a&login_hint=carol%40sandbox.example",
        gateway.app.pushable_key.expose()
    );
    sqlx::query("UPDATE apps SET multilink = true")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let browser = browser.no_proxy().build().unwrap();
    // The button, the provider, the way back, and the page at its end.
    let mut cookies = cookies_at(&link);
    let mut step = browser.post(link);
    for status in [303, 302, 302, 200] {
        let answer = step.header("cookie", cookies).send().await.unwrap();
        assert_eq!(answer.status(), status);
        keep_cookies(answer.headers());
        let place = answer.headers().get("location");
        let place = place.map_or("http://127.0.0.1:9/", |place| place.to_str().unwrap());
        cookies = cookies_at(place);
        step = browser.get(place.to_owned());
    }
    for to in [
        "bob@example.com",
        "tempfail@example.com",
        "permfail@example.com",
    ] {
        let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": to, "subject": "x", "body": "x" });
        let request = http_client()
            .post(format!("http://{http}/send"))
            .json(&body);
        request
            .header("x-send-key", gateway.app.send_key.expose())
            .send()
            .await
            .unwrap();
    }
    serve.terminate().await;
    let text = serve.stderr().to_lowercase();
    assert!(text.contains("\"level\":\"trace\""), "nothing was traced");
    for domain in ["example.com", "sandbox.example"] {
        for sign in ["@", "%40"] {
            let found = text
                .lines()
                .find(|line| line.contains(&format!("{sign}{domain}")));
            assert_eq!(found, None);
        }
    }
    gateway.stop().await;
}
