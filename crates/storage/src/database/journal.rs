//! The journal's statements, each one round trip and one commit: messages that the gateway accepts, and messages that
//! end with their log rows, attempts, counters and webhooks. Each part of a statement costs Postgres something, even
//! with nothing to do, so the common case has a statement of its own.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use crate::spool::{Attempt, Closing, Opening};
use crate::webhook_messages::NewMessage;
use mailgate_types::ids::{GatewayId, LogId};

/// Addresses are joined into one text per row, since Postgres can't unnest an array of arrays; no address contains a
/// line break.
const SEPARATOR: &str = "\n";

/// Openings as columns.
struct Openings<'a> {
    ids: Vec<Uuid>,
    apps: Vec<Uuid>,
    credentials: Vec<Uuid>,
    from_addresses: Vec<&'a str>,
    to_addresses: Vec<&'a str>,
    cc_addresses: Vec<String>,
    bcc_addresses: Vec<String>,
    subjects: Vec<&'a str>,
    plugins: Vec<&'a str>,
    message_ids: Vec<Option<&'a str>>,
    sizes: Vec<i64>,
    attachments: Vec<bool>,
    metadata: Vec<Option<String>>,
    doors: Vec<&'a str>,
    recipients: Vec<String>,
    smtputf8: Vec<bool>,
    opened: Vec<DateTime<Utc>>,
    keys: Vec<Option<&'a str>>,
    versions: Vec<Option<Uuid>>,
}

impl<'a> Openings<'a> {
    fn of(openings: &[&'a Opening]) -> Self {
        fn column<'a, T>(openings: &[&'a Opening], value: impl Fn(&'a Opening) -> T) -> Vec<T> {
            openings.iter().copied().map(value).collect()
        }
        Self {
            ids: column(openings, |opening| opening.id.0),
            apps: column(openings, |opening| opening.app.0),
            credentials: column(openings, |opening| opening.credential.0),
            from_addresses: column(openings, |opening| opening.from_address.as_str()),
            to_addresses: column(openings, |opening| opening.to_address.as_str()),
            cc_addresses: column(openings, |opening| opening.cc_addresses.join(SEPARATOR)),
            bcc_addresses: column(openings, |opening| opening.bcc_addresses.join(SEPARATOR)),
            subjects: column(openings, |opening| opening.subject.as_str()),
            plugins: column(openings, |opening| opening.plugin.as_str()),
            message_ids: column(openings, |opening| opening.message_id.as_deref()),
            sizes: column(openings, |opening| opening.size_bytes),
            attachments: column(openings, |opening| opening.has_attachments),
            metadata: column(openings, |opening| opening.metadata.to_json()),
            doors: column(openings, |opening| opening.door.as_str()),
            recipients: column(openings, |opening| opening.recipients.join(SEPARATOR)),
            smtputf8: column(openings, |opening| opening.smtputf8),
            opened: column(openings, |opening| opening.opened_at),
            keys: column(openings, |opening| opening.key.as_deref()),
            versions: column(openings, |opening| opening.version.map(|version| version.0)),
        }
    }
}

/// Endings as columns.
struct Closings<'a> {
    ids: Vec<Uuid>,
    statuses: Vec<&'a str>,
    errors: Vec<Option<&'a str>>,
    message_ids: Vec<Option<&'a str>>,
    attempts: Vec<Option<i32>>,
    attempted: Vec<Option<DateTime<Utc>>>,
    milliseconds: Vec<Option<i64>>,
}

impl<'a> Closings<'a> {
    fn of(closings: &[&'a Closing]) -> Self {
        fn column<'a, T>(closings: &[&'a Closing], value: impl Fn(&'a Closing) -> T) -> Vec<T> {
            closings.iter().copied().map(value).collect()
        }
        let attempt = |closing: &Closing| closing.attempt;
        Self {
            ids: column(closings, |closing| closing.id.0),
            statuses: column(closings, |closing| closing.status.as_str()),
            errors: column(closings, |closing| closing.error_message.as_deref()),
            message_ids: column(closings, |closing| closing.message_id.as_deref()),
            attempts: column(closings, |closing| {
                attempt(closing).map(|Attempt { number, .. }| number)
            }),
            attempted: column(closings, |closing| {
                attempt(closing).map(|Attempt { at, .. }| at)
            }),
            milliseconds: column(closings, |closing| {
                attempt(closing).map(|Attempt { milliseconds, .. }| milliseconds)
            }),
        }
    }
}

