//! What can be measured of the pages' look, in Chromium: how much a screen shows, and that nothing breaks or moves.

use serde_json::json;

use super::visitor::api_secret;
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;

/// Rows that are wholly on the screen.
const ROWS: &str = "[...document.querySelectorAll('.rows tbody tr')]
    .filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length";

/// Words of over 40 letters that stand in two lines, outside of what a machine wrote.
const BROKEN: &str = "[...document.querySelectorAll('main *:not(pre, code, .words, script)')]
    .flatMap((element) => [...element.childNodes])
    .filter((node) => node.nodeType === Node.TEXT_NODE)
    .filter((node) => {
      const word = /\\S{40,}/.exec(node.data);
      if (!word) return false;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
    }).map((node) => node.data.trim()).join('; ')";

/// The sum of layout shifts since the page was opened.
const SHIFT: &str = "new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
      .observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => resolve(sum.toFixed(3)), 500);
  })";

/// Primary actions that can be seen.
const PRIMARY: &str =
    "[...document.querySelectorAll('.primary')].filter((it) => it.checkVisibility()).length";

/// Whether there is a way back up.
const TRAIL: &str = "document.querySelectorAll('.trail a').length";

#[tokio::test(flavor = "multi_thread")]
async fn a_screen_shows_much_and_nothing_breaks_or_moves() {
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    let longest = format!("{}@stadtwerke-oberammergau.example.com", "a".repeat(64));
    for number in 0..30 {
        let subject = format!("Message {number} {}", "x".repeat(200));
        let message = json!({ "to": longest, "subject": subject, "body": "x" });
        assert_eq!(gateway.send(message).await.0, 200);
    }
    gateway
        .eventually("all are in the log", async |gateway| {
            gateway.logged().await.len() == 30
        })
        .await;
    let base = &gateway.daemon.base_url;
    let (_, sent) = gateway.send_to(&longest).await;
    let message = format!("messages/{}", sent["log_id"].as_str().unwrap());
    let mailbox = format!("mailboxes/{}", gateway.mailbox.credential);
    let app = format!("apps/{}", gateway.app.slug);
    let pages: [(&str, bool); 9] = [
        ("messages", false),
        ("", false),
        ("mailboxes", false),
        ("apps", false),
        ("webhooks", false),
        ("settings", false),
        (&message, true),
        (&mailbox, true),
        (&app, true),
    ];
    for (browser, most) in [(Browser::sized(1280, 900), 18), (Browser::phone(), 9)] {
        let mut steps = vec![
            Step::goto(format!("{base}/portal/messages")),
            Step::Type(secret.clone()),
            Step::Press(vec!["Enter"]),
            Step::expect_url("/portal/messages$"),
            Step::Measure(ROWS),
        ];
        for (path, _) in &pages {
            steps.push(Step::goto(format!("{base}/portal/{path}")));
            steps.extend([BROKEN, SHIFT, PRIMARY, TRAIL].map(Step::Measure));
        }
        let results = browser.run(&steps).await;
        let text = |at: usize| results[at].text.clone().unwrap();
        let rows: u32 = text(4).parse().unwrap();
        assert!(rows >= most, "{rows} rows");
        for (number, (path, is_below)) in pages.iter().enumerate() {
            let at = 5 + number * 5;
            assert_eq!(text(at + 1), "", "{path}: broken words");
            let shift: f64 = text(at + 2).parse().unwrap();
            assert!(shift < 0.01, "{path}: moves by {shift}");
            let primary: u32 = text(at + 3).parse().unwrap();
            assert!(primary <= 1, "{path}: {primary} primary actions");
            assert_eq!(text(at + 4) != "0", *is_below, "{path}: a way back up");
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_opens_beside_its_list_where_there_is_room() {
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    let id = sent["log_id"].as_str().unwrap().to_owned();
    gateway
        .eventually("it is in the log", async |gateway| {
            gateway.logged().await.len() == 1
        })
        .await;
    let base = &gateway.daemon.base_url;
    let row = || Step::click("#results tbody a.row");
    let signed_in = [
        Step::goto(format!("{base}/portal/messages?app={}", gateway.app.slug)),
        Step::Type(secret),
        Step::Press(vec!["Enter"]),
        Step::expect_url("/portal/messages"),
    ];
    let mut steps = signed_in.to_vec();
    steps.extend([
        row(),
        Step::expect_text("Message to bob@example.com"),
        Step::expect_url("/portal/messages\\?"),
        Step::Accessible(()),
        Step::Fits(()),
        Step::click("#preview button:text('Close')"),
        Step::Measure("document.getElementById('preview').checkVisibility()"),
        row(),
        Step::expect_text("Timeline"),
        // The one that is shown opens.
        row(),
        Step::expect_url(format!("/portal/messages/{id}\\?app=")),
    ]);
    let results = Browser::sized(1440, 900).run(&steps).await;
    assert_eq!(results[10].text.as_deref(), Some("false"));
    let mut steps = signed_in.to_vec();
    steps.extend([row(), Step::expect_url(format!("/portal/messages/{id}"))]);
    Browser::sized(1380, 900).run(&steps).await;
    gateway.stop().await;
}
