//! Claims messages for a running process, and lists those that it owns.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, CredentialId, GatewayId, LogId, SubscriberId};
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;

/// A spool row that a worker has claimed.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The message.
    pub id: LogId,
    /// The app that sends it.
    pub app: AppId,
    /// The app's subscriber; `None` once it is deleted.
    pub subscriber: Option<SubscriberId>,
    /// The mailbox it is sent from.
    pub credential: CredentialId,
    /// The provider.
    pub plugin: Plugin,
    /// The mailbox's address.
    pub from_address: String,
    /// As the log shows it.
    pub to_address: String,
    /// As the log shows it.
    pub subject: String,
    /// The envelope.
    pub recipients: Vec<String>,
    /// The envelope needs SMTPUTF8.
    pub smtputf8: bool,
    /// Attempts that have failed so far.
    pub attempts: i32,
    /// The Message-ID header.
    pub message_id: Option<String>,
    /// The provider may already have it.
    pub outcome_unknown: bool,
    /// If so: the latest time of its transmission. `None` if not recorded yet.
    pub left_by: Option<DateTime<Utc>>,
    /// When the gateway accepted it.
    pub opened_at: DateTime<Utc>,
    /// Size of the message in bytes.
    pub size_bytes: i64,
    /// When it was due; each deferral changes it, so a claim that another process has taken over is recognized by it.
    /// `None` before the first.
    pub due_at: Option<DateTime<Utc>>,
    /// The caller's idempotency key.
    pub key: Option<String>,
    /// For a scheduled message: the hash of the send key that it was accepted under.
    pub send_key_hash: Option<Vec<u8>>,
    /// As the log shows it.
    pub metadata: Metadata,
}

/// The capacity of a process.
#[derive(Debug, Clone)]
pub struct Room {
    /// Messages in all.
    pub messages: i64,
    /// Messages of one mailbox, including those already claimed.
    pub per_mailbox: i64,
    /// Mailboxes that use some of it.
    pub taken: Vec<(CredentialId, u32)>,
    /// Messages of a subscriber that uses none of it.
    pub per_subscriber: i64,
    /// Subscribers that use some of it, and their totals.
    pub taken_by: Vec<(SubscriberId, u32, u32)>,
}

/// Due messages that are considered for each claim: among them those beyond the room of their mailbox or subscriber are
/// passed over. A subscriber without room isn't considered, so its messages can't keep out others' for longer than it
/// takes to claim a few.
const CONSIDERED: i64 = 256;

/// Claims deferred messages that are due, as far as there is room, earliest due first, for a running process, except
/// those that it is already working on, and scheduled ones before `agreed`. A claimed row is `open`: its owner's death
/// is noticed as for any other.
pub async fn claim_due(
    connection: &mut PgConnection,
    gateway: GatewayId,
    (now, agreed): (DateTime<Utc>, DateTime<Utc>),
    held: &[LogId],
    room: &Room,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let held: Vec<Uuid> = held.iter().map(|id| id.0).collect();
    let (mailboxes, taken): (Vec<Uuid>, Vec<i64>) = (room.taken.iter())
        .map(|(id, count)| (id.0, i64::from(*count)))
        .unzip();
    let subscribers: Vec<Uuid> = room.taken_by.iter().map(|(id, ..)| id.0).collect();
    let taken_by = room.taken_by.iter().map(|(_, count, _)| i64::from(*count));
    let taken_by: Vec<i64> = taken_by.collect();
    let most = room.taken_by.iter().map(|(.., most)| i64::from(*most));
    let most: Vec<i64> = most.collect();
    sqlx::query_as!(
        Claimed,
        r#"WITH fence AS MATERIALIZED (
               SELECT id FROM gateways WHERE id = $2 AND ended_at IS NULL FOR KEY SHARE
           ), taken_by AS MATERIALIZED (
               SELECT * FROM unnest($10::uuid[], $11::bigint[], $12::bigint[])
                                 AS taken_by (subscriber_id, count, most)
           ), taken AS MATERIALIZED (
               SELECT * FROM unnest($5::uuid[], $8::bigint[]) AS taken (credential_id, count)
           ), due AS MATERIALIZED (
               SELECT id, app_id, credential_id, next_attempt_at FROM spool
               WHERE state = 'deferred' AND next_attempt_at <= $1 AND id <> ALL($4)
                     AND app_id NOT IN (
                         SELECT apps.id FROM apps JOIN taken_by USING (subscriber_id)
                         WHERE taken_by.count >= taken_by.most
                     )
                     AND (send_at IS NULL OR send_at <= $9)
                     AND credential_id <> ALL(ARRAY(SELECT credential_id FROM taken WHERE count >= $6))
               ORDER BY next_attempt_at
               LIMIT $7
               FOR UPDATE SKIP LOCKED
           )
           UPDATE spool SET state = 'open', gateway_id = fence.id, lease_until = NULL
           FROM fence
           WHERE spool.id = ANY (ARRAY(
               SELECT id
               FROM (SELECT of_mailbox.id, next_attempt_at, coalesce(taken_by.count, 0)
                            + row_number() OVER (PARTITION BY coalesce(subscriber_id, app_id)
                                                 ORDER BY next_attempt_at) AS nth,
                            coalesce(taken_by.most, $13) AS most
                     FROM (SELECT id, app_id, next_attempt_at, coalesce(taken.count, 0)
                                  + row_number() OVER (PARTITION BY credential_id ORDER BY next_attempt_at) AS nth
                           FROM due LEFT JOIN taken USING (credential_id)) AS of_mailbox
                          LEFT JOIN apps ON apps.id = app_id
                          LEFT JOIN taken_by USING (subscriber_id)
                     WHERE nth <= $6) AS ranked
               WHERE nth <= most
               ORDER BY next_attempt_at
               LIMIT $3
           ))
           RETURNING spool.id, app_id AS app,
                     (SELECT subscriber_id FROM apps WHERE apps.id = app_id) AS "subscriber: SubscriberId",
                     credential_id AS credential, plugin AS "plugin: Plugin", from_address, to_address, subject,
                     recipients, smtputf8, attempts, message_id, outcome_unknown, left_by,
                     opened_at, size_bytes, next_attempt_at AS due_at, idempotency_key AS key, send_key_hash,
                     metadata"#,
        now,
        gateway.0,
        room.messages,
        &held,
        &mailboxes,
        room.per_mailbox,
        CONSIDERED,
        &taken,
        agreed,
        &subscribers,
        &taken_by,
        &most,
        room.per_subscriber,
    )
    .fetch_all(connection)
    .await
}

