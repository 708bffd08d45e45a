//! Parts of an app's page that may fail independently: refusals, and suppressed recipients.

use crate::PortalState;
use crate::page::words::{Moment, door, number};
use mailgate_domain::accounts::SUPPRESSED_FOR;
use mailgate_types::ids::AppId;
use mailgate_types::refusal::RefusalReason;

/// Maximum number of refusals listed.
const REFUSALS: i64 = 20;

/// Maximum number of suppressed recipients listed.
const SUPPRESSED: i64 = 20;

/// A refusal in the table.
pub(crate) struct Refusal {
    pub(crate) at: Moment,
    pub(crate) door: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A recipient in the table.
pub(crate) struct Recipient {
    pub(crate) address: String,
    pub(crate) log_id: String,
    pub(crate) bounced_at: Moment,
    pub(crate) expires_at: Moment,
}

/// Suppressed recipients.
pub(crate) struct Suppressed {
    pub(crate) rows: Vec<Recipient>,
    /// The total number.
    pub(crate) total: String,
}

/// Recent refusals; `None` if they can't be loaded.
pub(crate) async fn refusals(state: &PortalState, app: AppId) -> Option<Vec<Refusal>> {
    let report = state.refusals.of_app(app, REFUSALS).await;
    let report = report
        .inspect_err(|error| tracing::warn!(%error, "refusals can't be shown in the portal"))
        .ok()?;
    let rows = report.last.into_iter().map(|refused| Refusal {
        at: Moment::new(refused.id.moment().unwrap_or_default()),
        door: door(refused.door),
        reason: reason(refused.reason),
        from: refused.from.unwrap_or_default(),
        to: refused.to.unwrap_or_default(),
    });
    Some(rows.collect())
}

fn reason(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::SubscriberSuspended => "The operator has suspended the account",
        RefusalReason::SubscriptionBlocked => "The subscription doesn't allow sending",
        RefusalReason::PkMismatch => "The pushable key belongs to another app",
        RefusalReason::MailboxNotAllowed => {
            "The send key may not send from any mailbox that matches"
        }
        RefusalReason::MessageTooLarge => "The message is too large",
        RefusalReason::InvalidRequest => "A field of the request is invalid",
        RefusalReason::NoMailbox => "No connected mailbox matches",
        RefusalReason::RecipientSuppressed => "The recipient has bounced before",
        RefusalReason::FromNotAuthorized => "No connected mailbox may send as From",
        RefusalReason::MalformedMessage => "The message's headers can't be read",
    }
}

/// Suppressed recipients; `None` if they can't be loaded.
pub(crate) async fn suppressed(state: &PortalState, app: AppId) -> Option<Suppressed> {
    let page = state.accounts.suppressions(app, None, SUPPRESSED, 0).await;
    let page = page
        .inspect_err(|error| tracing::warn!(%error, "suppressions can't be shown in the portal"))
        .ok()?;
    let rows = page.suppressions.into_iter().map(|row| Recipient {
        address: row.address,
        log_id: row.log.to_string(),
        bounced_at: Moment::new(row.bounced_at),
        expires_at: Moment::new(row.bounced_at + SUPPRESSED_FOR),
    });
    Some(Suppressed {
        rows: rows.collect(),
        total: number(page.total),
    })
}
