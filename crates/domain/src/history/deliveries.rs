//! Events, and the attempts to deliver them to webhook endpoints.

use std::time::Instant;

use chrono::{DateTime, Utc};

use super::{History, HistoryError};
use mailgate_storage::database::transaction;
use mailgate_storage::signing_secrets::SealedSecrets;
use mailgate_storage::webhook_messages::{self, NewMessage};
use mailgate_storage::webhook_queue::{self, Attempted, Claimed};
use mailgate_types::event::Emission;
use mailgate_types::ids::{EndpointId, WebhookDeliveryId};

/// An event of the past.
#[derive(Debug)]
pub struct PastEvent {
    /// The event.
    pub emission: Emission,
    /// When it happened, to the millisecond.
    pub at: DateTime<Utc>,
    /// One for each endpoint that listens.
    pub deliveries: Vec<PastDelivery>,
}

/// The attempts to deliver an event to one endpoint.
#[derive(Debug)]
pub struct PastDelivery {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// In order, one at least.
    pub attempts: Vec<PastAttempt>,
    /// When the next attempt is due; `None` if the last one has ended it.
    pub next_at: Option<DateTime<Utc>>,
}

/// An attempt to deliver an event.
#[derive(Debug, Clone)]
pub struct PastAttempt {
    /// When it began, to the millisecond.
    pub at: DateTime<Utc>,
    /// How long it took.
    pub duration_ms: i64,
    /// The response status, if there was a response.
    pub http_status: Option<u16>,
    /// The beginning of the response body.
    pub response_body: String,
    /// Why it failed; `None`: it has succeeded.
    pub error_message: Option<String>,
}

impl History {
    /// Writes events and deliveries, in one transaction. The endpoints must exist, and listen to them.
    pub async fn write_deliveries(&self, events: &[PastEvent]) -> Result<(), HistoryError> {
        let mut transaction = transaction::begin(&self.pool).await?;
        let messages: Vec<NewMessage> = (events.iter())
            .map(|event| NewMessage::of(&event.emission, event.at))
            .collect();
        let emitted: Vec<(&NewMessage, DateTime<Utc>)> = (messages.iter().zip(events))
            .map(|(message, event)| (message, event.at))
            .collect();
        webhook_messages::emit_each(&mut transaction, &emitted).await?;
        let deliveries = || {
            let events = messages.iter().zip(events);
            events.flat_map(|(message, event)| {
                event
                    .deliveries
                    .iter()
                    .map(move |delivery| (message, event.at, delivery))
            })
        };
        let rounds = deliveries()
            .map(|(.., delivery)| delivery.attempts.len())
            .max();
        for round in 0..rounds.unwrap_or_default() {
            let attempted: Vec<Attempted> = deliveries()
                .filter_map(|(message, at, delivery)| attempt(message, at, delivery, round))
                .collect();
            let recorded = webhook_queue::record(&mut transaction, &attempted).await?;
            if usize::try_from(recorded).ok() != Some(attempted.len()) {
                return Err(HistoryError::Nowhere("a delivery"));
            }
        }
        Ok(transaction.commit().await?)
    }
}

/// The attempt of a round, claimed from when the one before put it off to; `None` if there is none.
fn attempt(
    message: &NewMessage,
    happened_at: DateTime<Utc>,
    delivery: &PastDelivery,
    round: usize,
) -> Option<Attempted> {
    let attempt = delivery.attempts.get(round)?.clone();
    let next = delivery.attempts.get(round + 1);
    Some(Attempted {
        claimed: Claimed {
            message: message.id,
            endpoint: delivery.endpoint,
            app: message.app,
            subscriber: None,
            log: message.log,
            event: message.event.as_str().to_owned(),
            // Nothing is sent.
            url: String::new(),
            secrets: SealedSecrets::new(Vec::new(), None, None),
            attempts: i32::try_from(round).ok()?,
            lease: if round == 0 { happened_at } else { attempt.at },
            until: Instant::now(),
        },
        id: WebhookDeliveryId::at(attempt.at),
        began_at: attempt.at,
        duration_ms: attempt.duration_ms,
        http_status: attempt.http_status,
        response_body: attempt.response_body,
        success: attempt.error_message.is_none(),
        error_message: attempt.error_message,
        next_at: next.map(|next| next.at).or(delivery.next_at),
    })
}
