//! `mailgate subscriber limits`: one subscriber's own limits in place of the settings.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;
use sqlx::PgPool;

use super::account::Account;
use crate::operator::OperatorError;
use mailgate_domain::accounts::Accounts;
use mailgate_settings::OperatorSettings;
use mailgate_types::audit::Author;
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscriber_limit::SubscriberLimit;

/// The limits to set. Each takes a number, or `default` for what the settings say.
#[derive(Debug, Args)]
pub struct LimitOptions {
    #[arg(
        long,
        value_name = "N|default",
        help = "Apps (limits.apps_per_subscriber)"
    )]
    apps: Option<String>,
    #[arg(
        long,
        value_name = "N|default",
        help = "Mailboxes, connected or remembered (limits.mailboxes_per_subscriber)"
    )]
    mailboxes: Option<String>,
    #[arg(
        long,
        value_name = "N|default",
        help = "End users (limits.end_users_per_subscriber)"
    )]
    end_users: Option<String>,
    #[arg(
        long,
        value_name = "N|default",
        help = "Waiting messages (limits.waiting_messages_per_subscriber)"
    )]
    waiting_messages: Option<String>,
    #[arg(
        long,
        value_name = "N|default",
        help = "Their bytes (limits.waiting_bytes_per_subscriber)"
    )]
    waiting_bytes: Option<String>,
    #[arg(
        long,
        value_name = "N|default",
        help = "Requests and messages of each key in a second (limits.requests_per_second)"
    )]
    requests_per_second: Option<String>,
}

impl LimitOptions {
    /// The requested changes; `None` resets a limit.
    fn changes(
        &self,
        settings: &OperatorSettings,
    ) -> Result<Vec<(SubscriberLimit, Option<i64>)>, OperatorError> {
        let given = SubscriberLimit::ALL.into_iter().filter_map(|limit| {
            let text = match limit {
                SubscriberLimit::Apps => &self.apps,
                SubscriberLimit::Mailboxes => &self.mailboxes,
                SubscriberLimit::EndUsers => &self.end_users,
                SubscriberLimit::WaitingMessages => &self.waiting_messages,
                SubscriberLimit::WaitingBytes => &self.waiting_bytes,
                SubscriberLimit::RequestsPerSecond => &self.requests_per_second,
            };
            Some((limit, text.as_ref()?))
        });
        given
            .map(|(limit, text)| Ok((limit, parse(limit, text, settings.limits.message_bytes)?)))
            .collect()
    }
}

fn parse(
    limit: SubscriberLimit,
    text: &str,
    message_bytes: usize,
) -> Result<Option<i64>, OperatorError> {
    if text == "default" {
        return Ok(None);
    }
    let option = limit.as_str().replace('_', "-");
    let range = limit.range();
    let number = text.parse().ok().filter(|number| range.contains(number));
    let number: i64 = number.ok_or_else(|| {
        let (least, most) = range.into_inner();
        OperatorError::Argument(format!(
            "--{option}: must be a whole number from {least} to {most}, or default"
        ))
    })?;
    if limit == SubscriberLimit::WaitingBytes
        && usize::try_from(number).is_ok_and(|bytes| bytes < message_bytes)
    {
        return Err(OperatorError::Argument(format!(
            "--{option}: must be limits.message_bytes ({message_bytes}) or more, else the largest message could never wait"
        )));
    }
    Ok(Some(number))
}

/// Sets the given limits, and prints all of the subscriber's.
pub(super) async fn run(
    options: &LimitOptions,
    id: SubscriberId,
    json: bool,
    accounts: &Accounts,
    pool: &PgPool,
    settings: &OperatorSettings,
    now: DateTime<Utc>,
) -> Result<(), OperatorError> {
    let changes = options.changes(settings)?;
    let is_changed = if changes.is_empty() {
        false
    } else {
        let set = accounts.set_limits(id, &changes, Author::operator(None));
        set.await?.ok_or(OperatorError::NotFound(id))?
    };
    let account = {
        let mut connection = pool.acquire().await?;
        Account::read(&mut connection, id, now).await?
    };
    let used = |limit| account.used(limit);
    if json {
        let limits = account.limits.json(settings, used);
        let id = id.to_string();
        let value = json!({ "subscriber_id": id, "limits": limits, "changed": is_changed });
        println!("{value}");
    } else {
        print!("{}", account.limits.text(settings, used));
    }
    Ok(())
}
