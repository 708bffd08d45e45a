//! Sends the notices of events, each once: a row of the outbox is claimed with a lease, submitted to the relay, and its
//! outcome recorded.
//! A notice whose connection broke after the message was sent may have arrived. It isn't sent again: a user who misses
//! a notice still sees the alert in the portal, but one who gets it twice assumes two failed payments. Security notices
//! are sent again: a duplicate does less harm than an owner who isn't warned.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod text;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use sqlx::PgPool;

use crate::compose::{Composed, CustomHeader, Fields, compose};
use mailgate_providers::mail::verdict::Failure;
use mailgate_providers::relay::{NotSent, Relay, Relayed};
use mailgate_storage::billing_notices::{self, Due, NoticeOutcome};
use mailgate_types::clock::SharedClock;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::email_change::{CONFIRMED_WITHIN, EmailChangeStep};
use mailgate_types::named_address::NamedAddress;
use mailgate_types::notice::Notice;
use mailgate_types::past::Past;
use mailgate_types::seal::SealKeys;

/// Notices that are sent concurrently.
const BATCH: i64 = 4;

/// The margin of a lease beyond the longest submission.
const LEASE_MARGIN: TimeDelta = TimeDelta::minutes(2);

/// The pauses between attempts, in minutes; the last one stays.
const PAUSES: [i64; 6] = [1, 5, 15, 60, 120, 360];

/// How long a notice is retried: later it would be out of date.
const PATIENCE: TimeDelta = TimeDelta::days(3);

/// How long the outbox keeps notices that were sent or given up. No event is repeated after that.
const KEPT: TimeDelta = TimeDelta::days(90);

/// Rows that are removed in one statement.
const FORGET_BATCH: i64 = 1_000;

/// Sends notices.
#[derive(Debug, Clone)]
pub struct Notices {
    pool: PgPool,
    clock: SharedClock,
    relay: Option<Arc<Relay>>,
    pages: MailedPages,
}

/// The pages that the mails link to.
#[derive(Debug, Clone, Default)]
pub struct MailedPages {
    /// The page where subscribers manage their payments.
    pub billing: Option<Arc<str>>,
    /// The portal, without a slash at its end, and the keys that its links are sealed with.
    pub portal: Option<(Arc<str>, Arc<SealKeys>)>,
}

impl MailedPages {
    /// The page that a notice links to, besides the provider's; `None`: none.
    fn of(&self, notice: &Notice) -> Result<Option<String>, String> {
        let (step, id) = match notice {
            Notice::EmailChange { step, id, .. } => (step, id),
            Notice::ApiSecretRenewed { .. }
            | Notice::AccountSuspended { .. }
            | Notice::AccountResumed { .. } => {
                let portal = self.portal.as_ref();
                return Ok(portal.map(|(portal, _)| format!("{portal}/sign-in")));
            }
            _ => return Ok(self.billing.as_deref().map(str::to_owned)),
        };
        let (Some((portal, keys)), Some(link)) = (&self.portal, step.link()) else {
            return Ok(None);
        };
        let token = link.token(keys, *id);
        let token = token.map_err(|error| format!("no link can be sealed: {error}"))?;
        Ok(Some(format!("{portal}/email-change/{token}")))
    }
}

impl Notices {
    /// Without a relay each notice is recorded as skipped, with a line in the log.
    #[must_use]
    pub fn new(
        pool: PgPool,
        clock: SharedClock,
        relay: Option<Arc<Relay>>,
        pages: MailedPages,
    ) -> Self {
        Self {
            pool,
            clock,
            relay,
            pages,
        }
    }

    /// Sends some of the due notices; returns how many it claimed.
    pub async fn send_due(&self) -> Result<usize, sqlx::Error> {
        let now = self.clock.now();
        let patience = self
            .relay
            .as_ref()
            .map_or(Duration::ZERO, |relay| relay.patience());
        let lease = TimeDelta::from_std(patience).unwrap_or(TimeDelta::hours(1)) + LEASE_MARGIN;
        let mut connection = self.pool.acquire().await?;
        let due = billing_notices::claim(&mut connection, now, now + lease, BATCH).await?;
        drop(connection);
        let sent = join_all(due.iter().map(|due| self.send(due))).await;
        sent.into_iter().collect::<Result<(), _>>()?;
        Ok(due.len())
    }

    /// Deletes notices that were completed long ago.
    pub async fn forget(&self) -> Result<(), sqlx::Error> {
        let past = Past::by(&self.clock).before(KEPT);
        loop {
            let mut connection = self.pool.acquire().await?;
            let removed = billing_notices::forget(&mut connection, past, FORGET_BATCH).await?;
            if removed < FORGET_BATCH.unsigned_abs() {
                return Ok(());
            }
        }
    }

