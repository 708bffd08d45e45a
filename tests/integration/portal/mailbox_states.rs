//! The pages of mailboxes: how each one is, the link to connect it again, and disconnecting it.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use reqwest::Method;

use super::visitor::{Visitor, answer};
use crate::support::gateway::{Gateway, create_app};

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x>";

/// The page of the demo app's mailbox.
async fn mailbox(gateway: &Gateway) -> String {
    let id: sqlx::types::Uuid = sqlx::query_scalar("SELECT id FROM mailboxes LIMIT 1")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    format!(
        "/portal/mailboxes/{}",
        mailgate_types::ids::CredentialId(id)
    )
}

#[tokio::test]
async fn a_mailbox_is_shown_reconnected_and_disconnected() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let mailbox = mailbox(&gateway).await;
    let list = visitor.get("/portal/mailboxes").await;
    for words in [mailbox.as_str(), "Connected", "@sandbox.example"] {
        assert!(list.text.contains(words), "{words}: {}", list.text);
    }
    for (filter, is_there) in [
        ("status=connected", true),
        ("status=disconnected", false),
        ("app=nothing", false),
    ] {
        let page = visitor.get(&format!("/portal/mailboxes?{filter}")).await;
        assert_eq!(page.text.contains(&mailbox), is_there, "{filter}");
        assert_eq!(page.text.contains("Nothing matches"), !is_there, "{filter}");
    }
    let page = visitor.post(&format!("{mailbox}/reconnect"), &[]).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("/connect/pk_") && page.text.contains("?session="));

    let page = visitor.get(&format!("{mailbox}/disconnect")).await;
    assert!(
        page.text.contains("Disconnect this mailbox?"),
        "{}",
        page.text
    );
    let page = visitor.post(&format!("{mailbox}/disconnect"), &[]).await;
    let done = format!("{mailbox}?done=disconnected");
    assert_eq!((page.status, page.location()), (303, done.as_str()));
    let page = visitor.get(&done).await;
    for words in ["Disconnected", "You disconnected this mailbox"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let (action, actor, address): (String, String, Option<String>) =
        sqlx::query_as("SELECT action, actor, address FROM audit_entries ORDER BY id DESC LIMIT 1")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    assert!(action.contains("disconnected"), "{action}");
    assert_eq!(
        (actor.as_str(), address.as_deref()),
        ("subscriber", Some("127.0.0.1"))
    );
    let page = visitor.post(&format!("{mailbox}/disconnect"), &[]).await;
    assert_eq!(page.status, 409, "{}", page.text);
    gateway.stop().await;
}

#[tokio::test]
async fn a_pause_says_its_end_and_no_beginning() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let mailbox = mailbox(&gateway).await;
    let until = gateway.clock.now() + TimeDelta::hours(1);
    sqlx::query("UPDATE mailboxes SET parked_until = $1")
        .bind(until)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let page = visitor.get(&mailbox).await.text;
    assert!(
        page.contains("Paused") && page.contains("The pause ends"),
        "{page}"
    );
    assert!(page.contains(&until.format("%Y-%m-%d %H:%M:%S UTC").to_string()));
    assert!(!page.contains("</span> since"), "{page}");
    gateway.stop().await;
}

#[tokio::test]
async fn markup_stays_text_and_others_have_no_say() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let mailbox = mailbox(&gateway).await;
    for statement in [
        "UPDATE mailboxes SET email = $1",
        "UPDATE apps SET name = $1",
    ] {
        sqlx::query(statement)
            .bind(MARKUP)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    for path in [
        "/portal/mailboxes",
        &mailbox,
        &format!("{mailbox}/disconnect"),
    ] {
        let page = visitor.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        for wrong in ["<script>alert", "<img", "sk_", "sek_", "whsec_", "whs_"] {
            assert!(!page.text.contains(wrong), "{path}: {wrong}");
        }
        assert!(page.text.contains("&lt;script&gt;") || page.text.contains("&#60;script&#62;"));
    }
    for action in ["reconnect", "disconnect"] {
        let request = visitor.request(Method::POST, &format!("{mailbox}/{action}"));
        let page = answer(request.header("origin", "https://evil.example")).await;
        assert_eq!(page.status, 403, "{action}");
    }
    let (_, app) = create_app(&gateway.daemon, "Other").await;
    let accounts = &gateway.daemon.accounts;
    let other = accounts.app_credentials(app.id).await.unwrap().unwrap();
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(
        stranger.sign_in(other.api_secret.expose()).await.status,
        303
    );
    assert_eq!(stranger.get(&mailbox).await.status, 404);
    for action in ["reconnect", "disconnect"] {
        let page = stranger.post(&format!("{mailbox}/{action}"), &[]).await;
        assert_eq!(page.status, 404, "{action}");
    }
    let page = stranger.get("/portal/mailboxes").await;
    assert!(page.text.contains("No mailboxes yet"), "{}", page.text);
    let page = visitor.get(&format!("{mailbox}/reconnect")).await;
    assert_eq!(page.status, 405);
    assert!(
        page.header("content-type").starts_with("text/html"),
        "{page:?}"
    );
    gateway.stop().await;
}
