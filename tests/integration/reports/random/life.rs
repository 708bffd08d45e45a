//! The life of the messages: they are logged, bounce, and end.

use chrono::{TimeDelta, Utc};
use mailgate_storage::database::journal;
use mailgate_storage::spool::{self, Attempt, Closing, Deferral, Opening};
use mailgate_storage::{bounced_messages, email_counters};
use mailgate_types::door::Door;
use mailgate_types::ids::{CredentialId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::metadata::Metadata;

use super::World;
use super::samples::{Fate, Sample};

impl World {
    /// Opens all, and brings them to their first end.
    pub(super) async fn log(&self, samples: &[Sample]) -> Vec<(LogId, Fate)> {
        let mut transaction = self.gateway.daemon.pool.begin().await.unwrap();
        let openings: Vec<Opening> = samples.iter().map(|sample| self.opening(sample)).collect();
        let opened: Vec<&Opening> = openings.iter().collect();
        let opening = journal::open(&mut transaction, self.serving, &opened);
        assert!(opening.await.unwrap().is_ok());
        let all: Vec<(LogId, Fate)> = openings
            .iter()
            .zip(samples)
            .map(|(opening, sample)| (opening.id, sample.fate))
            .collect();
        let closings: Vec<Closing> = all
            .iter()
            .filter_map(|(id, fate)| match fate {
                Fate::Sent => Some(closing(*id, LogStatus::Sent, 1)),
                Fate::FailedPerm => Some(closing(*id, LogStatus::FailedPerm, 1)),
                _ => None,
            })
            .collect();
        let (sent, failed): (Vec<&Closing>, Vec<&Closing>) =
            (closings.iter()).partition(|closing| closing.status == LogStatus::Sent);
        let written = journal::write_sent(&mut transaction, self.serving, &[], &sent);
        assert_eq!(written.await.unwrap().unwrap().ended.len(), sent.len());
        let written =
            journal::write(&mut transaction, self.serving, &[], &failed, &[], self.now).await;
        assert!(written.unwrap().is_ok());
        for (id, _) in all
            .iter()
            .filter(|(_, fate)| matches!(fate, Fate::Retried(_)))
        {
            let deferral = Deferral {
                id: *id,
                attempts: 1,
                error_message: "451 later".to_owned(),
                next_attempt_at: self.now + TimeDelta::days(500),
                left_by: None,
                awaits_subscription: false,
                awaits_pace: false,
                attempt: None,
                due_at: None,
            };
            let deferred = spool::defer(&mut transaction, self.serving, &deferral).await;
            let deferred = deferred.unwrap().unwrap();
            email_counters::count_deferred(&mut transaction, &deferred, 1)
                .await
                .unwrap();
        }
        transaction.commit().await.unwrap();
        all
    }

    /// Marks what bounces; only what is sent by now.
    pub(super) async fn bounce(&self, samples: &[Sample], all: &[(LogId, Fate)]) {
        let bounced = samples.iter().zip(all).filter(|(sample, _)| sample.bounces);
        let bounced: Vec<LogId> = bounced.map(|(_, (id, _))| *id).collect();
        let mut connection = self.gateway.database().await;
        // Twice is once.
        for _ in 0..2 {
            bounced_messages::mark(&mut connection, &bounced)
                .await
                .unwrap();
        }
    }

    fn opening(&self, sample: &Sample) -> Opening {
        let at = self.at(sample.back);
        Opening {
            id: LogId::at(at),
            app: self.apps[sample.app],
            credential: CredentialId(self.apps[sample.app].0),
            from_address: "ada@example.com".to_owned(),
            to_address: "bob@example.com".to_owned(),
            cc_addresses: Vec::new(),
            bcc_addresses: Vec::new(),
            subject: String::new(),
            plugin: sample.plugin,
            message_id: None,
            size_bytes: 1,
            has_attachments: false,
            metadata: Metadata::default(),
            door: Door::Rest,
            recipients: vec!["bob@example.com".to_owned()],
            smtputf8: false,
            opened_at: at,
            key: None,
            version: None,
        }
    }

    /// Ends what was tried again.
    pub(super) async fn end(&self, all: &[(LogId, Fate)]) {
        let closings: Vec<Closing> = all
            .iter()
            .filter_map(|(id, fate)| match fate {
                Fate::Retried(status) => Some(closing(*id, *status, 2)),
                _ => None,
            })
            .collect();
        let mut connection = self.gateway.database().await;
        let closings: Vec<&Closing> = closings.iter().collect();
        let written = journal::write(&mut connection, self.serving, &[], &closings, &[], self.now);
        assert!(written.await.unwrap().is_ok());
    }
}

fn closing(id: LogId, status: LogStatus, number: i32) -> Closing {
    Closing {
        id,
        status,
        error_message: None,
        message_id: None,
        attempt: Some(Attempt {
            number,
            at: Utc::now(),
            milliseconds: 1,
        }),
    }
}