/// A statement that writes openings, followed by further parts.
/// Its plan is cached, and by its statistics a table that keeps filling and emptying may be empty. A join by id would
/// then scan the whole spool's primary key; `= ANY (ARRAY[…])` is always an index lookup.
macro_rules! with_openings {
    ($opening:ident, $gateway:ident, $behind:tt $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $17 AND ended_at IS NULL FOR KEY SHARE
         ), opened AS (
             INSERT INTO spool
                 (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
                  subject, plugin, message_id, size_bytes, has_attachments, recipients, smtputf8,
                  opened_at, state, gateway_id, idempotency_key, metadata, door)
             SELECT opening.id, app_id, credential_id, from_address, to_address,
                    string_to_array(cc_addresses, E'\\n'), string_to_array(bcc_addresses, E'\\n'),
                    subject, plugin, message_id, size_bytes, has_attachments,
                    string_to_array(recipients, E'\\n'), smtputf8, opened_at, 'open', fence.id, key,
                    metadata::jsonb, door
             FROM fence, unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[],
                         $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[],
                         $12::boolean[], $13::text[], $14::boolean[], $15::timestamptz[],
                         $16::text[], $18::uuid[], $19::text[], $20::text[])
                  AS opening (id, app_id, credential_id, from_address, to_address, cc_addresses,
                              bcc_addresses, subject, plugin, message_id, size_bytes,
                              has_attachments, recipients, smtputf8, opened_at, key, version,
                              metadata, door)
             WHERE opening.version IS NULL
                   OR opening.version = (SELECT app_versions.version FROM app_versions
                                 WHERE app_versions.app_id = opening.app_id)
             RETURNING id
         " + $behind,
            &$opening.ids,
            &$opening.apps,
            &$opening.credentials,
            &$opening.from_addresses as &[&str],
            &$opening.to_addresses as &[&str],
            &$opening.cc_addresses,
            &$opening.bcc_addresses,
            &$opening.subjects as &[&str],
            &$opening.plugins as &[&str],
            &$opening.message_ids as &[Option<&str>],
            &$opening.sizes,
            &$opening.attachments,
            &$opening.recipients,
            &$opening.smtputf8,
            &$opening.opened,
            &$opening.keys as &[Option<&str>],
            $gateway.0,
            &$opening.versions as &[Option<Uuid>],
            &$opening.metadata as &[Option<String>],
            &$opening.doors as &[&str]
            $(, $argument)*
        )
    };
}

/// The writing process has ended: nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HasEnded;

/// The result of a statement that only writes while its process has not ended.
pub type Fenced<T> = Result<Result<T, HasEnded>, sqlx::Error>;

fn fenced<T>(is_living: bool, value: T) -> Result<T, HasEnded> {
    if is_living { Ok(value) } else { Err(HasEnded) }
}

/// Writes openings, except those whose app has changed since its mailbox was chosen; returns those written.
///
/// # Errors
///
/// The database's error; nothing is written then.
pub async fn open(
    connection: &mut PgConnection,
    gateway: GatewayId,
    openings: &[&Opening],
) -> Fenced<Vec<LogId>> {
    let opening = Openings::of(openings);
    let written = with_openings!(
        opening,
        gateway,
        r#") SELECT EXISTS (SELECT FROM fence) AS "is_living!", ARRAY(SELECT id FROM opened) AS "opened!""#
    )
    .fetch_one(connection)
    .await?;
    Ok(fenced(written.is_living, ids(written.opened)))
}

fn ids(ids: Vec<Uuid>) -> Vec<LogId> {
    ids.into_iter().map(LogId).collect()
}

/// The written entries.
#[derive(Debug, Default)]
pub struct Written {
    /// Openings.
    pub opened: Vec<LogId>,
    /// Endings.
    pub ended: Vec<LogId>,
}

