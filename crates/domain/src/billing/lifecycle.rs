//! The state machine of subscriptions: the table of transitions between statuses, and their effects. `sync::record`
//! stores the new status, and `apply` queues the notices.

use std::fmt::{Display, Formatter};

use mailgate_types::subscription::SubscriptionStatus;

/// The status of a subscription; `None` if there is none.
pub type State = Option<SubscriptionStatus>;

/// The trigger of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A payment method was entered and is now the customer's default.
    PaymentMethodAdded,
    /// The trial ended without a payment method.
    TrialEnded,
    /// The provider collected the amount due.
    PaymentSucceeded,
    /// The provider reports `invoice.payment_failed` for an invoice that is still open.
    PaymentFailed,
    /// The provider reports `invoice.payment_action_required` for an invoice that is still open.
    PaymentActionRequired,
    /// The subscription, as fetched from the provider, has ended.
    Deleted,
    /// The provider reports the subscription's status.
    Updated(SubscriptionStatus),
    /// The provider reports a new subscription.
    Created,
    /// The provider reports that the trial is about to end.
    TrialWillEnd,
    /// `POST /payprov/reactivate`.
    Reactivate,
    /// `POST /payprov/cancel-subscription`.
    Cancel,
    /// The period ended for which a cancellation was scheduled.
    PeriodEnded,
}

/// An effect of a transition. Whether sending is blocked follows from the stored subscription
/// (`Subscription::permission`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Mail: a payment failed.
    AlertNotice,
    /// Mail: a payment needs confirmation, with a link to the page for it.
    PaymentLinkNotice,
    /// Mail: the trial is about to end.
    ReminderNotice,
    /// Makes the payment method entered last the customer's default.
    UsePaymentMethod,
    /// Pays all open invoices.
    PayOpenInvoices,
    /// Creates a new subscription, charged immediately.
    CreateSubscription,
}

/// A state transition and its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The new state.
    pub to: State,
    /// The effects, in this order.
    pub effects: &'static [Effect],
}

/// The trigger is invalid in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct NoTransition {
    /// The current state.
    pub from: State,
    /// The trigger.
    pub trigger: Trigger,
}

impl Display for NoTransition {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let from = self.from.map_or("none", SubscriptionStatus::as_str);
        write!(formatter, "{:?} can't happen from {from}", self.trigger)
    }
}

