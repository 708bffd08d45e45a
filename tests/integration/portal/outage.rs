//! The portal while its database is away.

use super::visitor::Visitor;
use crate::crash::database::DurablePostgres;
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn without_its_database_it_says_so_on_pages_and_keeps_who_is_signed_in() {
    let mut server = DurablePostgres::start().await;
    let url = server.create_database().await;
    let gateway = Gateway::builder().database(&url).start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    server.kill().await;
    let app = format!("/portal/apps/{}", gateway.app.slug);
    for path in [
        "/portal",
        "/portal/apps",
        app.as_str(),
        "/portal/mailboxes",
        "/portal/messages",
        "/portal/messages.csv",
        "/portal/webhooks",
        "/portal/billing",
        "/portal/settings",
    ] {
        let page = visitor.get(path).await;
        assert_eq!(page.status, 503, "{path}: {}", page.text);
        assert!(page.header("content-type").starts_with("text/html"));
        assert!(!page.header("retry-after").is_empty(), "{path}");
        assert_eq!(page.header("set-cookie"), "", "{path}");
        assert!(page.text.contains("ID: <code>"), "{path}: {}", page.text);
    }
    let page = visitor
        .post("/portal/settings", &[("label", "Renamed")])
        .await;
    assert_eq!(page.status, 503, "{}", page.text);
    // It needs no database.
    assert_eq!(visitor.get("/portal/sign-in").await.status, 200);

    server.restart().await;
    gateway
        .eventually("the portal is back", async |_| {
            visitor.get("/portal").await.status == 200
        })
        .await;
    let page = visitor.get("/portal/settings").await;
    assert!(!page.text.contains("Renamed"), "{}", page.text);
    gateway.stop().await;
}