/// Claims up to `limit` messages of processes that have ended, for a running one.
pub async fn claim_of_ended(
    connection: &mut PgConnection,
    gateway: GatewayId,
    ended: &[GatewayId],
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let ended: Vec<Uuid> = ended.iter().map(|id| id.0).collect();
    sqlx::query_as!(
        Claimed,
        r#"WITH fence AS MATERIALIZED (
               SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
           )
           UPDATE spool SET gateway_id = fence.id
           FROM fence
           WHERE spool.id = ANY (ARRAY(
               SELECT id FROM spool
               WHERE state = 'open' AND lease_until IS NULL AND gateway_id = ANY($2)
               LIMIT $3
               FOR UPDATE SKIP LOCKED
           ))
           RETURNING spool.id, app_id AS app,
                     (SELECT subscriber_id FROM apps WHERE apps.id = app_id) AS "subscriber: SubscriberId",
                     credential_id AS credential, plugin AS "plugin: Plugin", from_address, to_address, subject,
                     recipients, smtputf8, attempts, message_id, outcome_unknown, left_by,
                     opened_at, size_bytes, next_attempt_at AS due_at, idempotency_key AS key, send_key_hash,
                     metadata"#,
        gateway.0,
        &ended,
        limit,
    )
    .fetch_all(connection)
    .await
}

/// Claims up to `limit` open messages without an owner whose lease has lapsed, for a running process: those postponed
/// by [`super::look_again`], and those of the previous release. A lease far in the future was given by a clock that has
/// been set back.
pub async fn claim_lapsed(
    connection: &mut PgConnection,
    gateway: GatewayId,
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    sqlx::query_as!(
        Claimed,
        r#"WITH fence AS MATERIALIZED (
               SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
           )
           UPDATE spool SET gateway_id = fence.id, lease_until = NULL
           FROM fence
           WHERE spool.id = ANY (ARRAY(
               SELECT id FROM spool
               WHERE state = 'open'
                     AND (lease_until < now() OR lease_until > now() + interval '5 minutes')
               ORDER BY lease_until
               LIMIT $2
               FOR UPDATE SKIP LOCKED
           ))
           RETURNING spool.id, app_id AS app,
                     (SELECT subscriber_id FROM apps WHERE apps.id = app_id) AS "subscriber: SubscriberId",
                     credential_id AS credential, plugin AS "plugin: Plugin", from_address, to_address, subject,
                     recipients, smtputf8, attempts, message_id, outcome_unknown, left_by,
                     opened_at, size_bytes, next_attempt_at AS due_at, idempotency_key AS key, send_key_hash,
                     metadata"#,
        gateway.0,
        limit,
    )
    .fetch_all(connection)
    .await
}

/// The messages that a process owns, except these.
pub async fn in_hand_beside(
    connection: &mut PgConnection,
    gateway: GatewayId,
    held: &[LogId],
) -> Result<Vec<Claimed>, sqlx::Error> {
    let held: Vec<Uuid> = held.iter().map(|id| id.0).collect();
    sqlx::query_as!(
        Claimed,
        r#"SELECT id, app_id AS app,
                  (SELECT subscriber_id FROM apps WHERE apps.id = app_id) AS "subscriber: SubscriberId",
                  credential_id AS credential, plugin AS "plugin: Plugin", from_address, to_address, subject,
                  recipients, smtputf8, attempts, message_id, outcome_unknown, left_by, opened_at, size_bytes,
                  next_attempt_at AS due_at, idempotency_key AS key, send_key_hash, metadata
           FROM spool
           WHERE state = 'open' AND lease_until IS NULL AND gateway_id = $1 AND id <> ALL($2)"#,
        gateway.0,
        &held,
    )
    .fetch_all(connection)
    .await
}
