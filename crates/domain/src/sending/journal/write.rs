//! Writes the entries of a commit to the database.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection};

use super::batch::Batch;
use super::written::Written;
use mailgate_storage::database::journal::{self, Fenced};
use mailgate_storage::idempotency_keys;
use mailgate_storage::spool::{self, Opening};
use mailgate_storage::webhook_messages::NewMessage;
use mailgate_types::ids::{GatewayId, LogId};

/// Writes a batch: in one statement, or else in one transaction.
pub(super) async fn write(
    connection: &mut PgConnection,
    gateway: GatewayId,
    batch: &Batch<'_>,
    only_sent: bool,
    (now, kept_from): (DateTime<Utc>, DateTime<Utc>),
) -> Fenced<Written> {
    // A single statement needs no explicit transaction.
    if batch.is_plain() {
        let written = write_messages(connection, gateway, &batch.openings, batch, only_sent, now);
        return written.await;
    }
    let mut transaction = connection.begin().await?;
    let mut twins: HashSet<LogId> = batch.keys.iter().map(|key| key.log).collect();
    if !batch.keys.is_empty() {
        for log in idempotency_keys::claim_free(&mut transaction, &batch.keys, kept_from).await? {
            twins.remove(&log);
        }
    }
    if !batch.stripped.is_empty() {
        spool::strip(&mut transaction, &batch.stripped).await?;
    }
    let openings: Vec<&Opening> = (batch.openings.iter().copied())
        .filter(|opening| !twins.contains(&opening.id))
        .collect();
    let written = write_messages(&mut transaction, gateway, &openings, batch, only_sent, now);
    let mut written = match written.await? {
        Ok(written) => written,
        // Dropping the transaction rolls it back.
        Err(ended) => return Ok(Err(ended)),
    };
    idempotency_keys::answer(&mut transaction, &batch.answers(&written.left)).await?;
    idempotency_keys::free(&mut transaction, &batch.freed(&written.stale)).await?;
    transaction.commit().await?;
    written.twins = twins;
    Ok(Ok(written))
}

/// Writes the messages of a batch, with the given subset of its openings.
async fn write_messages(
    connection: &mut PgConnection,
    gateway: GatewayId,
    openings: &[&Opening],
    batch: &Batch<'_>,
    only_sent: bool,
    now: DateTime<Utc>,
) -> Fenced<Written> {
    let closings = batch.closings();
    let (mut opened, mut left) = (Vec::new(), HashSet::new());
    match (openings.is_empty(), closings.is_empty()) {
        (true, true) => {}
        (false, true) => match journal::open(connection, gateway, openings).await? {
            Ok(written) => opened = written,
            Err(ended) => return Ok(Err(ended)),
        },
        _ if only_sent => {
            let written = journal::write_sent(connection, gateway, openings, &closings).await?;
            let written = match written {
                Ok(written) => written,
                Err(ended) => return Ok(Err(ended)),
            };
            opened = written.opened;
            left.extend(closings.iter().map(|closing| closing.id));
            for id in written.ended {
                left.remove(&id);
            }
        }
        _ => {
            let events: Vec<NewMessage> = (batch.endings.iter())
                .map(|ending| NewMessage::of(&ending.emission, now))
                .collect();
            let written = journal::write(connection, gateway, openings, &closings, &events, now);
            match written.await? {
                Ok(written) => opened = written,
                Err(ended) => return Ok(Err(ended)),
            }
        }
    }
    let mut stale: HashSet<LogId> = openings.iter().map(|opening| opening.id).collect();
    for id in opened {
        stale.remove(&id);
    }
    Ok(Ok(Written {
        twins: HashSet::new(),
        stale,
        left,
    }))
}
