//! The rows of the log that chance makes.

use chrono::{DateTime, Utc};
use mailgate_types::ids::LogId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;
use rand::RngExt;

use super::{ADDRESSES, Sample, World};

const SUBJECTS: [&str; 5] = [
    "Your order 100% (new)",
    "GR\u{dc}SSE aus K\u{f6}ln",
    "gr\u{fc}\u{df}e",
    "a_b [c] \\d",
    "",
];

impl World {
    fn some(&mut self, most: usize) -> Vec<usize> {
        let count = self.random.random_range(0..=most);
        (0..count)
            .map(|_| self.random.random_range(0..ADDRESSES.len()))
            .collect()
    }

    pub(super) fn sample(&mut self, at: DateTime<Utc>) -> Sample {
        let mailbox = self.random.random_range(0..self.mailboxes.len());
        // Others' messages have the same Message-IDs and recipients.
        let app = self.mailboxes[mailbox].app;
        let is_hot = self.random.random_bool(0.4);
        let to = if is_hot { vec![0] } else { self.some(3) };
        // One with a comma in quotes is told apart from others only where it stands alone.
        let to = if to.len() > 1 {
            to.into_iter().filter(|it| *it != 2).collect()
        } else {
            to
        };
        let status = self.one(&LogStatus::ALL);
        Sample {
            id: LogId::at(at),
            app,
            mailbox,
            to,
            cc: if is_hot { Vec::new() } else { self.some(2) },
            bcc: if is_hot { Vec::new() } else { self.some(1) },
            subject: self.one(&SUBJECTS),
            message_id: match self.random.random_range(0..10) {
                0 => None,
                1 => Some("no brackets".to_owned()),
                number => Some(format!("<{}@x>", number * self.random.random_range(1..40))),
            },
            plugin: self.one(&Plugin::ALL),
            status,
            bounced: status == LogStatus::Sent && self.random.random_bool(0.3),
            at,
        }
    }

    pub(super) async fn log(&mut self, samples: &[Sample]) {
        let mut transaction = self.gateway.daemon.pool.begin().await.unwrap();
        let named = |of: &[usize]| -> Vec<&str> { of.iter().map(|it| ADDRESSES[*it]).collect() };
        for sample in samples {
            sqlx::query(
                "INSERT INTO email_logs
                     (id, app_id, credential_id, from_address, to_address, cc_addresses,
                      bcc_addresses, subject, plugin, status, message_id, size_bytes,
                      has_attachments, sent_at, subscriber_id)
                 VALUES ($1, $2, $3, 'ada@example.com', $4, $5, $6, $7, $8, $9, $10, 1, false, $11,
                         (SELECT subscriber_id FROM apps WHERE apps.id = $2))",
            )
            .bind(sample.id.0)
            .bind(self.apps[sample.app].0)
            .bind(self.mailboxes[sample.mailbox].id.0)
            .bind(named(&sample.to).join(", "))
            .bind(named(&sample.cc))
            .bind(named(&sample.bcc))
            .bind(sample.subject)
            .bind(sample.plugin.as_str())
            .bind(sample.status.as_str())
            .bind(&sample.message_id)
            .bind(sample.at)
            .execute(&mut *transaction)
            .await
            .unwrap();
            if sample.bounced {
                sqlx::query(
                    "INSERT INTO bounced_messages
                     SELECT id, app_id, subscriber_id, plugin FROM email_logs WHERE id = $1",
                )
                .bind(sample.id.0)
                .execute(&mut *transaction)
                .await
                .unwrap();
            }
        }
        transaction.commit().await.unwrap();
        self.samples.extend(samples.iter().cloned());
        self.samples
            .sort_by_key(|sample| std::cmp::Reverse(sample.id));
    }
}
