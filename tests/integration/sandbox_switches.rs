//! The sandbox's switches, and what the gateway makes of them.

use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use crate::peers::browser::{Browser, Step};
use crate::replies::events;
use crate::spool::advance_to_next_attempt;
use crate::support::gateway::Gateway;

const BOB: &str = "bob@example.com";

/// Sets the switches, as a script does.
async fn switch(gateway: &Gateway, setting: Value) {
    let address = format!("{}/switches", gateway.sandbox.url());
    let answer = gateway.http.put(address).json(&setting).send().await;
    assert_eq!(answer.unwrap().status(), 200);
}

/// How they are set.
async fn switches(gateway: &Gateway) -> Value {
    let address = format!("{}/switches", gateway.sandbox.url());
    let answer = gateway.http.get(address).send().await.unwrap();
    answer.json().await.unwrap()
}

fn off() -> Value {
    json!({ "effect": null, "repeat": false })
}

/// The app wants to be told.
async fn listen(gateway: &Gateway) {
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

/// The data of the one event of this name.
async fn told(gateway: &Gateway, name: &str) -> Value {
    gateway
        .eventually("the event", async |gateway| {
            !events(gateway, name).await.is_empty()
        })
        .await;
    let mut told = events(gateway, name).await;
    assert_eq!(told.len(), 1, "{told:?}");
    told[0]["data"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_fail_once_or_until_switched_off() {
    let gateway = Gateway::start().await;
    switch(&gateway, json!({ "effect": "fail" })).await;
    let (status, answer) = gateway.send_to(BOB).await;
    assert_eq!(
        (status, &answer["code"]),
        (502, &json!("provider_rejected")),
        "{answer}"
    );
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("550 5.1.1"), "{answer}");
    assert_eq!(switches(&gateway).await, off());
    assert_eq!(gateway.send_to(BOB).await.0, 200);

    switch(&gateway, json!({ "effect": "fail", "repeat": true })).await;
    for _ in 0..2 {
        assert_eq!(gateway.send_to(BOB).await.0, 502);
    }
    let address = format!("{}/switches", gateway.sandbox.url());
    let answer = gateway.http.delete(address).send().await.unwrap();
    assert_eq!(answer.status(), 204);
    assert_eq!(gateway.send_to(BOB).await.0, 200);
    assert_eq!(gateway.arrived().await.len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_deferred_and_then_sent() {
    let gateway = Gateway::start().await;
    switch(&gateway, json!({ "effect": "defer" })).await;
    let (status, answer) = gateway.send_to(BOB).await;
    assert_eq!(
        (status, &answer["status"]),
        (202, &json!("failed_temp")),
        "{answer}"
    );
    assert!(gateway.arrived().await.is_empty());
    advance_to_next_attempt(&gateway).await;
    gateway
        .eventually("the message is sent", async |gateway| {
            gateway.logged().await == [("sent".to_owned(), None)]
        })
        .await;
    assert_eq!(gateway.arrived().await.len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_takes_its_time() {
    let gateway = Gateway::start().await;
    let hold = gateway.sandbox.slow.hold();
    switch(&gateway, json!({ "effect": "slow" })).await;
    let release = async {
        gateway
            .eventually("the message waits", async |gateway| {
                gateway.sandbox.slow.waiting() == 1
            })
            .await;
        drop(hold);
    };
    let ((status, answer), ()) = tokio::join!(gateway.send_to(BOB), release);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(switches(&gateway).await, off());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_bounces_and_another_is_answered() {
    let gateway = Gateway::builder().reading().start().await;
    listen(&gateway).await;
    switch(&gateway, json!({ "effect": "bounce" })).await;
    let (status, sent) = gateway.send_to(BOB).await;
    assert_eq!(status, 200, "{sent}");
    let bounce = told(&gateway, "email.bounced").await;
    assert_eq!(bounce["log_id"], sent["log_id"]);
    assert_eq!(bounce["to_address"], BOB);
    assert_eq!(bounce["bounce_type"], "permanent");
    assert_eq!(bounce["status"], "5.1.1");

    switch(&gateway, json!({ "effect": "reply" })).await;
    let (status, sent) = gateway.send_to("carol@example.com").await;
    assert_eq!(status, 200, "{sent}");
    let reply = told(&gateway, "email.reply").await;
    assert_eq!(reply["message_id"], sent["message_id"], "{reply}");
    assert_eq!(reply["from_address"], "carol@example.com");
    assert_eq!(switches(&gateway).await, off());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_apis_fail_by_them_and_leave_bounces_to_smtp() {
    let gateway = Gateway::builder()
        .set("SANDBOX__PLUGIN_A", "gmail_api")
        .set("SANDBOX__PLUGIN_B", "graph")
        .start()
        .await;
    gateway
        .connect(None, Plugin::B, "bea@sandbox.example")
        .await;
    for plugin in ["plugin_a", "plugin_b"] {
        let send = async || {
            let fields = json!({ "to": BOB, "subject": "s", "body": "b", "plugin": plugin });
            gateway.send(fields).await
        };
        for (effect, expected) in [("fail", 502), ("defer", 202), ("slow", 200)] {
            switch(&gateway, json!({ "effect": effect })).await;
            let (status, answer) = send().await;
            assert_eq!(status, expected, "{plugin} {effect} {answer}");
            assert_eq!(switches(&gateway).await, off());
        }
        switch(&gateway, json!({ "effect": "bounce" })).await;
        // What was deferred may hold it back, so that it waits too.
        let (status, answer) = send().await;
        assert!(matches!(status, 200 | 202), "{plugin} {answer}");
        assert_eq!(switches(&gateway).await["effect"], "bounce");
    }
    gateway.stop().await;
}

/// The widths of the list and of the message, and whether they are beside each other.
const PANES: &str = "[...document.querySelectorAll('.list, .preview')]
    .map((pane) => pane.getBoundingClientRect())
    .map((box) => `${Math.round(box.left)}+${Math.round(box.width)}`).join(' ')";

/// The lines of the search's button.
const LINES: &str = "(() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector('.search button'));
    return range.getClientRects().length;
  })()";

/// The sum of layout shifts since the page was opened, and what the frame with the HTML has seen.
const SHIFT: &str = "new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
      .observe({ type: 'layout-shift', buffered: true });
    const frame = document.querySelector('iframe');
    let loads = 0;
    frame.addEventListener('load', () => { loads += 1; });
    setTimeout(() => resolve(`${sum.toFixed(2)} ${loads}`), 5000);
  })";

#[tokio::test(flavor = "multi_thread")]
async fn two_panes_where_there_is_room_and_nothing_breaks() {
    let gateway = Gateway::start().await;
    let inbox = gateway.sandbox.url();
    let longest = format!("{}@stadtwerke-oberammergau.example.com", "a".repeat(64));
    for number in 0..30 {
        let subject = format!("Message {number} {}", "x".repeat(200));
        let fields =
            json!({ "to": longest, "subject": subject, "body": "x", "html": "<h1>It works</h1>" });
        assert_eq!(gateway.send(fields).await.0, 200);
    }
    for (width, height, panes) in [
        (1280, 900, "0+384 384+896"),
        (1000, 800, "0+384 384+616"),
        (390, 844, "0+390 0+0"),
    ] {
        let results = Browser::sized(width, height)
            .run(&[
                Step::goto(inbox.clone()),
                Step::Measure(PANES),
                Step::Measure(LINES),
                Step::Fits(()),
                Step::Accessible(()),
                Step::click("#messages li:first-child a"),
                Step::expect_url("/messages/"),
                Step::Fits(()),
                Step::Measure(SHIFT),
                Step::Accessible(()),
            ])
            .await;
        assert_eq!(results[1].text.as_deref(), Some(panes), "{width}");
        assert_eq!(results[2].text.as_deref(), Some("1"), "{width}");
        assert_eq!(results[8].text.as_deref(), Some("0.00 0"), "{width}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_and_switches_need_no_scripts() {
    let gateway = Gateway::start().await;
    let inbox = gateway.sandbox.url();
    let fields =
        json!({ "to": BOB, "subject": "Tabs", "body": "The text", "html": "<h1>It works</h1>" });
    assert_eq!(gateway.send(fields).await.0, 200);
    let results = Browser::desktop()
        .without_javascript()
        .run(&[
            Step::goto(inbox.clone()),
            Step::expect_text("1 unread"),
            Step::click("#messages a"),
            Step::Read("frame=h1".to_owned()),
            Step::click("role=link[name=\"Text\"]"),
            Step::expect_text("The text"),
            Step::click("role=link[name=\"Headers\"]"),
            Step::expect_text("X-Mailgate-Id"),
            Step::click("role=link[name=\"Source\"]"),
            Step::expect_text("Content-Type: multipart/alternative"),
            Step::click("role=link[name=\"Attachments (0)\"]"),
            Step::expect_text("This message has no attachments."),
            Step::click("role=button[name=\"Bounce\"]"),
            Step::expect_url("/messages/"),
            Step::expect_text("The next message will bounce."),
            Step::click("role=button[name=\"Cancel\"]"),
            Step::expect_text("until switched off"),
            Step::goto(inbox),
            Step::expect_text("1 message, newest first"),
        ])
        .await;
    assert_eq!(results[3].text.as_deref(), Some("It works"));
    assert_eq!(switches(&gateway).await, off());
    gateway.stop().await;
}
