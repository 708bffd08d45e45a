//! What a subscriber and the operator do with the account.

use mailgate_sandbox::payprov::DeliveryMode;
use mailgate_types::audit::AuditAction;
use reqwest::Method;
use serde_json::json;

use super::{Walk, command};
use crate::support::caller::text;
use crate::support::gateway::SEAL_KEY;

impl Walk<'_> {
    pub(super) async fn with_a_subscription(&mut self, secret: &str) {
        use AuditAction as A;
        // An event would make the card pay before the subscriber says so.
        let payments = &self.gateway.sandbox.payments;
        payments.set_delivery(DeliveryMode::ByHand);
        let body = json!({ "portal_url": "https://portal.example/billing" });
        let checkout = (Method::POST, "/payprov/checkout-setup");
        let page = self
            .change(A::CheckoutStarted, secret, checkout, body)
            .await;
        // Where it leads back to doesn't exist.
        let browser = reqwest::Client::builder().no_proxy();
        let browser = browser.redirect(reqwest::redirect::Policy::none()).build();
        let card = browser.unwrap().post(text(&page, "url"));
        let entered = card.form(&[("card", "works")]).send().await.unwrap();
        assert!(entered.status().is_redirection(), "{}", entered.status());
        let body = json!({ "return_url": "https://portal.example/billing" });
        let portal = (Method::POST, "/payprov/portal");
        self.change(A::PortalOpened, secret, portal, body).await;
        let reactivate = (Method::POST, "/payprov/reactivate");
        self.change(A::SubscriptionReactivated, secret, reactivate, json!({}))
            .await;
        let cancel = (Method::POST, "/payprov/cancel-subscription");
        self.change(A::SubscriptionCanceled, secret, cancel, json!({}))
            .await;
    }

    pub(super) async fn with_another_address(&mut self, secret: &str) {
        for (action, email) in [
            (AuditAction::EmailChangeRequested, "newer@example.com"),
            (AuditAction::EmailChangeStopped, "new@example.com"),
        ] {
            let me = (Method::PATCH, "/me");
            self.change(action, secret, me, json!({ "email": email }))
                .await;
        }
    }

    /// The operator suspends a subscriber, resumes it, limits it, deletes it, restores it, and deletes it for good.
    pub(super) async fn shut(&mut self, id: &str) {
        let arguments = ["subscriber", "suspend", id, "--reason", "Spam"];
        let suspending = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberSuspended, suspending)
            .await;
        let arguments = ["subscriber", "resume", id];
        let resuming = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberResumed, resuming).await;
        let limits = ["--apps", "5", "--requests-per-second", "7"];
        let arguments = [&["subscriber", "limits", id], limits.as_slice()].concat();
        let limiting = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberLimitsChanged, limiting)
            .await;
        let delete = ["subscriber", "delete", id, "--yes", "--label", "Newer"];
        let deleting = command(self.gateway, SEAL_KEY, &delete);
        self.leaves(AuditAction::SubscriberDeletionScheduled, deleting)
            .await;
        let arguments = ["subscriber", "restore", id];
        let restoring = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberRestored, restoring)
            .await;
        let arguments = [&delete as &[&str], &["--now"]].concat();
        let deleting = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberDeleted, deleting).await;
    }
}