    async fn send(&self, due: &Due) -> Result<(), sqlx::Error> {
        let Some(relay) = &self.relay else {
            // Payments are mentioned nowhere else; everything else is in the audit trail.
            if is_once(due) {
                tracing::warn!(
                    notice_id = %due.id, subscriber_id = %due.subscriber, kind = kind(due),
                    "a notice is skipped: relay.host is not set, so the gateway sends no mail of its own"
                );
            }
            return self.record(due, NoticeOutcome::Skipped).await;
        };
        if due.left_before && is_once(due) {
            tracing::error!(
                notice_id = %due.id, subscriber_id = %due.subscriber, kind = kind(due),
                "the process that was sending a notice has died: the notice may have arrived, and is not sent again"
            );
            return self.record(due, NoticeOutcome::Unknown).await;
        }
        let composed = match mail(due, relay.from(), &self.pages, self.clock.now()) {
            Ok(composed) => composed,
            Err(why) => return self.give_up(due, &Failure::own(why)).await,
        };
        let Composed {
            message,
            recipients,
            smtputf8,
            ..
        } = &composed;
        let submission = match relay.begin(recipients, *smtputf8, message).await {
            Ok(submission) => submission,
            Err(not_sent) => return self.not_sent(due, not_sent).await,
        };
        let leaves = {
            let mut connection = self.pool.acquire().await?;
            billing_notices::leaves(&mut connection, due, self.clock.now()).await?
        };
        if !leaves {
            return Ok(());
        }
        match submission.finish(message).await {
            Relayed::Sent => self.record(due, NoticeOutcome::Sent).await,
            Relayed::NotSent(not_sent) => self.not_sent(due, not_sent).await,
            Relayed::Unknown(failure) if !is_once(due) => {
                self.not_sent(due, NotSent::Temporary(failure)).await
            }
            Relayed::Unknown(failure) => {
                tracing::error!(
                    notice_id = %due.id, subscriber_id = %due.subscriber, kind = kind(due), %failure,
                    "the connection to the relay broke after a notice was out: it may have arrived, and is not sent again"
                );
                self.record(due, NoticeOutcome::Unknown).await
            }
        }
    }

    async fn not_sent(&self, due: &Due, not_sent: NotSent) -> Result<(), sqlx::Error> {
        let failure = match not_sent {
            NotSent::Permanent(failure) => return self.give_up(due, &failure).await,
            NotSent::Temporary(failure) => failure,
        };
        let next = self.clock.now() + pause(due.attempts);
        if next > last_moment(due) {
            return self.give_up(due, &failure).await;
        }
        tracing::warn!(
            notice_id = %due.id, subscriber_id = %due.subscriber, kind = kind(due), %failure, next_attempt = %next,
            "a notice can't be sent yet"
        );
        let mut connection = self.pool.acquire().await?;
        billing_notices::postpone(&mut connection, due, next).await
    }

    async fn give_up(&self, due: &Due, failure: &Failure) -> Result<(), sqlx::Error> {
        tracing::error!(
            notice_id = %due.id, subscriber_id = %due.subscriber, kind = kind(due), attempts = due.attempts, %failure,
            "a notice is given up"
        );
        self.record(due, NoticeOutcome::GivenUp).await
    }

    async fn record(&self, due: &Due, outcome: NoticeOutcome) -> Result<(), sqlx::Error> {
        metrics::counter!("mailgate_notices_total", "outcome" => outcome.as_str()).increment(1);
        let mut connection = self.pool.acquire().await?;
        billing_notices::record_outcome(&mut connection, due, outcome, self.clock.now()).await
    }
}

/// Whether losing it is better than sending it twice.
fn is_once(due: &Due) -> bool {
    due.notice.as_ref().is_none_or(Notice::is_of_payments)
}

fn kind(due: &Due) -> &'static str {
    due.notice.as_ref().map_or("unknown", Notice::kind)
}

/// The pause after this many attempts.
fn pause(attempts: i32) -> TimeDelta {
    let past = usize::try_from(attempts.max(1) - 1).unwrap_or(0);
    TimeDelta::minutes(PAUSES[past.min(PAUSES.len() - 1)])
}

