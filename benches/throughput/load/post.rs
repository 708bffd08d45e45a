//! The gateway's own signed POST with no gateway around it: no database, nothing recorded.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use mailgate_domain::webhooks::Webhooks;
use mailgate_settings::WebhookSettings;
use mailgate_types::clock::SystemClock;
use mailgate_types::event::Event;
use mailgate_types::ids::{AppId, WebhookMessageId, uuid_at};
use mailgate_types::seal::SealKeys;
use secrecy::SecretString;
use sqlx::postgres::PgPoolOptions;

use super::emit::event;
use super::{Client, Outcome};

pub(super) struct PostClient {
    webhooks: Webhooks,
    secret: SecretString,
    event: Event,
    urls: Vec<String>,
    next: usize,
}

impl Client for PostClient {
    async fn send(&mut self) -> Outcome<()> {
        let now = Utc::now();
        let body = Bytes::from(self.event.body(AppId(uuid_at(now)), now));
        let id = WebhookMessageId::at(now);
        let url = &self.urls[self.next % self.urls.len()];
        self.next += 1;
        let attempt = self.webhooks.attempt(url, &self.secret, id, body).await;
        if attempt.success {
            Ok(())
        } else {
            Err(format!("the receiver did not take a webhook: {attempt:?}").into())
        }
    }
}

pub(super) fn clients(urls: &[String], clients: usize) -> Outcome<Vec<PostClient>> {
    // Nobody asks it for anything.
    let pool = PgPoolOptions::new().connect_lazy("postgres://nobody@127.0.0.1:1/none")?;
    let keys = SealKeys::parse(["bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="])?;
    let settings = WebhookSettings {
        allow_private: true,
        concurrency: clients,
        endpoint_concurrency: clients,
        exchange: Duration::from_secs(15),
        retry: Vec::new(),
    };
    let webhooks = Webhooks::new(pool, Arc::new(keys), Arc::new(SystemClock), &settings)?;
    Ok((0..clients)
        .map(|number| PostClient {
            webhooks: webhooks.clone(),
            secret: SecretString::from("whs_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1"),
            event: event(),
            urls: urls.to_vec(),
            // Not all of them at the same endpoint at the same time.
            next: number * urls.len() / clients,
        })
        .collect())
}
