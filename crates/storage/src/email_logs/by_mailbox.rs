//! Log rows counted by mailbox. There are no counters of mailboxes: only the newest rows are read.

use sqlx::PgConnection;

use super::search::{Kind, Window, columns};
use mailgate_types::ids::{CredentialId, Owner};

/// The messages of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxCounts {
    /// The mailbox.
    pub id: CredentialId,
    /// Its address.
    pub email: String,
    /// Those that were sent, with the ones that have bounced.
    pub sent: i64,
    /// Those that wait for their next attempt.
    pub waiting: i64,
    /// Those that have failed.
    pub failed: i64,
    /// Those that have bounced.
    pub bounced: i64,
}

/// The newest `rows` rows of these kinds in a window, counted by mailbox: the `limit` mailboxes with the most.
pub async fn by_mailbox(
    connection: &mut PgConnection,
    window: Window<'_>,
    kinds: &[Kind],
    rows: i64,
    limit: i64,
) -> Result<Vec<MailboxCounts>, sqlx::Error> {
    let (plugins, statuses) = columns(kinds);
    let (from, to) = window.ids();
    let owner = window.owner.id();
    macro_rules! newest {
        ($owner:literal, $but:literal $(, $deleted:expr)?) => {
            sqlx::query_scalar!(
                "SELECT found.id
                 FROM unnest($2::text[], $3::text[]) AS kind (plugin, status)
                      CROSS JOIN LATERAL (
                          SELECT id FROM email_logs AS log
                          WHERE " + $owner + " = $1 AND log.plugin = kind.plugin
                            AND log.status = kind.status AND id >= $4 AND id < $5 " + $but + "
                          ORDER BY id DESC LIMIT $6
                      ) AS found
                 ORDER BY found.id DESC LIMIT $6",
                owner,
                &plugins as &[&str],
                &statuses as &[&str],
                from,
                to,
                rows
                $(, $deleted)?
            )
            .fetch_all(&mut *connection)
            .await?
        };
    }
    let ids: Vec<_> = match window.owner {
        Owner::App(_) => newest!("app_id", ""),
        Owner::Subscriber(_) => {
            newest!("subscriber_id", "AND app_id <> ALL($7)", &window.deleted())
        }
    };
    // The bounds let Postgres prune partitions.
    sqlx::query_as!(
        MailboxCounts,
        r#"SELECT credential_id AS id, coalesce(max(mailboxes.email), max(from_address)) AS "email!",
                  count(*) FILTER (WHERE log.status = 'sent') AS "sent!",
                  count(*) FILTER (WHERE log.status = 'failed_temp') AS "waiting!",
                  count(*) FILTER (WHERE log.status = 'failed_perm') AS "failed!",
                  count(*) FILTER (WHERE EXISTS (SELECT FROM bounced_messages WHERE log_id = log.id))
                      AS "bounced!"
           FROM email_logs AS log LEFT JOIN mailboxes ON mailboxes.id = credential_id
           WHERE log.id = ANY($1) AND log.id >= $2 AND log.id <= $3
           GROUP BY credential_id
           ORDER BY count(*) DESC, credential_id LIMIT $4"#,
        &ids,
        ids.iter().min().copied().unwrap_or_default(),
        ids.iter().max().copied().unwrap_or_default(),
        limit,
    )
    .fetch_all(connection)
    .await
}