/// The transition that `trigger` causes in state `from`.
#[expect(clippy::match_same_arms, reason = "each arm is a row of the table")]
pub fn transition(from: State, trigger: Trigger) -> Result<Transition, NoTransition> {
    use Effect as E;
    use SubscriptionStatus as S;
    use Trigger as T;
    let go = |to: State, effects: &'static [Effect]| Ok(Transition { to, effects });
    let stay = |effects: &'static [Effect]| Ok(Transition { to: from, effects });
    match (trigger, from) {
        // When the trial ends, the paid period begins.
        (T::PaymentMethodAdded, Some(S::Trialing)) => go(Some(S::Active), &[]),
        // A debt is paid by reactivating, not by entering a card; an ended subscription stays ended.
        (T::PaymentMethodAdded, _) => stay(&[]),

        (T::TrialEnded | T::PeriodEnded, Some(S::Canceled)) => stay(&[]),
        (T::TrialEnded, Some(S::Trialing)) => go(Some(S::Canceled), &[]),
        (T::PeriodEnded, Some(_)) => go(Some(S::Canceled), &[]),

        // A late payment makes up for the earlier failure.
        (T::PaymentSucceeded, Some(S::Trialing | S::Active | S::PastDue | S::Unpaid)) => {
            go(Some(S::Active), &[])
        }
        // The last invoice of an ended subscription.
        (T::PaymentSucceeded, Some(S::Canceled)) => stay(&[]),

        // An ended subscription never revives, and its debt blocks nothing any more.
        (T::PaymentFailed | T::PaymentActionRequired, Some(S::Canceled)) => stay(&[]),
        (T::PaymentFailed, _) => go(Some(S::PastDue), &[E::AlertNotice]),
        (T::PaymentActionRequired, _) => go(Some(S::PastDue), &[E::PaymentLinkNotice]),

        (T::Deleted, _) => go(Some(S::Canceled), &[]),
        (T::Updated(_), Some(S::Canceled)) => stay(&[]),
        (T::Updated(to), _) => go(Some(to), &[]),
        (T::Created, _) => stay(&[]),

        // There is no trial left to remind of.
        (T::TrialWillEnd, Some(S::Canceled)) => stay(&[]),
        (T::TrialWillEnd, _) => stay(&[E::ReminderNotice]),

        // With a payment method this becomes the table's first row; without one nothing changes.
        (T::Reactivate, Some(S::Trialing)) => stay(&[E::UsePaymentMethod]),
        (T::Reactivate, Some(S::Active)) => stay(&[]),
        (T::Reactivate, Some(S::PastDue | S::Unpaid)) => {
            go(Some(S::Active), &[E::UsePaymentMethod, E::PayOpenInvoices])
        }
        (T::Reactivate, Some(S::Canceled)) => go(
            Some(S::Active),
            &[E::UsePaymentMethod, E::CreateSubscription],
        ),

        (T::Cancel, Some(S::Trialing | S::Active)) => stay(&[]),

        // A trial ends once, before anything was paid; without a subscription there is no period, no payment and
        // nothing to reactivate; an unpaid subscription ends by itself.
        (T::TrialEnded, _)
        | (T::PeriodEnded | T::PaymentSucceeded | T::Reactivate, None)
        | (T::Cancel, Some(S::PastDue | S::Unpaid | S::Canceled) | None) => {
            Err(NoTransition { from, trigger })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect as E;
    use SubscriptionStatus as S;
    use Trigger as T;

    /// No effects: valid, unlike a missing transition.
    const STAYS: &[Effect] = &[];

    /// In the order of the columns below.
    const STATES: [State; 6] = [
        None,
        Some(S::Trialing),
        Some(S::Active),
        Some(S::PastDue),
        Some(S::Unpaid),
        Some(S::Canceled),
    ];

    /// The expected state and effects, or `None` if the trigger is invalid.
    type Cell = Option<(State, &'static [Effect])>;

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn every_pair_of_state_and_trigger() {
        let none = None;
        let trialing = Some(S::Trialing);
        let active = Some(S::Active);
        let past_due = Some(S::PastDue);
        let unpaid = Some(S::Unpaid);
        let canceled = Some(S::Canceled);
        let alert: &[Effect] = &[E::AlertNotice];
        let link: &[Effect] = &[E::PaymentLinkNotice];
        let reminder: &[Effect] = &[E::ReminderNotice];
        let card: &[Effect] = &[E::UsePaymentMethod];
        let pay: &[Effect] = &[E::UsePaymentMethod, E::PayOpenInvoices];
        let create: &[Effect] = &[E::UsePaymentMethod, E::CreateSubscription];
        let updated = |to: S| {
            // The provider's status, except that an ended subscription never revives.
            let cell: Cell = Some((Some(to), STAYS));
            [cell, cell, cell, cell, cell, Some((canceled, STAYS))]
        };
        // From: none, trialing, active, past_due, unpaid, canceled.
        let table: [(Trigger, [Cell; 6]); 16] = [
            (
                T::PaymentMethodAdded,
                [
                    Some((none, STAYS)), // open: a card alone is no subscription
                    Some((active, STAYS)),
                    Some((active, STAYS)),   // open: a newer card
                    Some((past_due, STAYS)), // open: reactivate pays
                    Some((unpaid, STAYS)),   // open: reactivate pays
                    Some((canceled, STAYS)), // open: reactivate subscribes anew
                ],
            ),
            (
                T::TrialEnded,
                [
                    None, // open: no trial without a subscription
                    Some((canceled, STAYS)),
                    None,                    // open: the trial is over
                    None,                    // open: the trial is over
                    None,                    // open: the trial is over
                    Some((canceled, STAYS)), // open: a repeated event
                ],
            ),
            (
                T::PaymentSucceeded,
                [
                    None,                  // open: nothing to pay
                    Some((active, STAYS)), // open: the first payment after the trial
                    Some((active, STAYS)),
                    Some((active, STAYS)), // open: the provider's own retry went through
                    Some((active, STAYS)), // open: the same
                    Some((canceled, STAYS)), // open: its last invoice
                ],
            ),
            (
                T::PaymentFailed,
                [
                    Some((past_due, alert)), // open: arrives before the subscription itself
                    Some((past_due, alert)), // open: the first payment after the trial
                    Some((past_due, alert)),
                    Some((past_due, alert)), // open: the next attempt failed too
                    Some((past_due, alert)), // open: the provider's next report decides
                    Some((canceled, STAYS)), // open: an ended one never comes back
                ],
            ),
            (
                T::PaymentActionRequired,
                [
                    Some((past_due, link)),
                    Some((past_due, link)),
                    Some((past_due, link)),
                    Some((past_due, link)),
                    Some((past_due, link)),
                    Some((canceled, STAYS)), // open: an ended one never comes back
                ],
            ),
            (T::Deleted, [Some((canceled, STAYS)); 6]),
            (T::Updated(S::Trialing), updated(S::Trialing)),
            (T::Updated(S::Active), updated(S::Active)),
            (T::Updated(S::PastDue), updated(S::PastDue)),
            (T::Updated(S::Unpaid), updated(S::Unpaid)),
            (T::Updated(S::Canceled), updated(S::Canceled)),
            (T::Created, STATES.map(|state| Some((state, STAYS)))),
            (
                T::TrialWillEnd,
                [
                    Some((none, reminder)),
                    Some((trialing, reminder)),
                    Some((active, reminder)),
                    Some((past_due, reminder)),
                    Some((unpaid, reminder)),
                    Some((canceled, STAYS)), // open: no trial left
                ],
            ),
            (
                T::Reactivate,
                [
                    None,                   // open: nothing to reactivate; the first one is being created
                    Some((trialing, card)), // open: the card makes it active, see the first row
                    Some((active, STAYS)),  // open: nothing to do
                    Some((active, pay)),
                    Some((active, pay)),
                    Some((active, create)),
                ],
            ),
            (
                T::Cancel,
                [
                    None, // open: nothing to cancel
                    Some((trialing, STAYS)),
                    Some((active, STAYS)),
                    None, // open: an unpaid subscription ends by itself
                    None, // open: the same
                    None, // open: it has ended
                ],
            ),
            (
                T::PeriodEnded,
                [
                    None,                    // open: no period without a subscription
                    Some((canceled, STAYS)), // open: cancelled within the trial
                    Some((canceled, STAYS)), // open: as scheduled
                    Some((canceled, STAYS)), // open: a payment failed before the end
                    Some((canceled, STAYS)), // open: the same
                    Some((canceled, STAYS)), // open: a repeated event
                ],
            ),
        ];
        for (trigger, cells) in table {
            for (from, cell) in STATES.into_iter().zip(cells) {
                let expected = cell
                    .map(|(to, effects)| Transition { to, effects })
                    .ok_or(NoTransition { from, trigger });
                assert_eq!(transition(from, trigger), expected, "{from:?} {trigger:?}");
            }
        }
    }
}