/// The time after which it is no longer sent.
fn last_moment(due: &Due) -> DateTime<Utc> {
    let patience = due.created_at + PATIENCE;
    match &due.notice {
        Some(Notice::TrialWillEnd { trial_end, .. }) => patience.min(*trial_end),
        Some(Notice::EmailChange {
            step: EmailChangeStep::Confirm,
            ..
        }) => due.created_at + CONFIRMED_WITHIN,
        _ => patience,
    }
}

fn mail(
    due: &Due,
    from: &NamedAddress,
    pages: &MailedPages,
    at: DateTime<Utc>,
) -> Result<Composed, String> {
    let notice = due.notice.as_ref().ok_or("its content can't be read")?;
    let to = EmailAddress::parse(&due.email)
        .map_err(|error| format!("the address is not valid: {error}"))?;
    let page = pages.of(notice)?;
    let words = text::write(notice, &due.label, page.as_deref());
    // RFC 3834 §5: suppresses automatic replies.
    let automatic =
        CustomHeader::new("Auto-Submitted", "auto-generated").map_err(|error| error.to_string())?;
    let fields = Fields {
        from_name: from.name.clone(),
        to,
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to: None,
        subject: words.subject,
        text: Some(words.text),
        html: Some(words.html),
        headers: vec![automatic],
        attachments: Vec::new(),
    };
    // Each attempt has the same Message-ID, so that duplicates can be recognized.
    let id = format!("notice_{}", due.id.simple());
    Ok(compose(fields, &from.address, at, &id))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use mailgate_types::ids::SubscriberId;
    use mailgate_types::notice::AmountDue;

    fn due(notice: Notice) -> Due {
        Due {
            id: uuid::Uuid::nil(),
            subscriber: SubscriberId(uuid::Uuid::nil()),
            label: "Müller & Söhne <b>\r\nBcc: eve@example.com".to_owned(),
            email: "owner@example.com".to_owned(),
            notice: Some(notice),
            attempts: 1,
            created_at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
            left_before: false,
            lease_until: DateTime::from_timestamp(1_700_000_600, 0).unwrap(),
        }
    }

    fn failed() -> Notice {
        Notice::PaymentFailed {
            amount_due: AmountDue {
                minor_units: 500,
                currency: "eur".to_owned(),
            },
            payment_url: None,
            next_attempt: None,
        }
    }

    #[test]
    fn pauses_grow_and_stay() {
        for (attempts, minutes) in [(0, 1), (1, 1), (2, 5), (6, 360), (60, 360)] {
            assert_eq!(pause(attempts), TimeDelta::minutes(minutes));
        }
    }

    #[test]
    fn a_reminder_makes_no_sense_once_the_trial_is_over() {
        let created = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        assert_eq!(last_moment(&due(failed())), created + PATIENCE);
        let trial_end = created + TimeDelta::hours(5);
        let reminder = Notice::TrialWillEnd {
            trial_end,
            has_payment_method: false,
        };
        assert_eq!(last_moment(&due(reminder)), trial_end);
    }

    #[test]
    fn the_mail_has_both_parts_and_nothing_that_a_label_smuggles() {
        let from = NamedAddress::parse("Mailgate <billing@gateway.example>").unwrap();
        let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let composed = mail(&due(failed()), &from, &MailedPages::default(), at).unwrap();
        assert_eq!(composed.recipients, ["owner@example.com"]);
        let bytes = composed.message.chunks().collect::<Vec<_>>().concat();
        let parsed = mail_parser::MessageParser::new().parse(&bytes).unwrap();
        assert!(parsed.bcc().is_none(), "{parsed:?}");
        assert_eq!(
            parsed.from().unwrap().first().unwrap().address(),
            Some("billing@gateway.example")
        );
        assert_eq!(
            parsed.header_raw("Auto-Submitted").map(str::trim),
            Some("auto-generated")
        );
        assert!(parsed.body_text(0).unwrap().contains("5.00 EUR"));
        let html = parsed.body_html(0).unwrap();
        assert!(html.contains("Müller &amp; Söhne &lt;b&gt;"), "{html}");
        let again = mail(
            &due(failed()),
            &from,
            &MailedPages::default(),
            at + TimeDelta::hours(1),
        )
        .unwrap();
        assert_eq!(composed.message_id, again.message_id);
    }

    #[test]
    fn an_address_that_is_none_is_told() {
        let from = NamedAddress::parse("billing@gateway.example").unwrap();
        let mut due = due(failed());
        due.email = "nobody".to_owned();
        assert!(mail(&due, &from, &MailedPages::default(), DateTime::UNIX_EPOCH).is_err());
        due.notice = None;
        assert!(mail(&due, &from, &MailedPages::default(), DateTime::UNIX_EPOCH).is_err());
    }
}
