//! What an operation with `X-Api-Secret` asks of an additional API secret. It is part of the extractor's type, so no
//! operation can be without it.

use mailgate_types::scope::Scope;

/// What a secret must have to be let in.
pub(crate) trait Access {
    /// The scope; `None`: only the main API secret is let in.
    const SCOPE: Option<Scope>;
}

macro_rules! access {
    ($($name:ident $scope:expr;)*) => {$(
        pub(crate) struct $name;

        impl Access for $name {
            const SCOPE: Option<Scope> = $scope;
        }
    )*};
}

access! {
    // What shows, renews or creates a secret or a send key, or leads to the portal, which does all of that. Two scopes
    // have secrets of their own: an app's keys are shown to who creates it, a webhook's secret to who writes webhooks.
    MainSecret None;
    AppsRead Some(Scope::AppsRead);
    AppsWrite Some(Scope::AppsWrite);
    AuditRead Some(Scope::AuditRead);
    BillingRead Some(Scope::BillingRead);
    BillingWrite Some(Scope::BillingWrite);
    LogsRead Some(Scope::LogsRead);
    LogsWrite Some(Scope::LogsWrite);
    MailboxesWrite Some(Scope::MailboxesWrite);
    MeRead Some(Scope::MeRead);
    WebhooksRead Some(Scope::WebhooksRead);
    WebhooksWrite Some(Scope::WebhooksWrite);
}
