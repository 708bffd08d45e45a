//! The access that an operation with `X-Api-Secret` requires of an additional API secret. It is part of the extractor's
//! type, so every operation has one.

use mailgate_types::scope::Scope;

/// The access that a secret must have.
pub(crate) trait Access {
    /// The scope; `None`: only the main API secret is accepted.
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
    // Only the main secret shows, renews or creates secrets and send keys, or leads to the portal, which can do all of
    // that. Two scopes have exceptions: creating an app shows its keys, and writing webhooks shows their secrets.
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
