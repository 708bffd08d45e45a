//! Orders and renewals that succeed.

use std::sync::Arc;

use chrono::TimeDelta;
use mailgate_domain::certificates::Attempted;
use mailgate_types::clock::MovedClock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Alone, MX, WEB, local, of_pebble, shown, shows_another, started};
use crate::command_line::process::Invocation;
use crate::peers::pebble::Pebble;
use crate::support::gateway::{Gateway, SEAL_KEY};
use crate::support::patience;
use crate::support::smtp_client::SmtpClient;

async fn certificates(gateway: &Gateway, arguments: &[&str]) -> Value {
    let all = ["certificates"].iter().chain(arguments);
    let finished = Invocation::new(all)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish()
        .await;
    finished.succeeds();
    serde_json::from_str(&finished.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_show_the_same_certificate_and_its_renewal_without_dropping_a_session() {
    let pebble = Pebble::start().await;
    let (gateway, first) = started(&pebble).await;
    let replica = of_pebble(gateway.replica(), &pebble, local(0))
        .start()
        .await;
    let root = &pebble.root_file;
    // It is there from its first moment.
    assert_eq!(
        shown(replica.tls_address(), root, MX).await,
        Some(first.clone())
    );
    assert_eq!(shown(replica.tls_address(), root, WEB).await, None);

    let listed = certificates(&gateway, &["list", "--json"]).await;
    let certificate = &listed["certificates"][0];
    assert_eq!(
        listed["certificates"].as_array().unwrap().len(),
        1,
        "{listed}"
    );
    assert_eq!(certificate["name"], MX);
    assert_eq!(certificate["status"], "valid");
    assert_eq!(certificate["failures"], 0);
    assert_eq!(certificate["last_error"], Value::Null);
    assert!(!listed.to_string().contains("PRIVATE"), "{listed}");

    let mut open = SmtpClient::connect(replica.starttls_address()).await;
    open.reply().await;
    open.command("EHLO client.example").await;
    let due = certificates(&gateway, &["renew", MX, "--json"]).await;
    assert_eq!(due["due"][0], MX);
    let second = shows_another(gateway.tls_address(), root, Some(&first)).await;
    let there = shows_another(replica.tls_address(), root, Some(&first)).await;
    assert_eq!(second, there);
    assert!(open.command("NOOP").await.starts_with("250"));
    let revision: i64 = sqlx::query_scalar("SELECT revision FROM certificates")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(revision, 2, "one of them orders");
    let accounts: i64 = sqlx::query_scalar("SELECT count(*) FROM acme_accounts")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(accounts, 1);

    let unknown = Invocation::new(["certificates", "renew", "other.example"])
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish()
        .await;
    unknown.fails(
        1,
        &["there is no certificate from an ACME server for other.example"],
    );
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_replica_answers_the_challenge_and_one_at_a_time_orders() {
    let pebble = Pebble::start().await;
    let (gateway, first) = started(&pebble).await;
    let other = || {
        Alone::beside(
            &gateway.database_url,
            &pebble.directory_url,
            pebble.ca_file.clone(),
        )
    };
    // Neither has a listener; the gateway's loop may be faster than both.
    let (one, another) = (other().await, other().await);
    let stop = CancellationToken::new();
    patience::until("order by a replica without a listener", async || {
        one.make_due().await;
        let (one, another) = tokio::join!(
            one.certificates.renew_due(&stop),
            another.certificates.renew_due(&stop)
        );
        let attempted = [one.unwrap(), another.unwrap()];
        let issued = attempted
            .iter()
            .filter(|it| **it == Attempted::Issued)
            .count();
        let nothing = attempted
            .iter()
            .filter(|it| **it == Attempted::Nothing)
            .count();
        assert_eq!(issued + nothing, 2, "{attempted:?}");
        assert!(issued <= 1, "both have ordered");
        issued == 1
    })
    .await;
    let shown = shows_another(gateway.tls_address(), &pebble.root_file, Some(&first)).await;
    one.certificates.refresh().await.unwrap();
    another.certificates.refresh().await.unwrap();
    for alone in [&one, &another] {
        let pair = alone.certificates.of_smtp().shown();
        assert_eq!(pair.cert[0], shown);
    }
    // Whatever a replica's own clock says, the database's decides what is due.
    let clock = Arc::new(MovedClock::default());
    clock.advance(TimeDelta::days(4 * 365));
    let (directory_url, ca_file) = (&pebble.directory_url, pebble.ca_file.clone());
    let ahead = Alone::with_clock(&gateway.database_url, directory_url, ca_file, clock).await;
    let attempted = ahead.certificates.renew_due(&stop).await.unwrap();
    assert_eq!(attempted, Attempted::Nothing);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM acme_challenges")
        .fetch_one(&one.pool)
        .await
        .unwrap();
    assert_eq!(left, 0, "an answered challenge is still there");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_proven_by_tls_and_rest_is_served_by_it() {
    let pebble = Pebble::start().await;
    let gateway = of_pebble(Gateway::builder(), &pebble, local(0))
        .set("ACME__CHALLENGE", "tls-alpn-01")
        .set("HTTP__TLS_LISTEN", local(pebble.tls_port))
        .set(
            "HTTP__BASE_URL",
            format!("https://{WEB}:{}", pebble.tls_port),
        )
        .start()
        .await;
    let root = &pebble.root_file;
    let https = gateway.daemon.https_address.unwrap();
    shows_another(gateway.tls_address(), root, None).await;
    patience::until("certificate of REST", async || {
        shown(https, root, WEB).await.is_some()
    })
    .await;
    let certificates = gateway.daemon.certificates.clone().unwrap();
    assert_eq!(certificates.missing(), Vec::<String>::new());
    let tls = mailgate_providers::tls::client(Some(root)).unwrap();
    for http1_only in [false, true] {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured({
                let mut tls = tls.as_ref().clone();
                if !http1_only {
                    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                }
                tls
            })
            .resolve(WEB, https)
            .no_proxy()
            .build()
            .unwrap();
        let ready = client.get(format!("{}/readyz", gateway.daemon.base_url));
        let ready = ready.send().await.unwrap();
        let version = ready.version();
        assert_eq!(
            version == reqwest::Version::HTTP_2,
            !http1_only,
            "{version:?}"
        );
        assert_eq!(ready.text().await.unwrap(), "ready\n");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lapsed_while_nobody_ran_is_renewed_at_the_start() {
    let pebble = Pebble::start().await;
    let (gateway, first) = started(&pebble).await;
    gateway.stop_daemon().await;
    let mut database = gateway.database().await;
    sqlx::query(
        "UPDATE certificates SET not_before = now() - interval '90 days',
                not_after = now() - interval '1 day', due_at = now() - interval '31 days'",
    )
    .execute(&mut database)
    .await
    .unwrap();
    let listed = certificates(&gateway, &["list", "--json"]).await;
    assert_eq!(listed["certificates"][0]["status"], "expired", "{listed}");
    let replica = of_pebble(gateway.replica(), &pebble, local(pebble.http_port));
    let replica = replica.start().await;
    shows_another(replica.tls_address(), &pebble.root_file, Some(&first)).await;
    let listed = certificates(&gateway, &["list", "--json"]).await;
    assert_eq!(listed["certificates"][0]["status"], "valid", "{listed}");
    replica.stop().await;
    gateway.stop().await;
}
