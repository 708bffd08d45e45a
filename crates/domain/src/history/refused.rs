//! Requests that were refused, and when keys were last used.

use std::collections::HashMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use super::{History, HistoryError};
use mailgate_storage::database::transaction;
use mailgate_storage::key_uses::{self, Uses};
use mailgate_storage::refusals::{self, Count, Refused};
use mailgate_types::ids::{ApiSecretId, AppId, RefusalId, SendKeyId};

/// Refusals of an app that are listed one by one: no past has more.
const KEPT: i64 = 1_000;

/// The last use of a key.
#[derive(Debug, Clone, Copy)]
pub enum PastUse {
    /// Of an app's main send key.
    Main(AppId, DateTime<Utc>),
    /// Of an additional send key.
    SendKey(SendKeyId, DateTime<Utc>),
    /// Of an additional API secret.
    ApiSecret(ApiSecretId, DateTime<Utc>),
}

impl History {
    /// Writes refused requests with their counters, and the uses of keys, in one transaction.
    pub async fn write_refusals(
        &self,
        refused: &[Refused],
        uses: &[PastUse],
    ) -> Result<(), HistoryError> {
        let mut transaction = transaction::begin(&self.pool).await?;
        refusals::add(&mut transaction, &counts(refused), refused, KEPT).await?;
        let (mut apps, mut send_keys, mut api_secrets) =
            (Uses::default(), Uses::default(), Uses::default());
        for of in uses {
            let (list, id, at) = match *of {
                PastUse::Main(app, at) => (&mut apps, app.0, at),
                PastUse::SendKey(key, at) => (&mut send_keys, key.0, at),
                PastUse::ApiSecret(secret, at) => (&mut api_secrets, secret.0, at),
            };
            list.ids.push(id);
            list.at.push(at);
        }
        key_uses::write_apps(&mut transaction, &apps).await?;
        key_uses::write_send_keys(&mut transaction, &send_keys).await?;
        key_uses::write_api_secrets(&mut transaction, &api_secrets).await?;
        Ok(transaction.commit().await?)
    }
}

/// By app, hour and reason, each once.
fn counts(refused: &[Refused]) -> Vec<Count> {
    let mut counts: HashMap<_, i64> = HashMap::new();
    for one in refused {
        let hour =
            RefusalId::moment(one.id).and_then(|at| at.duration_trunc(TimeDelta::hours(1)).ok());
        if let Some(hour) = hour {
            *counts.entry((one.app, hour, one.reason)).or_default() += 1;
        }
    }
    let counts = counts.into_iter();
    counts
        .map(|((app, hour, reason), messages)| Count {
            app,
            hour,
            reason,
            messages,
        })
        .collect()
}
