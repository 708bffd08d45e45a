//! The webhook endpoints: one is well, one has failed for some hours, and one fails now.

use chrono::{DateTime, TimeDelta, Utc};

use super::SeedError;
use super::apps::{Apps, OFFICE, subscriber};
use super::people::Company;
use super::period::Period;
use super::random::Random;
use super::stopped_clock::StoppedClock;
use crate::daemon::Daemon;
use crate::dev::demo::Demo;
use mailgate_domain::history::{PastAttempt, PastDelivery, PastEvent};
use mailgate_domain::webhooks::{NewConfiguration, WebhookConfigChange};
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, EndpointId};

/// Waits between attempts, as in `webhooks.retry_seconds`.
const RETRY: [i64; 7] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];

/// How far ahead the next attempts are at the least.
const AHEAD: TimeDelta = TimeDelta::minutes(35);

/// How an endpoint does.
#[derive(Debug, Clone, Copy)]
enum Health {
    /// Few attempts fail.
    Well,
    /// All failed between these times.
    Down(DateTime<Utc>, DateTime<Utc>),
    /// All have failed since then.
    Failing(DateTime<Utc>),
}

/// An endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    id: EndpointId,
    app: AppId,
    events: Vec<EventName>,
    health: Health,
}

/// Creates the endpoints.
pub(super) async fn create(
    daemon: &Daemon,
    demo: &Demo,
    apps: &Apps,
    period: &Period,
) -> Result<Vec<Endpoint>, SeedError> {
    use EventName::{
        EmailBounced, EmailFailedPerm, EmailFailedTemp, EmailReply, EmailSent, UserDisconnected,
    };
    let author = subscriber(demo.app.subscriber, OFFICE);
    let by = |hours| {
        daemon
            .webhooks
            .by_clock(StoppedClock::at(period.ago(hours, 25)))
    };
    let wanted = [
        (
            Company::Northwind,
            "https://hooks.northwind.example/mailgate",
            vec![
                EmailSent,
                EmailFailedTemp,
                EmailFailedPerm,
                EmailBounced,
                EmailReply,
            ],
            Health::Well,
        ),
        (
            Company::Northwind,
            "https://crm.northwind.example/api/v1/mail-events",
            vec![EmailSent, EmailBounced, EmailReply],
            Health::Down(period.ago(79, 0), period.ago(72, 30)),
        ),
        (
            Company::Talentwerk,
            "https://app.talentwerk.example/webhooks/mailgate",
            vec![
                EmailSent,
                EmailFailedPerm,
                EmailBounced,
                EmailReply,
                UserDisconnected,
            ],
            Health::Failing(period.ago(30, 0)),
        ),
    ];
    let mut endpoints = Vec::new();
    for (hours, (company, url, events, health)) in [215, 203, 196].into_iter().zip(wanted) {
        let app = apps.of(company);
        let new = NewConfiguration {
            // The middle one was corrected later.
            url: url.replace("/v1/", "/"),
            events: events.clone(),
            secret: None,
            is_active: true,
        };
        let (config, _) = by(hours).create_configuration(app, new, author).await?;
        endpoints.push(Endpoint {
            id: config.id.into(),
            app,
            events,
            health,
        });
        if url.contains("/v1/") {
            let change = WebhookConfigChange {
                url: Some(url.to_owned()),
                events: None,
                is_active: None,
            };
            by(188)
                .change_configuration(app, config.id, &change, author)
                .await?;
            by(71).rotate_secret(app, config.id, None, author).await?;
        }
    }
    Ok(endpoints)
}

/// Adds the deliveries of these events to the endpoints that listen; without any, the event is dropped.
pub(super) fn deliver(
    endpoints: &[Endpoint],
    events: Vec<PastEvent>,
    period: &Period,
) -> Vec<PastEvent> {
    let week_ago = period.ago(7 * 24, 0);
    let events = events
        .into_iter()
        .enumerate()
        .filter_map(|(number, mut event)| {
            if event.at < week_ago || event.at >= period.now {
                return None;
            }
            let (app, name) = (event.emission.app, event.emission.event.name());
            let listening = endpoints
                .iter()
                .enumerate()
                .filter(|(_, endpoint)| endpoint.app == app && endpoint.events.contains(&name));
            event.deliveries = listening
                .map(|(place, endpoint)| {
                    let mut random = Random::of(40, number * endpoints.len() + place);
                    delivery(endpoint, event.at, period.now, &mut random)
                })
                .collect();
            (!event.deliveries.is_empty()).then_some(event)
        });
    events.collect()
}

/// The attempts, one after each wait of the schedule, until one succeeds.
fn delivery(
    endpoint: &Endpoint,
    happened_at: DateTime<Utc>,
    now: DateTime<Utc>,
    random: &mut Random,
) -> PastDelivery {
    let mut at = happened_at + TimeDelta::milliseconds(random.between(3, 60));
    let mut attempts = Vec::new();
    let mut next_at = None;
    let stumbles = random.percent(2);
    for wait in RETRY.into_iter().map(Some).chain([None]) {
        let fails = match endpoint.health {
            Health::Well => stumbles && attempts.is_empty(),
            Health::Down(from, to) => at >= from && at < to,
            Health::Failing(since) => at >= since,
        };
        attempts.push(attempt(at, fails, random));
        let Some(wait) = wait.filter(|_| fails) else {
            break;
        };
        let due = at + TimeDelta::seconds(wait + random.between(0, wait / 10 + 1));
        if due + TimeDelta::seconds(30) > now {
            let apart = TimeDelta::seconds(random.between(0, 5_400));
            next_at = Some(due.max(now + AHEAD + apart));
            break;
        }
        at = due;
    }
    PastDelivery {
        endpoint: endpoint.id,
        attempts,
        next_at,
    }
}

fn attempt(at: DateTime<Utc>, fails: bool, random: &mut Random) -> PastAttempt {
    let (http_status, body, milliseconds) = match (fails, random.below(3)) {
        (false, 0) => (Some(204), "", (35, 240)),
        (false, _) => (Some(200), "{\"received\":true}", (40, 380)),
        (true, 0) => (
            Some(500),
            "{\"error\":\"internal server error\"}",
            (80, 900),
        ),
        (true, 1) => (
            Some(503),
            "upstream connect error or disconnect/reset before headers",
            (20, 90),
        ),
        (true, _) => (None, "", (15_000, 15_020)),
    };
    let error_message = match http_status {
        Some(status) if fails => Some(format!("the receiver answered with HTTP status {status}")),
        Some(_) => None,
        None => Some("no answer within 15 seconds".to_owned()),
    };
    PastAttempt {
        at,
        duration_ms: random.between(milliseconds.0, milliseconds.1),
        http_status,
        response_body: body.to_owned(),
        error_message,
    }
}
