//! The messages as the gateway would have accepted, tried and logged them.

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};

use super::SeedError;
use super::failures;
use super::mailboxes::Seat;
use super::period::Period;
use super::plan::{Fate, Plan, Response};
use super::random::Random;
use mailgate_domain::compose::{
    Attachment, Composed, CustomHeader, Fields, Filename, MediaType, compose,
};
use mailgate_domain::history::{LoggedAttempt, Opening, PastEnd, PastMessage, ScheduledMessage};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::LogId;
use mailgate_types::log_status::{CANCELLED, LogStatus};
use mailgate_types::message::Message;

/// Waits between attempts, as in `sending.retry_seconds`.
const RETRY: [i64; 9] = [60, 300, 900, 3_600, 7_200, 14_400, 28_800, 57_600, 86_400];

/// The most attempts of a message that waits.
const MOST_ATTEMPTS: usize = 8;

/// How far ahead the next attempt is at the least.
const AHEAD: TimeDelta = TimeDelta::minutes(12);

/// How far the scheduled messages are apart.
const APART: TimeDelta = TimeDelta::hours(13);

/// The media type of all files.
const PDF: &str = "application/pdf";

/// The HTML of a letter, with `{text}` and `{sender}`.
const LETTER: &str = include_str!("letter.html");

/// A message of the past, its bytes, and its plan.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) plan: Plan,
    pub(super) past: PastMessage,
    pub(super) bytes: Message,
}

impl Written {
    /// When its last attempt had ended.
    pub(super) fn ended_at(&self) -> DateTime<Utc> {
        let last = self.past.attempts.last();
        let ended =
            last.and_then(|last| Some(last.at + TimeDelta::milliseconds(last.duration_ms?)));
        ended.unwrap_or(self.past.opening.opened_at)
    }

    /// The Message-ID of the reply to it.
    pub(super) fn id_of_reply(&self) -> String {
        let id = self.past.opening.id.0.simple();
        format!("<re.{id}@mail.example>")
    }
}

/// All messages of the period.
pub(super) fn past(
    plans: Vec<Plan>,
    seats: &[Seat],
    period: &Period,
) -> Result<Vec<Written>, SeedError> {
    let moments = period.moments(plans.len());
    let mut written: Vec<Written> = Vec::with_capacity(plans.len());
    for (number, (plan, at)) in plans.into_iter().zip(moments).enumerate() {
        let seat = &seats[plan.person];
        let thread = plan.follows.and_then(|earlier| written.get(earlier));
        let (opening, bytes) = accepted(&plan, seat, at, thread)?;
        let mut random = Random::of(20, number);
        let attempts = attempts(&plan, at, period.now, &mut random);
        let end = end(&plan, &attempts, &bytes, period.now, number);
        let past = PastMessage {
            opening,
            attempts,
            end,
        };
        written.push(Written { plan, past, bytes });
    }
    Ok(written)
}

/// Messages of the next days.
pub(super) fn scheduled(
    plans: Vec<Plan>,
    seats: &[Seat],
    period: &Period,
) -> Result<Vec<ScheduledMessage>, SeedError> {
    let times = std::iter::successors(Some(period.now + APART), |at| Some(*at + APART));
    let plans = plans.into_iter().zip(times);
    let scheduled = plans.map(|(plan, at)| {
        let (opening, message) = accepted(&plan, &seats[plan.person], at, None)?;
        Ok(ScheduledMessage { opening, message })
    });
    scheduled.collect()
}

fn accepted(
    plan: &Plan,
    seat: &Seat,
    at: DateTime<Utc>,
    thread: Option<&Written>,
) -> Result<(Opening, Message), SeedError> {
    let id = LogId::at(at);
    let from = EmailAddress::parse(&seat.email).map_err(|_| SeedError::Text(seat.email.clone()))?;
    let composed = compose(fields(plan, thread)?, &from, at, &id.to_string());
    let Composed {
        message,
        message_id,
        recipients,
        smtputf8,
        cc,
        bcc,
        subject,
        has_attachments,
    } = composed;
    let size = i64::try_from(message.size()).unwrap_or(i64::MAX);
    let opening = Opening {
        id,
        app: seat.app,
        credential: seat.credential,
        from_address: seat.email.clone(),
        to_address: plan.to.clone(),
        cc_addresses: cc,
        bcc_addresses: bcc,
        subject,
        plugin: plan.person().plugin,
        message_id: Some(message_id),
        size_bytes: size,
        has_attachments,
        metadata: plan.metadata.clone(),
        door: plan.door,
        recipients,
        smtputf8,
        opened_at: at,
        key: None,
        version: None,
    };
    Ok((opening, message))
}

