//! Failures in plain English: of a message on its page, and of a mailbox only what concerns the mailbox.

use crate::portal::visitor::Visitor;
use crate::support::gateway::Gateway;

/// Askama's form of an apostrophe.
fn escaped(text: &str) -> String {
    text.replace('\'', "&#39;")
}

#[tokio::test]
async fn a_messages_page_begins_with_what_happened_and_what_to_do() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    for (to, meaning, action) in [
        (
            "permfail@example.com",
            "The recipient's address does not exist, or accepts no mail.",
            "Check the address with the recipient and correct it in your app",
        ),
        (
            "tempfail@example.com",
            "A mail server on the way has a problem of its own, and does not take the message.",
            "Nothing to do: the gateway tries again by itself.",
        ),
    ] {
        let (_, sent) = gateway.send_to(to).await;
        let id = sent["log_id"].as_str().unwrap();
        let page = visitor.get(&format!("/portal/messages/{id}")).await.text;
        let (at, facts) = (page.find(&escaped(meaning)), page.find("<dl>"));
        assert!(at.is_some() && at < facts, "{page}");
        assert!(page.contains(action), "{page}");
    }
    let (_, sent) = gateway.send_to("bob@example.com").await;
    let id = sent["log_id"].as_str().unwrap();
    let page = visitor.get(&format!("/portal/messages/{id}")).await.text;
    assert!(!page.contains("class=\"note"), "{page}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_mailbox_shows_the_last_error_that_is_its_own() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let mailbox = format!("/portal/mailboxes/{}", gateway.mailbox.credential);
    let mut failed = Vec::new();
    for _ in 0..3 {
        let (_, sent) = gateway.send_to("permfail@example.com").await;
        failed.push(sent["log_id"].as_str().unwrap().to_owned());
    }
    for path in [mailbox.as_str(), "/portal/mailboxes"] {
        let page = visitor.get(path).await.text;
        let says = ["No such user", "does not exist", "<dt>Last error"];
        assert!(!says.iter().any(|it| page.contains(it)), "{path}: {page}");
    }
    // An earlier one was the mailbox's.
    let second: mailgate_types::ids::LogId = failed[1].parse().unwrap();
    sqlx::query("UPDATE email_logs SET error_message = $1 WHERE id = $2")
        .bind("550 5.4.5 Daily user sending limit exceeded.")
        .bind(second.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let meaning = "reached its provider's daily sending limit.";
    for path in [mailbox.as_str(), "/portal/mailboxes"] {
        let page = visitor.get(path).await.text;
        assert!(page.contains(&escaped(meaning)), "{path}: {page}");
    }
    let page = visitor.get(&mailbox).await.text;
    assert!(page.contains("550 5.4.5"), "{page}");
    assert!(
        page.contains(&format!("/portal/messages/{second}\">Open")),
        "{page}"
    );
    // A new connection has followed it.
    sqlx::query("UPDATE mailboxes SET connected_at = now() + interval '1 hour'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let page = visitor.get(&mailbox).await.text;
    assert!(!page.contains("<dt>Last error"), "{page}");
    gateway.stop().await;
}
