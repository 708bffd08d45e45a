//! The search box of the messages: one text, whatever it is.

use reqwest::Method;
use serde_json::json;

use super::visitor::{Visitor, answer};
use crate::support::gateway::{Gateway, MAILBOX};

/// The search with this text in the box.
fn typed(path: &str, text: &str) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("q", text)
        .finish();
    format!("/portal/{path}?{query}")
}

#[tokio::test]
async fn one_box_finds_by_what_is_typed() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let mut ids = Vec::new();
    for (to, subject) in [
        ("bob@example.com", "Your invoice 7"),
        ("eve@example.com", "Re: to: all @anna 5\" pipe, 10"),
        ("permfail@example.com", "Your invoice 8"),
    ] {
        let message = json!({ "to": to, "subject": subject, "body": "x" });
        let (_, sent) = gateway.send(message).await;
        ids.push(sent["log_id"].as_str().unwrap().to_owned());
    }
    gateway
        .eventually("all are in the log", async |gateway| {
            gateway.logged().await.len() == 3
        })
        .await;
    let message_id: String = sqlx::query_scalar(
        "SELECT message_id FROM email_logs WHERE to_address = 'bob@example.com'",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    let bare = message_id.trim_matches(['<', '>']);
    let bracketed = format!("<{bare}>");
    let by_id = format!("id:{}", ids[2]);
    let of_app = format!("from:{MAILBOX} app:{}", gateway.app.id.0);
    for (text, rows) in [
        ("", 3),
        ("bob@example.com", 1),
        ("to:eve@example.com", 1),
        (MAILBOX, 3),
        ("from:ada@sandbox.example", 3),
        ("from:nobody@example.com", 0),
        (bare, 1),
        (&bracketed, 1),
        (&by_id, 1),
        ("invoice", 2),
        ("your invoice status:failed", 1),
        ("subject:\"invoice 7\" status:sent", 1),
        ("status:bounced", 0),
        ("Re:", 1),
        ("\"to: all\"", 1),
        ("after:2000-01-01", 3),
        ("before:2000-01-01", 0),
        ("@anna", 1),
        ("subject:\"5\\\" pipe, 10\"", 1),
        ("status:SENT", 2),
        (&of_app, 3),
        ("from:ada@sandbox.example app:nobodys", 0),
    ] {
        let page = visitor.get(&typed("messages", text)).await;
        assert_eq!(page.status, 200, "{text}: {}", page.text);
        let found = page.text.matches("<tr data-key").count();
        assert_eq!(found, rows, "{text}: {}", page.text);
        if rows > 0 {
            let (_, link) = page.text.split_once("href=\"/portal/messages.csv").unwrap();
            let (query, _) = link.split_once('"').unwrap();
            let path = format!("/portal/messages.csv{}", query.replace("&amp;", "&"));
            let csv = visitor.get(&path).await;
            assert_eq!(csv.text.lines().count(), rows + 1, "{text}: {}", csv.text);
        }
    }
    let other = format!(
        "/portal/messages?credential_id={}&from_address=nobody%40example.com",
        gateway.mailbox.credential
    );
    let page = visitor.get(&other).await.text;
    assert!(page.contains("Nothing matches"), "{page}");
    let page = visitor
        .get("/portal/messages?subject=5%22+pipe%2C")
        .await
        .text;
    assert!(
        page.contains("5\\&#34; pipe") || page.contains("5\\&quot; pipe"),
        "{page}"
    );
    let page = visitor.get(&typed("messages", "status:sent")).await.text;
    assert!(page.contains("<option value=\"sent\" selected>"), "{page}");
    for (text, wrong) in [
        ("status:open", "Status isn"),
        ("after:yesterday", "From "),
        ("to:bob", "Recipient must be one email address"),
    ] {
        let page = visitor.get(&typed("messages", text)).await;
        assert_eq!(page.status, 422, "{text}");
        assert!(page.text.contains(wrong), "{text}: {}", page.text);
        assert!(page.text.contains("aria-invalid"), "{text}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_log_id_opens_its_message() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    let id = sent["log_id"].as_str().unwrap();
    let message = format!("/portal/messages/{id}");
    gateway
        .eventually("the message is in the log", async |_| {
            visitor.get(&message).await.status == 200
        })
        .await;
    let page = visitor.get(&typed("messages", &format!(" {id} "))).await;
    assert_eq!((page.status, page.location()), (303, message.as_str()));
    let by_script = visitor.request(Method::GET, &typed("messages", id));
    let page = answer(by_script.header("hx-request", "true")).await;
    assert_eq!(
        (page.status, page.header("hx-redirect")),
        (204, message.as_str())
    );
    let unknown = id.replace("log_01", "log_00");
    let page = visitor.get(&typed("messages", &unknown)).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("Nothing matches"), "{}", page.text);
    gateway.stop().await;
}
