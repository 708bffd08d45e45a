//! One subscriber's effective limits, as text and JSON.

use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use crate::operator::table::Table;
use mailgate_domain::sending::accept::quota::Quota;
use mailgate_settings::OperatorSettings;
use mailgate_storage::subscribers::limits::{self, OwnLimits};
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscriber_limit::SubscriberLimit;

/// One subscriber's effective limits.
#[derive(Debug)]
pub(super) struct LimitsInForce {
    own: OwnLimits,
}

impl LimitsInForce {
    /// Reads a subscriber's limits.
    pub(super) async fn read(
        connection: &mut PgConnection,
        id: SubscriberId,
    ) -> Result<Self, sqlx::Error> {
        let own = limits::of(connection, id).await?;
        Ok(Self { own })
    }

    /// The value of a limit.
    pub(super) fn value(&self, limit: SubscriberLimit, settings: &OperatorSettings) -> i64 {
        value(limit, self.own.get(limit), settings)
    }

    /// The origin of a limit.
    pub(super) fn origin(&self, limit: SubscriberLimit) -> &'static str {
        self.own.get(limit).map_or(limit.setting(), |_| "its own")
    }

    /// The limits as JSON, with their usage.
    pub(super) fn json(
        &self,
        settings: &OperatorSettings,
        used: impl Fn(SubscriberLimit) -> Option<i64>,
    ) -> Value {
        let all = SubscriberLimit::ALL.into_iter().map(|limit| {
            let shown = json!({
                "value": self.value(limit, settings),
                "source": self.own.get(limit).map_or("setting", |_| "subscriber"),
                "setting": value(limit, None, settings),
                "used": used(limit),
            });
            (limit.as_str().to_owned(), shown)
        });
        Value::Object(all.collect::<Map<_, _>>())
    }

    /// The limits as text, with their usage.
    pub(super) fn text(
        &self,
        settings: &OperatorSettings,
        used: impl Fn(SubscriberLimit) -> Option<i64>,
    ) -> String {
        let mut table = Table::new(["LIMIT", "VALUE", "USED", "FROM"]);
        for limit in SubscriberLimit::ALL {
            table.row([
                limit.as_str().replace('_', " "),
                self.value(limit, settings).to_string(),
                used(limit).map_or_else(|| "-".to_owned(), |used| used.to_string()),
                self.origin(limit).to_owned(),
            ]);
        }
        table.text()
    }
}

/// The effective value for a subscriber with this own limit, or without one.
fn value(limit: SubscriberLimit, own: Option<i64>, settings: &OperatorSettings) -> i64 {
    let (limits, quota) = (&settings.limits, Quota::new(&settings.limits));
    match limit {
        SubscriberLimit::Apps => own.unwrap_or(limits.apps_per_subscriber.into()),
        SubscriberLimit::Mailboxes => own.unwrap_or(settings.mailboxes.most_of_subscriber),
        SubscriberLimit::EndUsers => own.unwrap_or(settings.mailboxes.most_users_of_subscriber),
        SubscriberLimit::WaitingMessages => quota.messages(own),
        SubscriberLimit::WaitingBytes => quota.bytes(own),
        SubscriberLimit::RequestsPerSecond => own.unwrap_or(limits.requests_per_second.into()),
    }
}
