//! Orders that bring no certificate: the current one stays in use.

use mailgate_domain::certificates::Attempted;
use mailgate_storage::acme_accounts;
use mailgate_types::seal::SealKeys;
use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;

use super::{Alone, MX, local, of_pebble, shown, started};
use crate::peers::pebble::Pebble;
use crate::support::gateway::{Gateway, SEAL_KEY};
use crate::support::patience;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_certificate_the_gateway_serves_and_says_so() {
    let pebble = Pebble::start().await;
    // Pebble asks at a port where nobody listens.
    let gateway = of_pebble(Gateway::builder(), &pebble, local(0))
        .start()
        .await;
    let certificates = gateway.daemon.certificates.clone().unwrap();
    assert_eq!(certificates.missing(), [MX]);
    assert_eq!(
        shown(gateway.tls_address(), &pebble.root_file, MX).await,
        None
    );
    let ready = gateway
        .http
        .get(format!("{}/readyz", gateway.daemon.base_url));
    let ready = ready.send().await.unwrap();
    assert_eq!(ready.status(), 200);
    let text = ready.text().await.unwrap();
    assert_eq!(text, format!("ready\nno certificate yet for {MX}\n"));
    let (failures, error, seconds) = patience::found("failed attempt", async || {
        let row: (i32, Option<String>, f64) = sqlx::query_as(
            "SELECT failures, last_error, extract(epoch FROM due_at - now())::float8 FROM certificates",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
        (row.0 > 0).then_some(row)
    })
    .await;
    assert_eq!(failures, 1);
    let error = error.unwrap();
    assert!(error.contains("connection"), "{error}");
    assert!((200.0..=360.0).contains(&seconds), "{seconds}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_renewal_leaves_the_certificate_and_waits_longer_each_time() {
    let pebble = Pebble::start().await;
    let (gateway, first) = started(&pebble).await;
    gateway.stop_daemon().await;
    let database = &gateway.database_url;
    let alone = Alone::beside(database, &pebble.directory_url, pebble.ca_file.clone()).await;
    alone.forget_account().await;
    let stop = CancellationToken::new();
    for (failures, least) in [(1, 300.0), (2, 600.0), (3, 1_200.0)] {
        alone.make_due().await;
        let attempted = alone.certificates.renew_due(&stop).await.unwrap();
        assert_eq!(attempted, Attempted::Failed);
        let (failed, error, seconds) = alone.trouble().await;
        assert_eq!(failed, failures);
        assert!(error.is_some());
        assert!((least - 60.0..=least * 1.2).contains(&seconds), "{seconds}");
        // It isn't due before.
        let attempted = alone.certificates.renew_due(&stop).await.unwrap();
        assert_eq!(attempted, Attempted::Nothing);
        assert_eq!(alone.certificates.of_smtp().shown().cert[0], first);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_the_server_has_lost_is_replaced() {
    let (one, other) = (Pebble::start().await, Pebble::start().await);
    let (gateway, first) = started(&one).await;
    gateway.stop_daemon().await;
    // As if the server at this directory had forgotten everything.
    let mut database = gateway.database().await;
    let stored = acme_accounts::find(&mut database, &one.directory_url);
    let stored = stored.await.unwrap().unwrap();
    let keys = SealKeys::parse([SEAL_KEY]).unwrap();
    let context = acme_accounts::context(stored.id);
    let credentials = keys.unseal(&context, &stored.credentials_sealed).unwrap();
    let base = |pebble: &Pebble| pebble.directory_url.trim_end_matches("dir").to_owned();
    let moved = credentials
        .expose_secret()
        .replace(&base(&one), &base(&other));
    sqlx::query("UPDATE acme_accounts SET directory_url = $1, credentials_sealed = $2")
        .bind(&other.directory_url)
        .bind(keys.seal(&context, &moved).unwrap())
        .execute(&mut database)
        .await
        .unwrap();
    sqlx::query("UPDATE certificates SET directory_url = $1")
        .bind(&other.directory_url)
        .execute(&mut database)
        .await
        .unwrap();
    let alone = Alone::beside(
        &gateway.database_url,
        &other.directory_url,
        other.ca_file.clone(),
    );
    let alone = alone.await;
    alone.make_due().await;
    // Nobody answers the challenge, but the account is there.
    let stop = CancellationToken::new();
    let attempted = alone.certificates.renew_due(&stop).await.unwrap();
    assert_eq!(attempted, Attempted::Failed);
    let (_, error, _) = alone.trouble().await;
    let error = error.unwrap();
    assert!(!error.contains("accountDoesNotExist"), "{error}");
    let replaced = acme_accounts::find(&mut database, &other.directory_url);
    let replaced = replaced.await.unwrap().unwrap();
    assert_ne!(replaced.id, stored.id);
    assert_eq!(alone.certificates.of_smtp().shown().cert[0], first);
    gateway.stop().await;
}
