//! The control API, used by the buttons on the pages and, as JSON, by tests:
//!
//! | | |
//! |---|---|
//! | `GET /payprov/steering` | the provider's entire state |
//! | `POST /payprov/steering/faults`, `DELETE` | injects a fault ([`Fault`]); clears them |
//! | `PUT /payprov/steering/delivery` | `{"mode": "automatic"}` or `"by_hand"` |
//! | `POST /payprov/steering/events/{id}` | delivers an event now, even if it was delivered before |
//! | `POST /payprov/steering/subscriptions/{id}` | `{"action": …}` ([`Action`]) |

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;

use super::PaymentProvider;
use super::delivery::{DeliveryError, DeliveryMode};
use super::faults::Fault;
use super::ledger::Ledger;
use super::lifecycle::PaymentOutcome;
use super::objects::{InvoiceStatus, Status};

/// An action on a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Announces that the trial will end.
    Remind,
    /// Ends the trial, with the outcome that the card and the settings determine.
    EndTrial,
    /// Makes the next payment now, successfully.
    PaymentSucceeds,
    /// Makes the next payment now, and fails it.
    PaymentFails,
    /// Makes the next payment now, and requires its owner to confirm it.
    PaymentNeedsAction,
    /// Pays the open invoices.
    PayOpenInvoices,
    /// Stops retrying payments: past due becomes unpaid.
    GiveUp,
    /// Cancels at the end of the period.
    CancelAtPeriodEnd,
    /// Undoes the scheduled cancellation.
    Resume,
    /// Ends the subscription now.
    Delete,
}

impl Action {
    /// Whether it is possible with this status.
    pub(super) const fn fits(self, status: Status) -> bool {
        match self {
            Self::Remind | Self::EndTrial => matches!(status, Status::Trialing),
            Self::PaymentSucceeds | Self::PaymentFails | Self::PaymentNeedsAction => {
                matches!(status, Status::Trialing | Status::Active | Status::PastDue)
            }
            Self::PayOpenInvoices => matches!(
                status,
                Status::PastDue | Status::Unpaid | Status::Incomplete
            ),
            Self::GiveUp => matches!(status, Status::PastDue),
            Self::CancelAtPeriodEnd | Self::Resume => {
                matches!(status, Status::Trialing | Status::Active)
            }
            Self::Delete => !status.is_final(),
        }
    }

    const fn outcome(self) -> Option<PaymentOutcome> {
        match self {
            Self::PaymentSucceeds => Some(PaymentOutcome::Paid),
            Self::PaymentFails => Some(PaymentOutcome::Declined("card_declined")),
            Self::PaymentNeedsAction => Some(PaymentOutcome::ActionRequired),
            _ => None,
        }
    }
}

impl PaymentProvider {
    /// Performs the action; `false` if there is no such subscription, or the action isn't possible.
    pub async fn act(&self, subscription: &str, action: Action) -> bool {
        self.change(|ledger, now| ledger.act(subscription, action, now))
            .await
    }
}

impl Ledger {
    pub(super) fn act(&mut self, id: &str, action: Action, now: i64) -> bool {
        let Some(subscription) = self.subscriptions.get(id) else {
            return false;
        };
        let (status, is_free) = (subscription.status, subscription.amount() == 0);
        let fails = matches!(action, Action::PaymentFails | Action::PaymentNeedsAction);
        // Payments of a free subscription never fail.
        if !action.fits(status) || (fails && is_free) {
            return false;
        }
        match action {
            Action::Remind => self.remind(id, now),
            Action::EndTrial => self.end_trial(id, None, now),
            Action::PaymentSucceeds | Action::PaymentFails | Action::PaymentNeedsAction => {
                if status == Status::Trialing {
                    self.end_trial(id, action.outcome(), now);
                } else {
                    self.renew(id, action.outcome(), now);
                }
            }
            Action::PayOpenInvoices => self.pay_open_invoices(id, now),
            Action::GiveUp => self.give_up(id, now),
            Action::CancelAtPeriodEnd | Action::Resume => {
                let cancels = action == Action::CancelAtPeriodEnd;
                self.change_subscription(id, now, |subscription| {
                    subscription.cancel_at_period_end = cancels;
                    subscription.cancel_at = cancels.then_some(subscription.current_period_end);
                    subscription.canceled_at = cancels.then_some(now);
                });
            }
            Action::Delete => self.end(id, now),
        }
        true
    }

    fn pay_open_invoices(&mut self, subscription: &str, now: i64) {
        let open: Vec<String> = self
            .invoices
            .values()
            .filter(|invoice| invoice.subscription == subscription)
            .filter(|invoice| invoice.status == InvoiceStatus::Open)
            .map(|invoice| invoice.id.clone())
            .collect();
        for invoice in open {
            self.attempt(&invoice, None, Some(PaymentOutcome::Paid), now);
        }
    }
}

pub(super) fn router() -> Router<PaymentProvider> {
    Router::new()
        .route("/payprov/steering", get(show))
        .route(
            "/payprov/steering/faults",
            post(add_fault).delete(clear_faults),
        )
        .route("/payprov/steering/delivery", put(set_delivery))
        .route("/payprov/steering/events/{id}", post(deliver))
        .route("/payprov/steering/subscriptions/{id}", post(act))
}

async fn show(State(provider): State<PaymentProvider>) -> Response {
    provider.look().await;
    Json(provider.snapshot()).into_response()
}

async fn add_fault(
    State(provider): State<PaymentProvider>,
    Json(fault): Json<Fault>,
) -> StatusCode {
    if provider.add_fault(fault) {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::TOO_MANY_REQUESTS
    }
}

async fn clear_faults(State(provider): State<PaymentProvider>) -> StatusCode {
    provider.clear_faults();
    StatusCode::NO_CONTENT
}

#[derive(Debug, Deserialize)]
struct Delivery {
    mode: DeliveryMode,
}

async fn set_delivery(
    State(provider): State<PaymentProvider>,
    Json(delivery): Json<Delivery>,
) -> StatusCode {
    provider.set_delivery(delivery.mode);
    StatusCode::NO_CONTENT
}

async fn deliver(State(provider): State<PaymentProvider>, Path(id): Path<String>) -> Response {
    match provider.deliver(&id).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error @ DeliveryError::NoSuchEvent) => {
            (StatusCode::NOT_FOUND, error.to_string()).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

#[derive(Debug, Deserialize)]
struct Command {
    action: Action,
}

async fn act(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
    Json(command): Json<Command>,
) -> StatusCode {
    if provider.act(&id, command.action).await {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::CONFLICT
    }
}
