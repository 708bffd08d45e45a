//! Bodies that don't come: of strangers, and of those who have a key.

use std::fmt::Write as _;
use std::time::Duration;

use mailgate_sandbox::payprov::{WEBHOOK_SECRET, signature};
use mailgate_types::clock::Clock as _;

use super::raw::{PATIENCE, Raw, first_of};
use crate::support::gateway::Gateway;

const MEBIBYTE: usize = 1 << 20;

/// A signature of the right form, over another body.
fn forged(gateway: &Gateway) -> String {
    let now = gateway.clock.now().timestamp();
    signature(WEBHOOK_SECRET, now, "another body")
}

/// A webhook's header, with a length and a signature.
fn of_webhook(length: usize, signature: &str) -> String {
    format!("Content-Length: {length}\r\nStripe-Signature: {signature}\r\n")
}

fn of_send(gateway: &Gateway, more: &str) -> String {
    let key = gateway.app.send_key.expose();
    format!("X-Send-Key: {key}\r\nContent-Type: application/json\r\n{more}")
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_webhooks_share_a_small_room() {
    let gateway = Gateway::builder().billed().start().await;
    let fields = of_webhook(MEBIBYTE, &forged(&gateway));
    let most = "x".repeat(MEBIBYTE - 1);
    let mut half = Vec::new();
    for _ in 0..24 {
        let mut client = Raw::to(&gateway).await;
        client.begin("POST", "/payprov/webhook", &fields).await;
        // One that is refused in between takes no more.
        drop(client.try_write(&most).await);
        half.push(client);
    }
    // One address has a quarter of 16 MiB: four whole bodies, or some more of which a part has come.
    let refused = first_of(&mut half, 16).await;
    assert_eq!(refused.len(), 16);
    for answered in refused.into_iter().flatten() {
        assert_eq!(answered.problem(), (503, "overloaded"));
        assert!(answered.header.contains("retry-after: "));
    }
    // Who has a key, and who only asks how it is, is not refused for it.
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    let mut balancer = Raw::to(&gateway).await;
    balancer.begin("GET", "/healthz", "").await;
    assert_eq!(balancer.answer().await.status, 200);
    // What is held is given back with the connections.
    drop(half);
    let body = r#"{"id":"evt_1","type":"charge.refunded","data":{"object":{}}}"#;
    let good = signature(WEBHOOK_SECRET, gateway.clock.now().timestamp(), body);
    gateway
        .eventually("room for an event", async |gateway| {
            let mut client = Raw::to(gateway).await;
            let fields = of_webhook(body.len(), &good);
            client.begin("POST", "/payprov/webhook", &fields).await;
            client.write(body).await;
            client.answer().await.status == 200
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_refused_before_its_body() {
    let unbilled = Gateway::start().await;
    let billed = Gateway::builder().billed().start().await;
    let now = billed.clock.now().timestamp();
    let old = signature(WEBHOOK_SECRET, now - 400, "{}");
    let formless = format!("t={now},v1=zz");
    let good = forged(&billed);
    for (gateway, signature, expected) in [
        (&unbilled, Some(&good), (409, "billing_not_configured")),
        (&billed, None, (400, "invalid_signature")),
        (&billed, Some(&formless), (400, "invalid_signature")),
        (&billed, Some(&old), (400, "invalid_signature")),
    ] {
        let mut fields = "Content-Length: 1000\r\nExpect: 100-continue\r\n".to_owned();
        if let Some(signature) = signature {
            write!(fields, "Stripe-Signature: {signature}\r\n").unwrap();
        }
        let mut client = Raw::to(gateway).await;
        client.begin("POST", "/payprov/webhook", &fields).await;
        assert_eq!(client.answer().await.problem(), expected);
    }
    unbilled.stop().await;
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_pauses_or_crawls_ends() {
    let gateway = Gateway::builder()
        .billed()
        .set("LIMITS__HTTP_BODY_IDLE_SECONDS", 1)
        .set("LIMITS__MINIMUM_BYTES_PER_SECOND", 1_000)
        .start()
        .await;
    let webhook = of_webhook(1_000, &forged(&gateway));
    let chunked = "Transfer-Encoding: chunked\r\n";
    // What came fast at first buys nothing for what comes after.
    let burst = "x".repeat(80_000);
    let burst = burst.as_str();
    for (path, fields, begins_with, crawls) in [
        ("/payprov/webhook", webhook.clone(), "", false),
        ("/payprov/webhook", webhook, "", true),
        (
            "/send",
            of_send(&gateway, "Content-Length: 1000000\r\n"),
            "",
            false,
        ),
        ("/send", of_send(&gateway, chunked), "", false),
        (
            "/send",
            of_send(&gateway, "Content-Length: 1000000\r\n"),
            "",
            true,
        ),
        (
            "/send",
            of_send(&gateway, "Content-Length: 1000000\r\n"),
            burst,
            true,
        ),
    ] {
        let mut client = Raw::to(&gateway).await;
        client.begin("POST", path, &fields).await;
        client.write(begins_with).await;
        let answered = async {
            loop {
                if crawls {
                    drop(client.try_write(" ").await);
                }
                let answered = client.answer_within(Duration::from_millis(50)).await;
                if let Some(answered) = answered {
                    break answered;
                }
            }
        };
        let answered = tokio::time::timeout(PATIENCE, answered).await;
        let answered = answered.unwrap_or_else(|_| panic!("{path} {crawls}: goes on"));
        assert_eq!(answered.problem(), (408, "body_too_slow"), "{path}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_no_body_that_does_not_come() {
    let gateway = Gateway::builder().billed().start().await;
    let mut half = Vec::new();
    for (path, fields) in [
        ("/payprov/webhook", of_webhook(1_000, &forged(&gateway))),
        ("/send", of_send(&gateway, "Content-Length: 1000\r\n")),
        ("/send", of_send(&gateway, "Transfer-Encoding: chunked\r\n")),
    ] {
        let mut client = Raw::to(&gateway).await;
        let fields = format!("Expect: 100-continue\r\n{fields}");
        client.begin("POST", path, &fields).await;
        // It is read from here on.
        assert_eq!(client.answer().await.status, 100, "{path}");
        half.push(client);
    }
    // And a header that doesn't come.
    let mut header = Raw::to(&gateway).await;
    header.write("GET / HTTP/1.1\r\nX-Half: ").await;
    let began = std::time::Instant::now();
    let answers = async {
        for client in &mut half {
            assert_eq!(client.answer().await.problem(), (503, "stopping"));
        }
        assert!(header.is_closed().await);
    };
    tokio::join!(gateway.stop(), answers);
    println!("the end took {:?} with stalled bodies", began.elapsed());
    // Far from shutdown.seconds, which is 30.
    assert!(began.elapsed() < PATIENCE);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_for_a_body_that_is_too_large() {
    let gateway = Gateway::builder().billed().start().await;
    let caller = crate::support::caller::Caller::owner(&gateway).await;
    let secret = format!(
        "X-Api-Secret: {}\r\nContent-Type: application/json\r\n",
        caller.secret
    );
    for (path, fields, limit) in [
        (
            "/payprov/webhook",
            of_webhook(0, &forged(&gateway)).replace("Content-Length: 0\r\n", ""),
            MEBIBYTE,
        ),
        ("/send", of_send(&gateway, ""), 2 * 26_214_400),
        ("/apps", secret, 262_144),
    ] {
        let mut client = Raw::to(&gateway).await;
        let one_more = format!(
            "{fields}Content-Length: {}\r\nExpect: 100-continue\r\n",
            limit + 1
        );
        client.begin("POST", path, &one_more).await;
        assert_eq!(
            client.answer().await.problem(),
            (413, "payload_too_large"),
            "{path}"
        );
        let mut client = Raw::to(&gateway).await;
        let just = format!("{fields}Content-Length: {limit}\r\nExpect: 100-continue\r\n");
        client.begin("POST", path, &just).await;
        assert_eq!(client.answer().await.status, 100, "{path}");
    }
    gateway.stop().await;
}
