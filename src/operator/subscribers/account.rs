//! An account as shown to the operator: its data, activity and limits.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::limits_in_force::LimitsInForce;
use crate::operator::OperatorError;
use crate::operator::table::Table;
use mailgate_domain::accounts::Subscriber;
use mailgate_settings::OperatorSettings;
use mailgate_storage::spool::usage::Usage;
use mailgate_storage::spool::waiting::usage_of;
use mailgate_storage::subscribers::{self, overview};
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;
use mailgate_types::subscriber_limit::SubscriberLimit;
use mailgate_types::subscription::SubscriptionStatus;

/// An account, without its secrets.
pub(super) struct Account {
    pub(super) subscriber: Subscriber,
    pub(super) limits: LimitsInForce,
    overview: overview::Overview,
    waiting: Usage,
}

impl Account {
    /// Reads a subscriber's account.
    pub(super) async fn read(
        connection: &mut PgConnection,
        id: SubscriberId,
        now: DateTime<Utc>,
    ) -> Result<Self, OperatorError> {
        let subscriber = subscribers::find(connection, id).await?;
        Ok(Self {
            subscriber: subscriber.ok_or(OperatorError::NotFound(id))?,
            limits: LimitsInForce::read(connection, id).await?,
            overview: overview::overview(connection, id, now).await?,
            waiting: usage_of(connection, id).await?,
        })
    }

    /// The data that is deleted with it.
    pub(super) fn belongings(&self) -> String {
        let counted = |number: i64, one: &str, many: &str| match number {
            1 => format!("1 {one}"),
            number => format!("{number} {many}"),
        };
        format!(
            "{}, {} and {}",
            counted(self.overview.apps, "app", "apps"),
            counted(self.overview.mailboxes, "mailbox", "mailboxes"),
            counted(self.waiting.messages, "waiting message", "waiting messages"),
        )
    }

    /// Its usage of a limit; `None` if it isn't counted.
    pub(super) fn used(&self, limit: SubscriberLimit) -> Option<i64> {
        match limit {
            SubscriberLimit::Apps => Some(self.overview.apps),
            SubscriberLimit::Mailboxes => Some(self.overview.remembered_mailboxes),
            SubscriberLimit::EndUsers => Some(self.overview.end_users),
            SubscriberLimit::WaitingMessages => Some(self.waiting.messages),
            SubscriberLimit::WaitingBytes => Some(self.waiting.bytes),
            SubscriberLimit::RequestsPerSecond => None,
        }
    }

    /// The account as JSON.
    pub(super) fn json(&self, settings: &OperatorSettings) -> Value {
        let (subscriber, overview) = (&self.subscriber, &self.overview);
        let suspension = subscriber.suspension.as_ref();
        let count =
            |counted: overview::Counted| json!({ "sent": counted.sent, "failed": counted.failed });
        json!({
            "subscriber_id": subscriber.id.to_string(),
            "label": subscriber.label,
            "email": subscriber.email,
            "created_at": iso8601(subscriber.created_at),
            "status": status(subscriber),
            "suspended_at": suspension.map(|it| iso8601(it.since)),
            "suspension_reason": suspension.map(|it| &it.reason),
            "deletion_due_at": subscriber.deletion_due_at.map(iso8601),
            "subscription_status": subscriber.subscription_status.map(SubscriptionStatus::as_str),
            "payprov_customer_id": subscriber.payprov_customer_id,
            "last_signed_in_at": overview.signed_in_at.map(iso8601),
            "apps": overview.apps,
            "mailboxes": overview.mailboxes,
            "remembered_mailboxes": overview.remembered_mailboxes,
            "end_users": overview.end_users,
            "waiting_messages": self.waiting.messages,
            "waiting_bytes": self.waiting.bytes,
            "last_24_hours": count(overview.day),
            "last_30_days": count(overview.month),
            "limits": SubscriberLimit::ALL.map(|limit| {
                let name = limit.setting().trim_start_matches("limits.").to_owned();
                (name, self.limits.value(limit, settings))
            }).into_iter().collect::<BTreeMap<_, _>>(),
        })
    }

    /// The account as text.
    pub(super) fn text(&self, settings: &OperatorSettings) -> String {
        let (subscriber, overview) = (&self.subscriber, &self.overview);
        let of = |limit: SubscriberLimit| {
            let used = self.used(limit).unwrap_or_default();
            let (most, origin) = (
                self.limits.value(limit, settings),
                self.limits.origin(limit),
            );
            format!("{used} of {most} ({origin})")
        };
        let counted = |counted: overview::Counted| {
            format!("{} sent, {} failed", counted.sent, counted.failed)
        };
        let moment = |moment: Option<DateTime<Utc>>| moment.map_or_else(|| "-".to_owned(), iso8601);
        let mut words = Vec::new();
        if let Some(due_at) = subscriber.deletion_due_at {
            words.push(format!(
                "deleted; it can be restored until {}",
                iso8601(due_at)
            ));
        }
        if let Some(suspension) = &subscriber.suspension {
            let since = iso8601(suspension.since);
            words.push(format!("suspended since {since}: {}", suspension.reason));
        }
        if words.is_empty() {
            words.push(status(subscriber).to_owned());
        }
        let status = words.join("; ");
        let subscription = subscriber.subscription_status;
        let rate = SubscriberLimit::RequestsPerSecond;
        let mut table = Table::new(["SUBSCRIBER", &subscriber.id.to_string()]);
        for (name, value) in [
            ("label", subscriber.label.clone()),
            ("email", subscriber.email.clone()),
            ("created", iso8601(subscriber.created_at)),
            ("status", status),
            (
                "subscription",
                subscription
                    .map_or("-", SubscriptionStatus::as_str)
                    .to_owned(),
            ),
            ("last sign-in", moment(overview.signed_in_at)),
            ("apps", of(SubscriberLimit::Apps)),
            (
                "mailboxes",
                format!(
                    "{} connected; {}",
                    overview.mailboxes,
                    of(SubscriberLimit::Mailboxes)
                ),
            ),
            ("end users", of(SubscriberLimit::EndUsers)),
            ("waiting messages", of(SubscriberLimit::WaitingMessages)),
            ("waiting bytes", of(SubscriberLimit::WaitingBytes)),
            (
                "requests a second",
                format!(
                    "{} ({})",
                    self.limits.value(rate, settings),
                    self.limits.origin(rate)
                ),
            ),
            ("last 24 hours", counted(overview.day)),
            ("last 30 days", counted(overview.month)),
        ] {
            table.row([name.to_owned(), value]);
        }
        table.text()
    }
}

/// Whether the operator has suspended or deleted an account.
pub(super) fn status(subscriber: &Subscriber) -> &'static str {
    match (subscriber.deletion_due_at, &subscriber.suspension) {
        (Some(_), _) => "deleted",
        (None, Some(_)) => "suspended",
        (None, None) => "active",
    }
}
