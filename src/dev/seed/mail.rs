//! The messages as the gateway would have accepted, tried and logged them.

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};

use super::SeedError;
use super::attempts::{attempts, end};
use super::fate::{Fate, Response};
use super::letter::{Thread, fields};
use super::mailboxes::Seat;
use super::period::Period;
use super::plan::Plan;
use super::random::Random;
use mailgate_domain::compose::{Composed, compose};
use mailgate_domain::history::{Opening, PastMessage, ScheduledMessage};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;

/// How far the scheduled messages are apart.
const APART: TimeDelta = TimeDelta::hours(13);

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

    /// What a message has that answers the reply to it.
    fn thread(&self) -> Thread {
        Thread {
            reply: self.id_of_reply(),
            first: self.past.opening.message_id.clone().unwrap_or_default(),
        }
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
    let composed = compose(
        fields(plan, thread.map(Written::thread))?,
        &from,
        at,
        &id.to_string(),
    );
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
