//! The overview: its numbers are those of the statistics.

use mailgate_types::clock::Clock;
use mailgate_types::plugin::Plugin;
use serde_json::json;

use super::visitor::Visitor;
use crate::support::caller::Caller;
use crate::support::gateway::Gateway;

#[tokio::test]
async fn the_numbers_equal_the_statistics() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let page = visitor.get("/portal").await;
    for words in [
        "No messages yet",
        "Get started",
        "Nothing needs your attention",
    ] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    for to in ["bob@example.com", "eve@example.com", "permfail@example.com"] {
        gateway.send_to(to).await;
    }
    let caller = Caller::owner(&gateway).await;
    let day = async || {
        let stats = caller.get("/email-stats?period=day").await.success(200);
        stats["data"].as_array().unwrap().last().unwrap().clone()
    };
    gateway
        .eventually("all are counted", async |_| {
            let day = day().await;
            day["sent"] == json!(2) && day["failed_perm"] == json!(1)
        })
        .await;
    let page = visitor.get("/portal").await;
    let last = page.text.split("Daily figures").nth(1).unwrap();
    let last = last.split("</table>").next().unwrap();
    assert_eq!(last.matches("<th scope=\"row\"").count(), 30, "{last}");
    let row = last.rsplit("<tr>").next().unwrap();
    for (label, count) in [("Sent", 2), ("Waiting", 0), ("Failed", 1), ("Bounced", 0)] {
        let cell = format!("<td data-label=\"{label}\">{count}</td>");
        assert!(row.contains(&cell), "{cell}: {row}");
    }
    assert_eq!(
        page.text.matches("<rect class=\"whole\"").count(),
        30,
        "30 days"
    );
    let whole = page.text.rsplit("<rect class=\"whole\"").next().unwrap();
    let (bar, _) = whole.split_once("</a>").unwrap();
    for class in ["good", "bad"] {
        assert!(bar.contains(&format!("<rect class=\"{class}\"")), "{bar}");
    }
    let mailbox = page.text.split("Top 10 mailboxes").nth(1).unwrap();
    assert!(mailbox.contains("@sandbox.example"), "{mailbox}");
    assert!(!page.text.contains("style="), "{}", page.text);
    let none = visitor.get("/portal?app=nothing").await;
    assert!(none.status == 200 && none.text.contains("No messages yet"));
    gateway.stop().await;
}

#[tokio::test]
async fn what_needs_attention_is_said() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let other = gateway.connect(None, Plugin::B, "second@sandbox.example");
    let other = other.await;
    sqlx::query(
        "UPDATE mailboxes SET status = 'disconnected', disconnect_reason = 'invalid_grant',
                disconnected_at = $2, email = '<b>second@sandbox.example' WHERE id = $1",
    )
    .bind(other.credential.0)
    .bind(gateway.clock.now())
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    gateway.send_to("tempfail@example.com").await;
    gateway
        .eventually("it is said", async |_| {
            let page = visitor.get("/portal").await.text;
            page.contains("Waiting") && page.contains("1 message waiting")
        })
        .await;
    let page = visitor.get("/portal").await.text;
    assert!(page.contains("&lt;b&gt;second@sandbox.example") || page.contains("&#60;b&#62;second"));
    assert!(page.contains("access was withdrawn"), "{page}");
    assert!(!page.contains("<b>second"), "{page}");
    gateway.stop().await;
}
