//! Billing: the subscription's status in plain words, and the actions for it.

pub(super) mod actions;

use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use tokio::time::timeout;

use super::PortalState;
use super::page::{LeadsAway, page};
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::{Moment, Status, number};
use mailgate_domain::billing::{BillingError, LiveSubscription, StoredSubscription};
use mailgate_types::subscription::SubscriptionStatus;

/// How long the page waits for the payment provider; then it shows the last known status.
const PATIENCE: Duration = Duration::from_secs(3);

/// The parameter that the payment provider's page adds on return.
#[derive(Default, Deserialize)]
pub(super) struct Coming {
    #[serde(default)]
    payment: String,
}

/// The subscription's status.
struct Shown {
    status: Status,
    /// The status in plain words, with what to do.
    words: &'static str,
    /// The next date: its label, and the moment.
    next: Option<(&'static str, Moment)>,
    /// Billed mailboxes.
    billed: String,
    /// Connected mailboxes.
    connected: String,
    can_pay: bool,
    can_cancel: bool,
    can_visit: bool,
}

/// The page.
#[derive(Template)]
#[template(path = "billing.html")]
struct BillingPage {
    frame: Frame,
    said: &'static str,
    /// `false`: there is no payment provider.
    is_billed: bool,
    /// A payment method was just added.
    is_updated: bool,
    /// `None` without a subscription.
    shown: Option<Shown>,
    /// The payment provider can't be reached.
    is_unavailable: bool,
    /// When the shown status was fetched.
    fetched_at: Option<Moment>,
}

/// Shows the page.
pub(super) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
    Asked(coming): Asked<Coming>,
) -> Result<Response, PortalProblem> {
    let (billing, id) = (&state.billing, session.id());
    let is_billed = billing.is_configured();
    let mut is_unavailable = false;
    if is_billed {
        is_unavailable = match timeout(PATIENCE, billing.live(id)).await {
            Ok(Ok(_)) => false,
            Ok(Err(BillingError::Gone)) => return Err(PortalProblem::signed_out()),
            Ok(Err(BillingError::Database(error))) => return Err(error.into()),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the payment provider can't be reached for the portal");
                true
            }
            Err(_) => true,
        };
    }
    // The fetched status is stored.
    let stored = billing.stored(id).await;
    let stored = stored.map_err(|error| match error {
        BillingError::Gone => PortalProblem::signed_out(),
        BillingError::Database(error) => PortalProblem::database(&error),
        error => PortalProblem::internal(&error),
    })?;
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Billing,
        "Billing",
        None,
    );
    let now = state.clock.now();
    let body = BillingPage {
        frame: frame.await,
        said: common.said(),
        is_billed,
        is_updated: coming.payment == "updated",
        is_unavailable,
        fetched_at: stored.fetched_at.map(Moment::new),
        shown: Shown::new(&stored, now),
    };
    let mut response = page(StatusCode::OK, &body);
    response.extensions_mut().insert(LeadsAway);
    Ok(response)
}

impl Shown {
    fn new(stored: &StoredSubscription, now: DateTime<Utc>) -> Option<Self> {
        use SubscriptionStatus as S;
        let subscription = stored.subscription.as_ref()?;
        let state = subscription.status;
        let (word, class, words) = match state {
            Some(S::Trialing) => (
                "Trial",
                "good",
                "You can send. Add a card before the trial ends, so that sending continues.",
            ),
            Some(S::Active) if subscription.cancel_at_period_end => (
                "Ends soon",
                "busy",
                "The subscription is cancelled. Sending continues until the period ends.",
            ),
            Some(S::Active) => ("Active", "good", "You can send. No action is needed."),
            Some(S::PastDue) => (
                "Past due",
                "bad",
                "The last payment failed, so nothing is sent. Add a card that works, then pay the open invoice.",
            ),
            Some(S::Unpaid) => (
                "Unpaid",
                "bad",
                "Invoices are open, so nothing is sent. Add a card that works, then pay the open invoices.",
            ),
            Some(S::Canceled) => (
                "Cancelled",
                "bad",
                "The subscription has ended, so nothing is sent. Add a card, then restart it.",
            ),
            None => (
                "Unknown",
                "plain",
                "The payment provider reports a status that this gateway doesn't know. Open the customer portal, or ask for help.",
            ),
        };
        let is_good = matches!(state, Some(S::Trialing | S::Active));
        let is_ending = subscription.cancel_at_period_end;
        Some(Self {
            status: Status { word, class },
            words,
            next: next(subscription, now),
            billed: number(stored.billed_quantity.unwrap_or(stored.quantity)),
            connected: number(stored.quantity),
            can_pay: !is_good || state == Some(S::Trialing),
            can_cancel: is_good && !is_ending,
            can_visit: is_good && stored.has_payprov,
        })
    }
}

/// The next date of a subscription.
fn next(subscription: &LiveSubscription, now: DateTime<Utc>) -> Option<(&'static str, Moment)> {
    let (words, at) = match subscription.status {
        Some(SubscriptionStatus::Trialing | SubscriptionStatus::Active)
            if subscription.cancel_at_period_end =>
        {
            ("Ends", subscription.current_period_end)
        }
        Some(SubscriptionStatus::Trialing) => ("The trial ends", subscription.trial_end),
        Some(SubscriptionStatus::Active) => ("Next invoice", subscription.current_period_end),
        _ => return None,
    };
    let at = at.filter(|at| *at > now)?;
    Some((words, Moment::new(at)))
}
