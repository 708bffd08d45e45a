//! Address changes that follow each other within [`UNDONE_WITHIN`]. Only the address from before the first can be
//! restored: the others belonged to the account too briefly to count, whether a thief's or an intermediate one of the
//! owner's.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_storage::email_changes::{self, EmailChange};
use mailgate_types::email_change::UNDONE_WITHIN;
use mailgate_types::ids::SubscriberId;

/// Changes that follow each other, the last one recent.
#[derive(Debug, Clone)]
pub(in crate::accounts) struct Chain {
    /// The first: its former address can be restored.
    pub(in crate::accounts) begun: EmailChange,
    /// The address that is in use.
    pub(in crate::accounts) email: String,
}

impl Chain {
    /// Whether a change returns to the former address.
    pub(in crate::accounts) fn leads_back(&self, change: &EmailChange) -> bool {
        (self.begun.former_email).eq_ignore_ascii_case(&change.email)
    }
}

/// A subscriber's chain; `None` if no recent change can be undone.
pub(in crate::accounts) async fn chain(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<Option<Chain>, sqlx::Error> {
    let changes = email_changes::of_subscriber(connection, subscriber).await?;
    Ok(chain_of(changes, now))
}

/// The same, given all its changes.
pub(in crate::accounts) fn chain_of(
    changes: Vec<EmailChange>,
    now: DateTime<Utc>,
) -> Option<Chain> {
    let mut chain: Option<Chain> = None;
    let mut last: Option<DateTime<Utc>> = None;
    for change in changes {
        let Some(confirmed_at) = change.confirmed_at else {
            continue;
        };
        if last.is_none_or(|last| confirmed_at >= last + UNDONE_WITHIN) {
            chain = None;
        }
        last = Some(confirmed_at);
        match &mut chain {
            Some(chain) => chain.email = change.email,
            None if change.can_be_undone => {
                chain = Some(Chain {
                    email: change.email.clone(),
                    begun: change,
                });
            }
            None => {}
        }
    }
    chain.filter(|_| last.is_some_and(|last| now < last + UNDONE_WITHIN))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;
    use sqlx::types::Uuid;

    use super::*;

    const FIRST: &str = "first@example.com";

    proptest! {
        // Pauses in hours, and the address each change leads to.
        #[test]
        fn only_an_address_that_was_in_use_for_long_comes_back(
            steps in proptest::collection::vec((0_i64..160, 0_usize..4), 0..12),
            later in 0_i64..160,
        ) {
            let mut now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
            let mut changes: Vec<EmailChange> = Vec::new();
            // The current address, and since when; and the longest gaps before each change of its chain.
            let (mut email, mut since) = (FIRST.to_owned(), None::<DateTime<Utc>>);
            let mut established = FIRST.to_owned();
            for (pause, to) in steps {
                now += TimeDelta::hours(pause);
                let to = format!("{to}@example.com");
                if to == email {
                    continue;
                }
                if since.is_none_or(|since| now >= since + UNDONE_WITHIN) {
                    established.clone_from(&email);
                }
                let chain = chain_of(changes.clone(), now);
                changes.push(EmailChange {
                    id: Uuid::nil(),
                    subscriber: SubscriberId(Uuid::nil()),
                    former_email: email,
                    email: to.clone(),
                    created_at: now,
                    confirmed_at: Some(now),
                    can_be_undone: chain.is_none(),
                });
                (email, since) = (to, Some(now));
            }
            now += TimeDelta::hours(later);
            let chain = chain_of(changes, now);
            let is_recent = since.is_some_and(|since| now < since + UNDONE_WITHIN);
            prop_assert_eq!(chain.is_some(), is_recent);
            if let Some(chain) = chain {
                prop_assert_eq!(chain.begun.former_email, established);
                prop_assert_eq!(chain.email, email);
            }
        }
    }
}
