//! `mailgate subscriber`: manages accounts.

mod account;
mod deletion;
pub mod limits;
mod limits_in_force;

use std::path::Path;
use std::sync::Arc;

use clap::Subcommand;
use serde_json::json;
use sqlx::PgPool;
use tokio_util::task::TaskTracker;

use super::table::Table;
use super::{OperatorError, on_database};
use account::{Account, status};
use limits::LimitOptions;
use mailgate_domain::accounts::{Accounts, MOST_REASON, RenewError, Renewal, Subscriber};
use mailgate_settings::OperatorSettings;
use mailgate_storage::database::{pool, tables};
use mailgate_types::audit::Author;
use mailgate_types::clock::SharedClock;
use mailgate_types::database_clock::DatabaseClock;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;
use mailgate_types::name::check_name;
use mailgate_types::subscription::SubscriptionStatus;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum SubscriberAction {
    /// Create a subscriber; its API secret is shown once.
    Create {
        /// Display name.
        #[arg(long, allow_hyphen_values = true)]
        label: String,
        /// Contact address.
        #[arg(long)]
        email: String,
    },
    /// List all subscribers, without their secrets.
    List,
    /// Show a subscriber: what it has, does and may, without its secrets.
    Show {
        /// sub_…
        subscriber_id: String,
    },
    /// Renew a subscriber's API secret; the old one stops working immediately.
    ResetSecret {
        /// sub_…
        subscriber_id: String,
        /// Also end all additional API secrets, send keys and connect sessions, and take back an address that was changed
        /// within 72 hours: for a secret that was stolen.
        #[arg(long, alias = "revoke-all")]
        all_keys: bool,
        /// With --all-keys, keep the address.
        #[arg(long, requires = "all_keys")]
        keep_email: bool,
    },
    /// Set a subscriber's address immediately: changes of it that wait or can be undone end, and so do all portal sessions.
    SetEmail {
        /// sub_…
        subscriber_id: String,
        /// The address.
        #[arg(long)]
        email: String,
    },
    /// Suspend a subscriber: nothing of it is sent and no mailbox connected until it is resumed. One that is suspended
    /// already gets the new reason.
    Suspend {
        /// sub_…
        subscriber_id: String,
        /// Why: the subscriber reads it.
        #[arg(long, allow_hyphen_values = true)]
        reason: String,
    },
    /// Resume a suspended subscriber; what waits leaves.
    Resume {
        /// sub_…
        subscriber_id: String,
    },
    /// Show a subscriber's limits and what it uses of them, or set its own in place of the settings (default: take them
    /// back). What it has beyond a lower one stays.
    Limits {
        /// sub_…
        subscriber_id: String,
        /// What to set.
        #[command(flatten)]
        options: LimitOptions,
    },
    /// Delete a subscriber and its apps: nothing of it works from then on, and it is removed after 7 days, until when it can
    /// be restored. Without --yes and its --label it is only said what would go.
    Delete {
        /// sub_…
        subscriber_id: String,
        /// It is to be deleted.
        #[arg(long)]
        yes: bool,
        /// Its label: the right one is meant.
        #[arg(long, allow_hyphen_values = true)]
        label: Option<String>,
        /// Remove it immediately: it can't be restored.
        #[arg(long)]
        now: bool,
    },
    /// Restore a deleted subscriber, within 7 days: its keys work again, and what waits leaves.
    Restore {
        /// sub_…
        subscriber_id: String,
    },
}

/// Runs one action and prints its result.
pub async fn run(
    action: &SubscriberAction,
    json: bool,
    file: Option<&Path>,
) -> Result<(), OperatorError> {
    on_database(file, async |settings, pool| {
        act(action, json, settings, pool).await
    })
    .await
}

async fn act(
    action: &SubscriberAction,
    json: bool,
    settings: OperatorSettings,
    pool: PgPool,
) -> Result<(), OperatorError> {
    tables::migrate(&pool).await?;
    let clock = DatabaseClock::shared();
    pool::synchronize(&pool, &clock).await?;
    let accounts = Accounts::new(
        pool.clone(),
        Arc::clone(&settings.seal_keys),
        Arc::clone(&clock),
        &settings.limits,
        settings.payprov.as_ref(),
        TaskTracker::new(),
    );
    let author = Author::operator(None);
    match action {
        SubscriberAction::Create { label, email } => {
            let email = parse_email(email)?;
            check_name(label)
                .map_err(|error| OperatorError::Argument(format!("--label: {error}")))?;
            let created = accounts.sign_up(label, &email, author).await?;
            print_secret(json, created.id, created.api_secret.expose());
        }
        SubscriberAction::List => print_list(json, &accounts.subscribers().await?),
        SubscriberAction::ResetSecret {
            subscriber_id,
            all_keys,
            keep_email,
        } => {
            let id = parse_id(subscriber_id)?;
            let renewal = if *all_keys {
                Renewal::ending_all(*keep_email)
            } else {
                Renewal::default()
            };
            match accounts.renew_api_secret(id, renewal, author).await {
                Ok((secret, _)) => print_secret(json, id, secret.expose()),
                Err(RenewError::Gone) => return Err(OperatorError::NotFound(id)),
                Err(error) => return Err(error.into()),
            }
        }
        SubscriberAction::SetEmail {
            subscriber_id,
            email,
        } => {
            let (id, email) = (parse_id(subscriber_id)?, parse_email(email)?);
            if !accounts.set_email(id, &email, author).await? {
                return Err(OperatorError::NotFound(id));
            }
            print_email(json, id, &email);
        }
        SubscriberAction::Suspend {
            subscriber_id,
            reason,
        } => {
            let (id, reason) = (parse_id(subscriber_id)?, parse_reason(reason)?);
            suspend(&accounts, json, id, Some(reason)).await?;
        }
        SubscriberAction::Resume { subscriber_id } => {
            suspend(&accounts, json, parse_id(subscriber_id)?, None).await?;
        }
        SubscriberAction::Show { subscriber_id } => {
            let account = read(&pool, parse_id(subscriber_id)?, &clock).await?;
            if json {
                println!("{}", account.json(&settings));
            } else {
                print!("{}", account.text(&settings));
            }
        }
        SubscriberAction::Limits {
            subscriber_id,
            options,
        } => {
            let (id, now) = (parse_id(subscriber_id)?, clock.now());
            limits::run(options, id, json, &accounts, &pool, &settings, now).await?;
        }
        SubscriberAction::Delete {
            subscriber_id,
            yes,
            label,
            now,
        } => {
            let id = parse_id(subscriber_id)?;
            let account = read(&pool, id, &clock).await?;
            deletion::confirm(id, &account, *yes, label.as_deref(), *now)?;
            if *now {
                deletion::delete_for_good(id, json, pool, clock, settings).await?;
            } else {
                deletion::delete(&accounts, json, id).await?;
            }
        }
        SubscriberAction::Restore { subscriber_id } => {
            deletion::restore(&accounts, json, parse_id(subscriber_id)?).await?;
        }
    }
    Ok(())
}

