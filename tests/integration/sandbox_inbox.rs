//! The sandbox's inbox as people use it, in Chromium.

use serde_json::json;

use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;

/// A message of the app's, sent while a browser looks on.
fn sends(gateway: &Gateway, subject: &str, html: &str) -> Step {
    let keys = json!({ "x-send-key": gateway.app.send_key.expose() });
    let message = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com",
        "subject": subject, "body": "Hello", "html": html,
    });
    Step::Post(format!("{}/send", gateway.daemon.base_url), keys, message)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_by_themselves_and_are_found_read_and_deleted() {
    let gateway = Gateway::start().await;
    let inbox = gateway.sandbox.url();
    let html = "<script>document.body.textContent = 'It ran'</script><h1>It works</h1>\
        <img src=\"https://tracker.example/x.png\"><a href=\"https://elsewhere.example/\">A link</a>";
    for (device, browser) in [("desk", Browser::desktop()), ("phone", Browser::phone())] {
        for scheme in ["light", "dark"] {
            let results = browser
                .clone()
                // What the message brings is refused.
                .allow_refused()
                .run(&[
                    Step::ColorScheme(scheme),
                    Step::goto(inbox.clone()),
                    Step::expect_text("Nothing has arrived yet"),
                    Step::Accessible(()),
                    Step::TabTo("[type=search]".to_owned()),
                    sends(&gateway, "The first", html),
                    Step::expect_text("The first"),
                    Step::TabTo("#messages a".to_owned()),
                    sends(&gateway, "The second", "<p>Second</p>"),
                    // The focus stays on the first one, which is the second now.
                    Step::expect_text("The second"),
                    Step::expect_text("2 messages, newest first"),
                    Step::Accessible(()),
                    Step::Fits(()),
                    Step::screenshot(&format!("sandbox-inbox-{device}-{scheme}")),
                    Step::Press(vec!["Enter"]),
                    Step::expect_url("/messages/"),
                    Step::expect_text("The first"),
                    Step::Accessible(()),
                    Step::Fits(()),
                    Step::screenshot(&format!("sandbox-message-{device}-{scheme}")),
                    Step::Read("frame=h1".to_owned()),
                    Step::goto(format!("{inbox}/?q=second")),
                    Step::expect_text("1 message with these words"),
                    Step::click("#messages a"),
                    Step::click("role=button[name=\"Delete\"]"),
                    Step::expect_text("1 message, newest first"),
                    Step::click("text=Delete all…"),
                    Step::click("role=button[name=\"Delete them all\"]"),
                    Step::expect_text("Nothing has arrived yet"),
                ])
                .await;
            assert_eq!(results[10].loads, results[1].loads, "loaded once");
            let read = results.iter().find_map(|result| result.text.clone());
            assert_eq!(read.unwrap(), "It works");
            let refused: Vec<&String> = results.iter().flat_map(|result| &result.refused).collect();
            assert!(
                !refused.iter().any(|text| text.contains("Refused to frame")),
                "{refused:?}"
            );
        }
    }
    assert!(gateway.arrived().await.is_empty());
    gateway.stop().await;
}
