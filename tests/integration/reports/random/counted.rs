//! Pages, totals and sums beside what counting finds.

use mailgate_domain::reports::{AppReference, Filter, Period, Start};
use mailgate_storage::partitions;
use mailgate_types::ids::LogId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;
use uuid::Uuid;

use super::samples::{Asked, asked};
use super::{FILTERS, World};

impl World {
    /// Asks random questions, and answers them by counting.
    pub(super) async fn check(&mut self, stage: &str) {
        for _ in 0..FILTERS {
            let asked = self.draw(&asked());
            let filter = Filter {
                app: asked
                    .app
                    .map(|app| AppReference::parse(&self.apps[app].to_string()).unwrap()),
                status: asked.status,
                plugin: asked.plugin,
                bounced: asked.bounced,
                from: asked.from.map(|back| self.at(back)),
                before: asked.before.map(|back| self.at(back)),
                ..Filter::default()
            };
            let limit = usize::try_from(asked.limit).unwrap();
            let page = self
                .reports
                .logs(
                    self.subscriber(),
                    &filter,
                    limit,
                    Start::Offset(asked.offset),
                )
                .await
                .unwrap();
            let expected = self.counted(&filter, &asked).await;
            let place = format!("{stage}: {asked:?}");
            let total = i64::try_from(expected.len()).unwrap();
            assert_eq!(page.total, Some(total), "{place}");
            let ids: Vec<LogId> = page.logs.iter().map(|log| log.id).collect();
            let skip = usize::try_from(asked.offset).unwrap();
            let wanted: Vec<LogId> = expected.iter().skip(skip).take(limit).copied().collect();
            assert_eq!(ids, wanted, "{place}");
            assert_eq!(page.has_more, asked.offset + asked.limit < total, "{place}");
            assert_eq!(page.has_more, page.next.is_some(), "{place}");
            let mut next = page.next;
            let mut found = skip + ids.len();
            // Some pages further.
            for _ in 0..4 {
                let Some(at) = next else { break };
                let page = self
                    .reports
                    .logs(self.subscriber(), &filter, limit, Start::At(at));
                let page = page.await.unwrap();
                let ids: Vec<LogId> = page.logs.iter().map(|log| log.id).collect();
                let wanted = &expected[found..expected.len().min(found + limit)];
                assert_eq!(ids, wanted, "behind {found}: {place}");
                found += ids.len();
                assert_eq!(page.total, Some(total), "{place}");
                assert_eq!(page.next.is_some(), found < expected.len(), "{place}");
                assert_eq!(page.has_more, page.next.is_some(), "{place}");
                next = page.next;
            }
        }
    }

    /// The ids of all rows that a filter lets through, as plain SQL has them.
    async fn counted(&self, filter: &Filter, asked: &Asked) -> Vec<LogId> {
        let ids: Vec<Uuid> = sqlx::query_scalar(
            "SELECT email_logs.id FROM email_logs JOIN apps ON apps.id = app_id
             WHERE apps.subscriber_id = $1 AND ($2::uuid IS NULL OR app_id = $2)
               AND ($3::text IS NULL OR status = $3) AND ($4::text IS NULL OR plugin = $4)
               AND ($5::timestamptz IS NULL OR date_trunc('milliseconds', sent_at) >= $5)
               AND ($6::timestamptz IS NULL OR date_trunc('milliseconds', sent_at) < $6)
               AND sent_at >= $7
               AND ($8::boolean IS NULL
                    OR $8 = EXISTS (SELECT FROM bounced_messages WHERE log_id = email_logs.id))
             ORDER BY email_logs.id DESC",
        )
        .bind(self.subscriber().0)
        .bind(asked.app.map(|app| self.apps[app].0))
        .bind(filter.status.map(LogStatus::as_str))
        .bind(filter.plugin.map(Plugin::as_str))
        .bind(filter.from)
        .bind(filter.before)
        .bind(self.kept_since)
        .bind(filter.bounced)
        .fetch_all(&mut self.gateway.database().await)
        .await
        .unwrap();
        ids.into_iter().map(LogId).collect()
    }

    /// The statistics beside what the log holds; all of it is in there yet.
    pub(super) async fn check_sums(&self, stage: &str) {
        for (period, unit) in [(Period::Day, "day"), (Period::Month, "month")] {
            let stats = self.reports.email_stats(self.subscriber(), period, None);
            for data in stats.await.unwrap().data {
                for status in LogStatus::ALL {
                    let counted: i64 = sqlx::query_scalar(
                        "SELECT count(*) FROM email_logs JOIN apps ON apps.id = app_id
                         WHERE apps.subscriber_id = $1 AND status = $2
                           AND date_trunc($3, sent_at, 'UTC') = $4",
                    )
                    .bind(self.subscriber().0)
                    .bind(status.as_str())
                    .bind(unit)
                    .bind(partitions::midnight(data.start))
                    .fetch_one(&mut self.gateway.database().await)
                    .await
                    .unwrap();
                    let place = format!("{stage}: {} {status:?}", data.start);
                    assert_eq!(data.counts.sum(None, Some(status)), counted, "{place}");
                }
                let bounced: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM bounced_messages
                          JOIN email_logs ON email_logs.id = log_id
                          JOIN apps ON apps.id = email_logs.app_id
                     WHERE apps.subscriber_id = $1 AND status = 'sent'
                       AND date_trunc($2, sent_at, 'UTC') = $3",
                )
                .bind(self.subscriber().0)
                .bind(unit)
                .bind(partitions::midnight(data.start))
                .fetch_one(&mut self.gateway.database().await)
                .await
                .unwrap();
                assert_eq!(
                    data.counts.bounced(None),
                    bounced,
                    "{stage}: {}",
                    data.start
                );
            }
        }
    }
}
