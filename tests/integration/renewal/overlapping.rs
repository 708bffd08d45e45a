//! Requests that overlap, at several gateways: what a thief does again and again holds up no renewal.

use mailgate_domain::accounts::{Renewal, audit};
use mailgate_types::audit::{Actor, Author, Credential, Shown};
use mailgate_types::clock::Clock as _;
use serde_json::json;

use crate::support::caller::{Caller, text};
use crate::support::gateway::{Gateway, OPERATOR};
use crate::support::lock_waits::{until_waiting, waiting};
use crate::support::patience;

fn by(gateway: &Gateway, credential: Credential) -> Author {
    Author {
        actor: Actor::Subscriber,
        address: None,
        shown: Some(Shown {
            subscriber: gateway.subscriber,
            credential,
        }),
    }
}

/// Two changes by `author` overlap, while `ending` waits for the first: it is done when the second begins.
async fn comes_between<T: Send + 'static>(
    gateway: &Gateway,
    author: Author,
    ending: impl Future<Output = T> + Send + 'static,
) -> T {
    let other = gateway.replica().start().await;
    let now = gateway.clock.now();
    let first = audit::begin(&gateway.daemon.pool, author, now).await;
    let first = first.unwrap();
    let ending = tokio::spawn(ending);
    let shared = "pg_advisory_xact_lock";
    until_waiting(gateway, shared, 1).await;
    let pool = other.daemon.pool.clone();
    let second = tokio::spawn(async move { audit::begin(&pool, author, now).await });
    patience::until("a second", async || {
        second.is_finished() || waiting(gateway, shared).await >= 2
    })
    .await;
    assert!(!second.is_finished(), "it has overtaken what waits");
    first.rollback().await.unwrap();
    let ended = ending.await.unwrap();
    assert!(second.await.unwrap().is_err(), "its credential has ended");
    other.stop().await;
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_comes_before_what_begins_after_it() {
    let gateway = Gateway::start().await;
    let accounts = gateway.daemon.accounts.clone();
    let subscriber = gateway.subscriber;
    let thief = by(&gateway, Credential::ApiSecret { since: None });
    let renewal = async move {
        let renewed = accounts.renew_api_secret(subscriber, Renewal::default(), OPERATOR);
        renewed.await.map(|_| ())
    };
    Box::pin(comes_between(&gateway, thief, renewal))
        .await
        .unwrap();
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_additional_secret_is_deleted_before_what_begins_after_that() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let new = json!({ "name": "Leaked", "scopes": ["webhooks:write"] });
    let secret = owner.post("/me/api-secrets", &new).await.success(201);
    let id = text(&secret, "id").parse().unwrap();
    let accounts = gateway.daemon.accounts.clone();
    let subscriber = gateway.subscriber;
    let thief = by(&gateway, Credential::AdditionalSecret(id));
    let deletion = async move { accounts.delete_api_secret(subscriber, id, OPERATOR).await };
    let deleted = Box::pin(comes_between(&gateway, thief, deletion)).await;
    assert!(deleted.unwrap());
    gateway.stop().await;
}
