//! The messages that a run is given, and who sends them.

use mailgate_types::ids::LogId;

use crate::support::gateway::Gateway;

/// The id of a logged message of an app.
pub(super) async fn logged(gateway: &Gateway, pushable_key: &str) -> String {
    let id = LogId::at(chrono::Utc::now());
    sqlx::query(
        "INSERT INTO email_logs
             (id, app_id, subscriber_id, credential_id, from_address, to_address, cc_addresses,
              bcc_addresses, subject, plugin, status, size_bytes, has_attachments, sent_at)
         SELECT $1, id, subscriber_id, $1, 'ada@example.com', 'bob@example.com', '{}', '{}', 'Hello',
                'plugin_b', 'sent', 512, false, now()
         FROM apps WHERE pushable_key = $2",
    )
    .bind(id.0)
    .bind(pushable_key)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    id.to_string()
}

/// The id of a message of an app that waits for another attempt.
pub(super) async fn waiting(gateway: &Gateway, pushable_key: &str) -> String {
    let id = logged(gateway, pushable_key).await;
    let log: LogId = id.parse().unwrap();
    sqlx::query(
        "WITH waiting AS (
             UPDATE email_logs SET status = 'failed_temp' WHERE id = $1 RETURNING *
         ), counted AS (
             INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
             SELECT app_id, date_bin('1 hour', sent_at, 'epoch'), plugin, status, 1 FROM waiting
         )
         INSERT INTO spool
             (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
              subject, plugin, size_bytes, has_attachments, recipients, smtputf8, opened_at, state,
              next_attempt_at, attempts, is_logged, outcome_unknown)
         SELECT id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
                subject, plugin, size_bytes, has_attachments, '{bob@example.com}', false, sent_at,
                'deferred', now() + interval '1 day', 1, false, false
         FROM waiting",
    )
    .bind(log.0)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    // Only then does it count towards the quota.
    sqlx::query("UPDATE spool SET is_logged = true WHERE id = $1")
        .bind(log.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    id
}

/// The key of the user whose mailbox sends.
pub(super) async fn user_key(gateway: &Gateway) -> String {
    let key: uuid::Uuid = sqlx::query_scalar("SELECT user_key FROM mailboxes WHERE app_id = $1")
        .bind(gateway.app.id.0)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    key.to_string()
}