fn fields(plan: &Plan, thread: Option<&Written>) -> Result<Fields, SeedError> {
    let address =
        |text: &String| EmailAddress::parse(text).map_err(|_| SeedError::Text(text.clone()));
    let escaped = plan.text.replace('&', "&amp;").replace('<', "&lt;");
    let html = LETTER
        .replace("{text}", &escaped)
        .replace("{sender}", plan.person().name);
    let mut headers = Vec::new();
    if let Some(earlier) = thread {
        let reply = earlier.id_of_reply();
        let first = earlier.past.opening.message_id.clone().unwrap_or_default();
        for (name, value) in [
            ("In-Reply-To", reply.clone()),
            ("References", format!("{first} {reply}")),
        ] {
            headers.push(CustomHeader::new(name, &value).map_err(|_| SeedError::Text(value))?);
        }
    }
    let file = plan.file.clone().map(|name| {
        Ok::<_, SeedError>(Attachment {
            filename: Filename::new(name.clone()).map_err(|_| SeedError::Text(name))?,
            media_type: MediaType::parse(PDF).map_err(|_| SeedError::Text(PDF.to_owned()))?,
            content: pdf(&plan.subject),
            content_id: None,
        })
    });
    Ok(Fields {
        from_name: Some(plan.person().name.to_owned()),
        to: address(&plan.to)?,
        cc: plan.cc.iter().map(address).collect::<Result<_, _>>()?,
        bcc: plan.bcc.iter().map(address).collect::<Result<_, _>>()?,
        reply_to: None,
        subject: plan.subject.clone(),
        text: Some(plan.text.clone()),
        html: Some(html),
        headers,
        attachments: file.transpose()?.into_iter().collect(),
    })
}

/// A page with nothing on it, and padding as large as an invoice.
fn pdf(subject: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
        3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>endobj\n"
        .to_vec();
    let lines = 200 + subject.len() % 7 * 120;
    file.extend(b"% Mailgate's sandbox has made this file.\n".repeat(lines));
    file.extend(b"trailer<</Root 1 0 R>>\n%%EOF\n");
    file
}

/// The attempts of a message: each one that failed for now is followed by the schedule's wait.
fn attempts(
    plan: &Plan,
    at: DateTime<Utc>,
    now: DateTime<Utc>,
    random: &mut Random,
) -> Vec<LoggedAttempt> {
    let plugin = plan.person().plugin;
    let (failures, last) = match plan.fate {
        Fate::Sent(failures) => (failures, Some((LogStatus::Sent, None))),
        Fate::Failed(failures) => {
            let error = failures::permanent(plugin, random);
            (failures, Some((LogStatus::FailedPerm, Some(error))))
        }
        Fate::Unconfirmed => {
            let error = failures::UNCONFIRMED;
            (0, Some((LogStatus::FailedPerm, Some(error))))
        }
        Fate::Cancelled => (0, None),
        Fate::Waiting => (MOST_ATTEMPTS, None),
    };
    let error = failures::temporary(plugin, random);
    let failed = std::iter::repeat_n((LogStatus::FailedTemp, Some(error)), failures);
    let mut began = at + TimeDelta::milliseconds(random.between(4, 40));
    let mut attempts = Vec::new();
    for (number, (status, error)) in (1..).zip(failed.chain(last)) {
        // What would be later than now hasn't happened.
        if number > 1 && began > now - TimeDelta::seconds(30) && last.is_none() {
            break;
        }
        let slow = i64::from(status == LogStatus::FailedTemp) * random.between(0, 9_000);
        attempts.push(LoggedAttempt {
            number,
            at: began,
            duration_ms: Some(random.between(180, 1_900) + slow),
            status,
            error_message: error.map(str::to_owned),
        });
        let waits = usize::try_from(number - 1)
            .ok()
            .and_then(|place| RETRY.get(place));
        let wait = waits.copied().unwrap_or_default();
        began += TimeDelta::seconds(wait + random.between(0, wait / 10 + 1));
    }
    attempts
}

fn end(
    plan: &Plan,
    attempts: &[LoggedAttempt],
    message: &Message,
    now: DateTime<Utc>,
    number: usize,
) -> PastEnd {
    let last = attempts.last();
    match plan.fate {
        Fate::Cancelled => PastEnd::Ended(LogStatus::FailedPerm, Some(CANCELLED.to_owned())),
        Fate::Sent(_) | Fate::Failed(_) | Fate::Unconfirmed => {
            let status = last.map_or(LogStatus::Sent, |last| last.status);
            PastEnd::Ended(status, last.and_then(|last| last.error_message.clone()))
        }
        Fate::Waiting => {
            let wait = RETRY[attempts.len().saturating_sub(1).min(RETRY.len() - 1)];
            let due = last.map_or(now, |last| last.at) + TimeDelta::seconds(wait);
            let minutes = i64::try_from(number % 50).unwrap_or_default();
            PastEnd::Waiting {
                message: message.clone(),
                next_attempt_at: due.max(now + AHEAD + TimeDelta::minutes(minutes)),
            }
        }
    }
}

/// Whether the sandbox has the message.
pub(super) fn has_arrived(written: &Written) -> bool {
    matches!(written.plan.fate, Fate::Sent(_)) && written.plan.response != Response::Bounce
}

/// A message's bytes in one piece.
pub(super) fn whole(message: &Message) -> Bytes {
    let mut bytes = Vec::with_capacity(message.size());
    for chunk in message.chunks() {
        bytes.extend_from_slice(chunk);
    }
    bytes.into()
}
