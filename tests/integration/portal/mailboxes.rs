//! The pages of mailboxes: how each is and why, connecting one again, and disconnecting it.

use super::visitor::Visitor;
use crate::support::gateway::{Gateway, MAILBOX, create_app};

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_whose_grant_was_withdrawn_comes_back_as_itself() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let path = format!("/portal/mailboxes/{}", gateway.mailbox.credential);
    let all = visitor.get("/portal/mailboxes").await.text;
    assert!(all.contains(MAILBOX) && all.contains("Connected"), "{all}");
    assert!(all.contains(&format!("href=\"{path}\"")), "{all}");
    let page = visitor.get(&path).await.text;
    assert!(page.contains("No mail in 30 days"), "{page}");
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway
        .eventually("it was sent from", async |_| {
            !visitor.get(&path).await.text.contains("No mail in 30 days")
        })
        .await;

    let page = visitor.get(&format!("{path}/disconnect")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let page = visitor.post(&format!("{path}/disconnect"), &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let page = visitor.get(&path).await;
    assert!(page.text.contains("Disconnected"), "{}", page.text);
    let again = visitor.post(&format!("{path}/disconnect"), &[]).await;
    assert_eq!(again.status, 409);
    let gone = visitor.get("/portal/mailboxes?status=connected").await.text;
    assert!(gone.contains("Nothing matches"), "{gone}");
    let overview = visitor.get("/portal").await.text;
    assert!(overview.contains(MAILBOX), "it needs attention: {overview}");

    let page = visitor.post(&format!("{path}/reconnect"), &[]).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let link = format!("{}/connect/", gateway.daemon.base_url);
    assert!(
        page.text.contains(&link) && page.text.contains("session="),
        "{}",
        page.text
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mailboxes_are_found_by_address_and_user() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let mut database = gateway.database().await;
    sqlx::query("UPDATE end_users SET user_id = 'Customer 7'")
        .execute(&mut database)
        .await
        .unwrap();
    let all = [
        ">All <span class=\"soft\">1</span>",
        ">Connected <span class=\"soft\">1</span>",
        ">Disconnected <span class=\"soft\">0</span>",
    ];
    for words in [
        "",
        "%20",
        &MAILBOX[..3].to_uppercase(),
        MAILBOX,
        "Customer%207",
    ] {
        let page = visitor.get(&format!("/portal/mailboxes?q={words}")).await;
        page.says(&all);
        assert!(
            page.text.contains(&gateway.mailbox.credential.to_string()),
            "{words}"
        );
    }
    for words in ["nobody", "customer%207", "Customer", "%25", "_", "%00"] {
        let page = visitor.get(&format!("/portal/mailboxes?q={words}")).await;
        page.says(&[
            "Nothing matches",
            "Clear filters",
            ">All <span class=\"soft\">0</span>",
        ]);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_subscribers_mailbox_is_nothing() {
    let gateway = Gateway::start().await;
    let path = format!("/portal/mailboxes/{}", gateway.mailbox.credential);
    let (_, app) = create_app(&gateway.daemon, "Other").await;
    let other = gateway.daemon.accounts.app_credentials(app.id).await;
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    let page = stranger
        .sign_in(other.unwrap().unwrap().api_secret.expose())
        .await;
    assert_eq!(page.status, 303);
    for path in [
        path.clone(),
        format!("{path}/disconnect"),
        "/portal/mailboxes/x".to_owned(),
    ] {
        assert_eq!(stranger.get(&path).await.status, 404, "{path}");
    }
    for action in ["disconnect", "reconnect"] {
        let page = stranger.post(&format!("{path}/{action}"), &[]).await;
        assert_eq!(page.status, 404, "{action}");
    }
    let none = stranger.get("/portal/mailboxes").await.text;
    assert!(!none.contains(MAILBOX), "{none}");
    gateway.stop().await;
}
