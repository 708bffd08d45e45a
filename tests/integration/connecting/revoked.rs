//! Connect sessions that a renewed API secret has ended, and what is under way by them.

use mailgate_domain::accounts::Renewal;
use serde_json::json;

use super::{Visit, active, link, session, until_callback, walk};
use crate::support::gateway::{Gateway, MAILBOX, OPERATOR};

const GRACE: &str = "grace@sandbox.example";

async fn renew(gateway: &Gateway, revokes: bool) {
    let renewal = Renewal {
        revokes,
        ..Renewal::default()
    };
    let accounts = &gateway.daemon.accounts;
    let renewed = accounts.renew_api_secret(gateway.subscriber, renewal, OPERATOR);
    renewed.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_session_connects_nothing_even_half_way() {
    let gateway = Gateway::start().await;
    let asked = json!({ "plugin": "plugin_a", "login_hint": GRACE });
    let token = session(&gateway, &gateway.app, asked.clone()).await;
    let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
    let half_way = until_callback(&gateway, &gateway.app, &parameters).await;
    renew(&gateway, true).await;
    let end = Visit::to(half_way).await;
    assert!(
        end.status >= 400 || end.parameter("error").is_some(),
        "{}",
        end.body
    );
    Visit::press(link(&gateway, &gateway.app, &parameters))
        .await
        .is_failure(410, "link_expired");
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    // One that is created now does, also after a renewal that leaves these alone.
    let token = session(&gateway, &gateway.app, asked).await;
    renew(&gateway, false).await;
    let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
    let page = walk(&gateway, &gateway.app, &parameters).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(active(&gateway, &gateway.app).await, [GRACE]);
    gateway.stop().await;
}
