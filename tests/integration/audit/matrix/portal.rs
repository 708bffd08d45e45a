//! What the portal mints, sends again and exports leaves an entry too.

use mailgate_types::audit::AuditAction;
use serde_json::json;

use super::HOOK;
use crate::audit::{rows, since};
use crate::portal::visitor::Visitor;
use crate::support::caller::{Caller, path, text};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_portal_mints_sends_again_and_exports_leaves_an_entry() {
    use AuditAction as A;
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let visitor = Visitor::signed_in(&gateway).await;
    let app = format!("/portal{}", path(&gateway.app));
    let hook = json!({ "url": HOOK, "events": ["send_key.renewed"] });
    let created = owner
        .post(&format!("{}/webhooks", path(&gateway.app)), &hook)
        .await;
    let hook = format!("/portal/webhooks/{}", text(&created.success(201), "id"));
    let mailbox = format!("/portal/mailboxes/{}", gateway.mailbox.credential);
    let before = rows(&gateway).await;
    let link = [
        ("user_id", ""),
        ("plugin", ""),
        ("expected_email", ""),
        ("kind", "session"),
    ];
    let mut expected = Vec::new();
    for (path, form, action) in [
        (
            format!("{app}/link"),
            link.as_slice(),
            A::ConnectSessionCreated,
        ),
        (
            format!("{mailbox}/reconnect"),
            &[],
            A::ConnectSessionCreated,
        ),
        (format!("{hook}/test"), &[], A::WebhookTested),
    ] {
        let page = visitor.post(&path, form).await;
        assert!(page.status < 400, "{path}: {page:?}");
        expected.push(action.as_str());
    }
    let page = visitor.get("/portal/messages.csv").await;
    assert_eq!(page.status, 200);
    expected.push(A::LogsExported.as_str());
    let mut new = since(&gateway, &before).await;
    new.sort_by_key(|row| row.id);
    let left: Vec<&str> = new.iter().map(|row| row.action.as_str()).collect();
    assert_eq!(left, expected);
    gateway.stop().await;
}