async fn read(
    pool: &PgPool,
    id: SubscriberId,
    clock: &SharedClock,
) -> Result<Account, OperatorError> {
    let mut connection = pool.acquire().await?;
    Account::read(&mut connection, id, clock.now()).await
}

fn parse_id(text: &str) -> Result<SubscriberId, OperatorError> {
    text.parse()
        .map_err(|_| OperatorError::Argument(format!("{text:?} is no subscriber id (sub_…)")))
}

fn parse_reason(text: &str) -> Result<&str, OperatorError> {
    let reason = text.trim();
    let length = reason.chars().count();
    if reason.is_empty() || length > MOST_REASON || reason.chars().any(char::is_control) {
        return Err(OperatorError::Argument(format!(
            "--reason: must have 1 to {MOST_REASON} characters, none of them a control character"
        )));
    }
    Ok(reason)
}

/// Suspends a subscriber for this reason, or resumes it.
async fn suspend(
    accounts: &Accounts,
    json: bool,
    id: SubscriberId,
    reason: Option<&str>,
) -> Result<(), OperatorError> {
    let suspended = accounts.suspend(id, reason, Author::operator(None));
    let is_changed = suspended.await?.ok_or(OperatorError::NotFound(id))?;
    let status = reason.map_or("active", |_| "suspended");
    if json {
        let id = id.to_string();
        let value = json!({
            "subscriber_id": id, "status": status, "suspension_reason": reason, "changed": is_changed,
        });
        println!("{value}");
    } else {
        match (reason, is_changed) {
            (Some(_), true) => {
                println!("{id} is suspended; mailgate subscriber resume {id} ends that.");
            }
            (Some(_), false) => println!("{id} was suspended for this reason already."),
            (None, true) => println!("{id} is no longer suspended."),
            (None, false) => println!("{id} wasn't suspended."),
        }
    }
    Ok(())
}

fn print_secret(json: bool, id: SubscriberId, api_secret: &str) {
    if json {
        let value = json!({ "subscriber_id": id.to_string(), "api_secret": api_secret });
        println!("{value}");
    } else {
        println!("subscriber_id  {id}");
        println!("api_secret     {api_secret}");
        println!("Save the secret now: it won't be shown again.");
    }
}

fn parse_email(text: &str) -> Result<EmailAddress, OperatorError> {
    let parsed = EmailAddress::parse(text).ok();
    let parsed = parsed.filter(EmailAddress::is_plain);
    parsed.ok_or_else(|| OperatorError::Argument(format!("--email: {text:?} is no email address")))
}

fn print_email(json: bool, id: SubscriberId, email: &EmailAddress) {
    if json {
        let value = json!({ "subscriber_id": id.to_string(), "email": email.as_str() });
        println!("{value}");
    } else {
        println!("{id} now has the address {email}.");
    }
}

fn print_list(json: bool, subscribers: &[Subscriber]) {
    if json {
        let list: Vec<_> = subscribers
            .iter()
            .map(|subscriber| {
                json!({
                    "subscriber_id": subscriber.id.to_string(),
                    "label": subscriber.label,
                    "email": subscriber.email,
                    "subscription_status": subscriber.subscription_status.map(SubscriptionStatus::as_str),
                    "status": status(subscriber),
                    "suspension_reason": subscriber.suspension.as_ref().map(|it| &it.reason),
                    "deletion_due_at": subscriber.deletion_due_at.map(iso8601),
                    "created_at": subscriber.created_at,
                })
            })
            .collect();
        println!("{}", json!({ "subscribers": list }));
        return;
    }
    if subscribers.is_empty() {
        println!("There are no subscribers yet: mailgate subscriber create --label … --email …");
        return;
    }
    let mut table = Table::new(["SUBSCRIBER", "STATUS", "SUBSCRIPTION", "EMAIL", "LABEL"]);
    for subscriber in subscribers {
        let subscription = subscriber
            .subscription_status
            .map_or("-", SubscriptionStatus::as_str);
        table.row([
            subscriber.id.to_string(),
            status(subscriber).to_owned(),
            subscription.to_owned(),
            subscriber.email.clone(),
            subscriber.label.clone(),
        ]);
    }
    print!("{}", table.text());
}
