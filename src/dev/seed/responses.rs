//! What has come back: bounces, delays and replies.

use chrono::{DateTime, TimeDelta, Utc};

use super::failures::{BOUNCES, DELAYS};
use super::fate::Response;
use super::mail::Written;
use super::period::Period;
use super::random::Random;
use mailgate_domain::history::{NewBounce, PastBounce, PastReply};
use mailgate_types::bounce_type::BounceType;

/// Bounces and replies.
#[derive(Debug, Default)]
pub(super) struct Responses {
    pub(super) bounces: Vec<PastBounce>,
    pub(super) replies: Vec<PastReply>,
}

/// What has come back for these messages.
pub(super) fn of(written: &[Written], period: &Period) -> Responses {
    let mut responses = Responses::default();
    for (number, written) in written.iter().enumerate() {
        let mut random = Random::of(30, number);
        let sent = written.ended_at();
        let mut after = |least, most| {
            let later = TimeDelta::seconds(random.between(least, most));
            later_than(sent, later, period.now)
        };
        let opening = &written.past.opening;
        match written.plan.response {
            Response::Nothing => {}
            Response::Bounce => {
                let at = after(8, 900);
                responses
                    .bounces
                    .push(bounce(written, number, BounceType::Permanent, at));
            }
            Response::Delay => {
                let at = after(3_600, 18_000);
                responses
                    .bounces
                    .push(bounce(written, number, BounceType::Temporary, at));
            }
            Response::Reply => responses.replies.push(PastReply {
                credential: opening.credential,
                message_id: written.id_of_reply(),
                log: opening.id,
                from_address: opening.to_address.clone(),
                at: after(400, 70_000),
            }),
        }
    }
    responses
}

/// So much later, but before now.
fn later_than(sent: DateTime<Utc>, later: TimeDelta, now: DateTime<Utc>) -> DateTime<Utc> {
    sent + later.min((now - sent) / 2)
}

fn bounce(
    written: &Written,
    number: usize,
    bounce_type: BounceType,
    at: DateTime<Utc>,
) -> PastBounce {
    let opening = &written.past.opening;
    let (status, diagnostic) = match bounce_type {
        BounceType::Permanent => BOUNCES[number % BOUNCES.len()],
        BounceType::Temporary => DELAYS[number % DELAYS.len()],
    };
    PastBounce {
        app: opening.app,
        credential: opening.credential,
        bounce: NewBounce {
            key: opening.id.0.as_bytes().to_vec(),
            log: opening.id,
            recipient: opening.to_address.clone(),
            bounce_type,
            status: Some(status.to_owned()),
            diagnostic: Some(diagnostic.replace("{to}", &opening.to_address)),
        },
        at,
    }
}
