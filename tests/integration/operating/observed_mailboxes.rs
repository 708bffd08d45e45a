//! Metrics of mailboxes: how many there are, who failed to connect one, and whether the OAuth client itself is good.

use std::net::SocketAddr;

use reqwest::header::{COOKIE, LOCATION};
use reqwest::redirect::Policy;

use super::observed::value;
use crate::command_line::process::http_client;
use crate::command_line::serve::{authenticated, replica};
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;

async fn scrape(metrics: SocketAddr) -> String {
    let response = http_client().get(format!("http://{metrics}/metrics"));
    response.send().await.unwrap().text().await.unwrap()
}

async fn comes_to(metrics: SocketAddr, sample: &str, expected: f64) {
    patience::until(&format!("{sample} {expected}"), async || {
        (value(&scrape(metrics).await, sample) - expected).abs() < 1e-9
    })
    .await;
}

/// From the connect page's button to the end, as the user whom the hint names.
async fn connect(gateway: &Gateway, http: SocketAddr, hint: &str) -> String {
    let browser = reqwest::Client::builder()
        .redirect(Policy::none())
        .build()
        .unwrap();
    let key = gateway.app.pushable_key.expose();
    let begin = format!("http://{http}/connect/{key}?plugin=plugin_a&login_hint={hint}");
    let mut answer = browser
        .post(begin)
        .header(COOKIE, crate::connecting::BROWSER)
        .send()
        .await
        .unwrap();
    let mut last = String::new();
    // To the provider, back, and to the app or the page at the end.
    for _ in 0..3 {
        let Some(location) = answer.headers().get(LOCATION) else {
            break;
        };
        location.to_str().unwrap().clone_into(&mut last);
        crate::connecting::keep_cookies(answer.headers());
        if !last.contains("127.0.0.1") && !last.contains("localhost") {
            break;
        }
        answer = browser
            .get(&last)
            .header(COOKIE, crate::connecting::cookies_at(&last))
            .send()
            .await
            .unwrap();
    }
    last
}

#[tokio::test]
async fn mailboxes_and_those_not_connected_are_counted() {
    let gateway = Gateway::start().await;
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    let http = serve.ready().await.http;
    let connected = "mailgate_mailboxes_connected_total{plugin=\"plugin_a\"}";
    let denied = "mailgate_connect_failures_total{plugin=\"plugin_a\",reason=\"access_denied\"}";
    assert!(value(&scrape(metrics).await, denied) < 1.0);
    let end = connect(&gateway, http, "deny@sandbox.example").await;
    let scraped = scrape(metrics).await;
    assert!((value(&scraped, denied) - 1.0).abs() < 1e-9, "{end}");
    assert!(value(&scraped, connected) < 1.0);
    let end = connect(&gateway, http, "ada@sandbox.example").await;
    let scraped = scrape(metrics).await;
    assert!((value(&scraped, connected) - 1.0).abs() < 1e-9, "{end}");
    assert!((value(&scraped, denied) - 1.0).abs() < 1e-9);
    serve.terminate().await;

    // What there is at a start is counted then.
    let mut database = gateway.database().await;
    let (active, disconnected): (i64, i64) = sqlx::query_as(
        "SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status <> 'active')
         FROM mailboxes WHERE plugin = 'plugin_a'",
    )
    .fetch_one(&mut database)
    .await
    .unwrap();
    assert!(active >= 1);
    sqlx::query(
        "UPDATE mailboxes SET status = 'disconnected', disconnected_at = now()
         WHERE id = (SELECT id FROM mailboxes WHERE plugin = 'plugin_a' AND status = 'active' LIMIT 1)",
    )
    .execute(&mut database)
    .await
    .unwrap();
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    serve.ready().await;
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    for (state, expected) in [("active", active - 1), ("disconnected", disconnected + 1)] {
        let sample = format!("mailgate_mailboxes{{plugin=\"plugin_a\",state=\"{state}\"}}");
        comes_to(metrics, &sample, expected as f64).await;
        let other = format!("mailgate_mailboxes{{plugin=\"plugin_b\",state=\"{state}\"}}");
        comes_to(metrics, &other, 0.0).await;
    }
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_refused_oauth_client_is_shown_until_it_is_accepted() {
    let gateway = Gateway::start().await;
    let refused = "mailgate_oauth_client_refused{plugin=\"plugin_a\",reason=\"refused\"}";
    let expired = "mailgate_oauth_client_refused{plugin=\"plugin_a\",reason=\"expired\"}";
    for (secret, expected) in [(Some("wrong"), 1.0), (None, 0.0)] {
        let metrics = ports::local_address();
        let mut serve = replica(&gateway).set("METRICS__LISTEN", metrics.to_string());
        if let Some(secret) = secret {
            serve = serve.set("PLUGINS__PLUGIN_A__CLIENT_SECRET", secret);
        }
        let mut serve = serve.start();
        let addresses = serve.ready().await;
        assert!(value(&scrape(metrics).await, refused) < 1.0);
        let authorization = &gateway.sandbox.authorization;
        authorization.expire_access_tokens().await.unwrap();
        sqlx::query("UPDATE mailboxes SET access_token_expires_at = now()")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        let mut client = authenticated(&gateway, addresses.starttls).await;
        let message = b"From: ada@sandbox.example\r\nSubject: Hello\r\n\r\nIt works.";
        let reply = client.submit("bob@example.com", message).await;
        // Nobody is disconnected: it waits where it can't leave.
        assert!(reply.starts_with("250 "), "{reply}");
        let scraped = scrape(metrics).await;
        assert!(
            (value(&scraped, refused) - expected).abs() < 1e-9,
            "{reply}"
        );
        assert!(value(&scraped, expired) < 1.0);
        drop(client);
        serve.terminate().await;
        let said = serve.stderr();
        let lines = said
            .lines()
            .filter(|line| line.contains("the provider refuses the OAuth client"));
        assert_eq!(lines.count(), usize::from(secret.is_some()), "{said}");
    }
    gateway.stop().await;
}