/// Writes openings, and the endings of messages that were sent at their first attempt. Endings with webhook
/// listeners, with earlier failed attempts, or no longer in the spool are left to [`write`]; returns what was
/// written.
///
/// # Errors
///
/// The database's error; nothing is written then.
pub async fn write_sent(
    connection: &mut PgConnection,
    gateway: GatewayId,
    openings: &[&Opening],
    closings: &[&Closing],
) -> Fenced<Written> {
    let opening = Openings::of(openings);
    let ids: Vec<Uuid> = closings.iter().map(|closing| closing.id.0).collect();
    let message_ids: Vec<Option<&str>> = (closings.iter())
        .map(|closing| closing.message_id.as_deref())
        .collect();
    let written = with_openings!(
        opening,
        gateway,
        r#"), closing AS (
             SELECT * FROM unnest($21::uuid[], $22::text[]) AS closing (id, given_message_id)
         ), taken AS (
             DELETE FROM spool USING closing
             WHERE spool.id = ANY (ARRAY[closing.id]) AND gateway_id = (SELECT id FROM fence)
                   AND NOT is_logged
                   AND NOT EXISTS (SELECT FROM apps
                                   WHERE apps.id = spool.app_id AND webhook_url <> '')
                   AND NOT EXISTS (SELECT FROM webhook_configs AS config
                                   WHERE config.app_id = spool.app_id AND is_active)
             RETURNING spool.*, closing.given_message_id
         ), logged AS (
             INSERT INTO email_logs
                 (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
                  subject, plugin, status, message_id, size_bytes, has_attachments, sent_at,
                  metadata, door, subscriber_id)
             SELECT id, app_id, credential_id, from_address, to_address, cc_addresses,
                    bcc_addresses, subject, plugin, 'sent', coalesce(given_message_id, message_id),
                    size_bytes, has_attachments, opened_at, metadata, door,
                    (SELECT subscriber_id FROM apps WHERE apps.id = app_id)
             FROM taken
         ), counted AS (
             INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
             SELECT app_id, date_bin('1 hour', opened_at, 'epoch') AS hour, plugin, 'sent', count(*)
             FROM taken
             GROUP BY app_id, hour, plugin
         )
         SELECT EXISTS (SELECT FROM fence) AS "is_living!", ARRAY(SELECT id FROM opened) AS "opened!",
                ARRAY(SELECT id FROM taken) AS "ended!""#,
        &ids,
        &message_ids as &[Option<&str>],
    )
    .fetch_one(connection)
    .await?;
    let (opened, ended) = (self::ids(written.opened), self::ids(written.ended));
    Ok(fenced(written.is_living, Written { opened, ended }))
}

