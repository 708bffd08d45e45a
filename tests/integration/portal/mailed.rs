//! By a link that comes by mail.

use mail_parser::MessageParser;

use super::visitor::{Visitor, api_secret};
use crate::support::gateway::Gateway;

const PORTAL: &str = "https://portal.example/portal";

async fn gateway() -> Gateway {
    // With the sandbox's relay.
    Gateway::builder()
        .billed()
        .set("PORTAL__BASE_URL", PORTAL)
        .start()
        .await
}

/// The mails that came to the sandbox's inbox, once there are so many.
async fn mails(gateway: &Gateway, count: usize) -> Vec<String> {
    gateway
        .eventually("the mail", async |gateway| {
            gateway.sandbox.inbox.list(10).len() == count
        })
        .await;
    let mut texts = Vec::new();
    for arrived in gateway.sandbox.inbox.list(10) {
        assert_eq!(arrived.envelope_to, ["owner@example.com"]);
        let raw = gateway.sandbox.inbox.raw(&arrived.id).await.unwrap();
        let raw = raw.unwrap();
        let parsed = MessageParser::new().parse(&raw).unwrap();
        assert_eq!(parsed.subject(), Some("Sign in to portal.example"));
        texts.push(parsed.body_text(0).unwrap().into_owned());
    }
    texts
}

/// The paths of the links in a mail.
fn paths(text: &str) -> Vec<String> {
    let links = text.lines().filter_map(|line| line.strip_prefix(PORTAL));
    links
        .map(|path| format!("/portal{}", path.trim()))
        .collect()
}

#[tokio::test]
async fn the_link_signs_its_reader_in() {
    let gateway = gateway().await;
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let form = visitor.get("/portal/sign-in").await;
    assert!(form.text.contains("Email me a link"), "{}", form.text);
    // Another spelling of the case is the same account.
    let asked = [("email", " Owner@Example.com ")];
    let page = visitor.post("/portal/sign-in-mail", &asked).await;
    assert_eq!(
        (page.status, page.location()),
        (303, "/portal/sign-in?mailed=1")
    );
    let page = visitor.get(page.location()).await;
    assert!(page.text.contains("is on its way"), "{}", page.text);

    let mails = mails(&gateway, 1).await;
    let paths = paths(&mails[0]);
    assert_eq!(paths.len(), 1, "{mails:?}");
    // Opening it, as scanners do, uses nothing up.
    for _ in 0..2 {
        assert_eq!(visitor.get(&paths[0]).await.status, 200);
    }
    gateway.clock.advance(chrono::TimeDelta::minutes(14));
    let page = visitor.post(&paths[0], &[]).await;
    assert_eq!((page.status, page.location()), (303, "/portal"));
    visitor.keep_cookie(&page);
    // Who has just come by a link needs no API secret.
    let page = visitor
        .post("/portal/settings/api-secret/reveal", &[])
        .await;
    assert_eq!(page.status, 200, "{}", page.text);
    let again = visitor.post(&paths[0], &[]).await;
    assert_eq!(again.status, 410);
    gateway.stop().await;
}

#[tokio::test]
async fn strangers_learn_nothing_and_fill_no_mailbox() {
    let gateway = gateway().await;
    let visitor = Visitor::new(&gateway.daemon.base_url);
    for email in ["nobody@example.com", "owner@example.com.evil.example"] {
        let page = visitor
            .post("/portal/sign-in-mail", &[("email", email)])
            .await;
        assert_eq!(
            (page.status, page.location()),
            (303, "/portal/sign-in?mailed=1")
        );
    }
    for wrong in ["", "x", "a@b\r\nBcc: c@example.com", "<script>@example.com"] {
        let page = visitor
            .post("/portal/sign-in-mail", &[("email", wrong)])
            .await;
        assert_eq!(page.status, 422, "{wrong}");
        assert!(!page.text.contains("<script>@"), "{}", page.text);
    }
    // Three are open at a time.
    for _ in 0..5 {
        let asked = [("email", "owner@example.com")];
        assert_eq!(
            visitor.post("/portal/sign-in-mail", &asked).await.status,
            303
        );
    }
    mails(&gateway, 3).await;
    gateway.clock.advance(chrono::TimeDelta::minutes(15));
    let late = paths(&mails(&gateway, 3).await[0]);
    assert_eq!(visitor.get(&late[0]).await.status, 410);
    let asked = [("email", "owner@example.com")];
    visitor.post("/portal/sign-in-mail", &asked).await;
    let mails = mails(&gateway, 4).await;
    assert!(mails.iter().all(|text| paths(text).len() == 1));
    gateway.stop().await;
}

#[tokio::test]
async fn a_session_alone_moves_no_address() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let settings = visitor.get("/portal/settings").await;
    assert!(settings.text.contains("email-secret"), "{}", settings.text);
    let label = ("label", "Owner");
    let same = [label, ("email", "owner@example.com")];
    assert_eq!(visitor.post("/portal/settings", &same).await.status, 303);
    let eve = ("email", "eve@example.com");
    assert_eq!(
        visitor.post("/portal/settings", &[label, eve]).await.status,
        403
    );
    let secret = api_secret(&gateway).await;
    let proven = [label, eve, ("api_secret", secret.as_str())];
    assert_eq!(visitor.post("/portal/settings", &proven).await.status, 303);
    gateway.stop().await;
}
