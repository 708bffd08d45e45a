//! What is done with the gateway's own app: links, and a message that waits.

use mailgate_types::audit::AuditAction;
use reqwest::Method;
use serde_json::json;

use super::Walk;
use crate::support::caller::{Caller, path, text};
use crate::support::gateway::MAILBOX;

impl Walk<'_> {
    /// Links that connect a mailbox, and that sign in to the portal.
    pub(super) async fn mints(&mut self, own: &str) {
        let gateway = self.gateway;
        let session = format!("{}/connect-sessions", path(&gateway.app));
        let body = json!({ "plugin": "plugin_a", "expected_email": MAILBOX });
        let created = (Method::POST, session.as_str());
        self.change(AuditAction::ConnectSessionCreated, own, created, body)
            .await;
        let minted = (Method::POST, "/portal/sessions");
        self.change(AuditAction::PortalLinkMinted, own, minted, json!({}))
            .await;
    }

    /// One of the gateway's own app, whose provider takes none now.
    pub(super) async fn with_a_waiting_message(&mut self) {
        use AuditAction as A;
        let secret = Caller::owner(self.gateway).await.secret;
        let (status, answer) = self.gateway.send_to("tempfail@example.com").await;
        assert_eq!(status, 202, "{answer}");
        let log = format!("/logs/{}", text(&answer, "log_id"));
        let retry = format!("{log}/retry");
        self.change(
            A::MessageRetried,
            &secret,
            (Method::POST, &retry),
            json!({}),
        )
        .await;
        let waits: &'static str =
            "SELECT count(*) FROM spool WHERE state = 'deferred' AND attempts = 2";
        self.gateway
            .eventually("the second attempt", async |gateway| {
                let waiting: i64 = sqlx::query_scalar(waits)
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap();
                waiting == 1
            })
            .await;
        let cancel = format!("{log}/cancel");
        self.change(
            A::MessageCanceled,
            &secret,
            (Method::POST, &cancel),
            json!({}),
        )
        .await;
    }
}