/// Writes openings and endings. An ending removes its message from the spool and writes its log row, or completes the
/// row that a failed attempt wrote; it is counted, and its webhook events are queued. The log row of a day that is no
/// longer kept is not written, which is counted and logged. If a message is no longer in the spool, nothing is written
/// for it: it had ended before. Returns the openings that were written, as [`open`].
///
/// # Errors
///
/// The database's error; nothing is written then.
#[expect(clippy::too_many_lines, reason = "one statement")]
pub async fn write(
    connection: &mut PgConnection,
    gateway: GatewayId,
    openings: &[&Opening],
    closings: &[&Closing],
    events: &[NewMessage],
    now: DateTime<Utc>,
) -> Fenced<Vec<LogId>> {
    let (opening, closing) = (Openings::of(openings), Closings::of(closings));
    let event_ids: Vec<Uuid> = events.iter().map(|event| event.id.0).collect();
    let event_logs: Vec<Option<Uuid>> = events
        .iter()
        .map(|event| event.log.map(|log| log.0))
        .collect();
    let event_names: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    let bodies: Vec<&str> = events.iter().map(|event| event.body.as_str()).collect();
    let written = with_openings!(
        opening,
        gateway,
        r#"), closing AS (
             SELECT * FROM unnest($21::uuid[], $22::text[], $23::text[], $24::text[],
                                  $25::integer[], $26::timestamptz[], $27::bigint[])
                 AS closing (id, status, error_message, given_message_id, attempt, attempted_at,
                             duration_ms)
         ), taken AS (
             DELETE FROM spool USING closing
             WHERE spool.id = ANY (ARRAY[closing.id]) AND gateway_id = (SELECT id FROM fence)
             RETURNING spool.*, closing.status, closing.error_message, closing.given_message_id,
                       closing.attempt, closing.attempted_at, closing.duration_ms
         ), attempted AS (
             INSERT INTO email_attempts (log_id, number, at, duration_ms, status, error_message)
             SELECT id, attempt, attempted_at, duration_ms, status, error_message
             FROM taken
             WHERE attempt IS NOT NULL AND (attempt > 1 OR status <> 'sent')
                   AND opened_at >= (SELECT kept_since FROM log_retention)
             ON CONFLICT DO NOTHING
         ), logged AS (
             INSERT INTO email_logs
                 (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
                  subject, plugin, status, error_message, message_id, size_bytes, has_attachments,
                  sent_at, metadata, door, subscriber_id)
             SELECT id, app_id, credential_id, from_address, to_address, cc_addresses,
                    bcc_addresses, subject, plugin, status, error_message,
                    coalesce(given_message_id, message_id), size_bytes, has_attachments, opened_at,
                    metadata, door, (SELECT subscriber_id FROM apps WHERE apps.id = app_id)
             FROM taken
             WHERE opened_at >= (SELECT kept_since FROM log_retention)
             ON CONFLICT (id) DO UPDATE
             SET status = EXCLUDED.status, error_message = EXCLUDED.error_message,
                 message_id = EXCLUDED.message_id,
                 metadata = coalesce(EXCLUDED.metadata, email_logs.metadata)
         ), counted AS (
             INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
             SELECT app_id, hour, plugin, status, sum(messages)::bigint
             FROM (
                 SELECT app_id, date_bin('1 hour', opened_at, 'epoch') AS hour, plugin, status,
                        1 AS messages
                 FROM taken
                 UNION ALL
                 SELECT app_id, date_bin('1 hour', opened_at, 'epoch'), plugin, 'failed_temp', -1
                 FROM taken WHERE is_logged
             ) AS change
             GROUP BY app_id, hour, plugin, status
         ), heard AS MATERIALIZED (
             SELECT message.*, taken.app_id, endpoints.*
             FROM unnest($28::uuid[], $29::uuid[], $30::text[], $31::text[])
                      AS message (id, log_id, event, body)
                  JOIN taken ON taken.id = log_id
                  JOIN LATERAL (
                      SELECT array_agg(endpoint_id) AS endpoint_ids, array_agg(url) AS urls,
                             array_agg(secret_sealed) AS secrets
                      FROM (
                          SELECT apps.id, webhook_url, webhook_secret_sealed
                          FROM apps WHERE apps.id = taken.app_id AND webhook_url <> ''
                          UNION ALL
                          SELECT config.id, url, secret_sealed
                          FROM webhook_configs AS config
                          WHERE config.app_id = taken.app_id AND is_active
                                AND message.event = ANY (events)
                      ) AS endpoint (endpoint_id, url, secret_sealed)
                      HAVING count(*) > 0
                  ) AS endpoints ON true
         ), told AS (
             INSERT INTO webhook_messages (app_id, id, event, log_id, body, created_at)
             SELECT app_id, id, event, log_id, body, $32 FROM heard
         ), queued AS (
             INSERT INTO webhook_queue
                 (message_id, endpoint_id, app_id, log_id, event, url, secret_sealed, due_at)
             SELECT id, endpoint_id, app_id, log_id, event, url, secret_sealed, $32
             FROM heard, unnest(endpoint_ids, urls, secrets)
                             AS endpoint (endpoint_id, url, secret_sealed)
         )
         SELECT EXISTS (SELECT FROM fence)
                AND (SELECT count(pg_notify('webhooks', '')::text)
                     FROM (SELECT FROM heard LIMIT 1) AS first) >= 0 AS "is_living!",
                ARRAY(SELECT id FROM opened) AS "opened!",
                (SELECT count(*) FROM taken
                 WHERE opened_at < (SELECT kept_since FROM log_retention)) AS "unlogged!""#,
        &closing.ids,
        &closing.statuses as &[&str],
        &closing.errors as &[Option<&str>],
        &closing.message_ids as &[Option<&str>],
        &closing.attempts as &[Option<i32>],
        &closing.attempted as &[Option<DateTime<Utc>>],
        &closing.milliseconds as &[Option<i64>],
        &event_ids,
        &event_logs as &[Option<Uuid>],
        &event_names as &[&str],
        &bodies as &[&str],
        now,
    )
    .fetch_one(connection)
    .await?;
    if written.unlogged > 0 {
        let messages = written.unlogged;
        tracing::warn!(
            messages,
            "messages have ended that are older than the log: they are counted, and have no row in it"
        );
        metrics::counter!("mailgate_unlogged_total").increment(messages.unsigned_abs());
    }
    Ok(fenced(written.is_living, ids(written.opened)))
}
