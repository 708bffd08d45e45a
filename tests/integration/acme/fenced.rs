//! A process that slept through its lease writes nothing over its successor.

use chrono::{TimeDelta, Utc};
use mailgate_storage::acme_challenges;
use mailgate_storage::certificates::{NewCertificate, claim, ensure, fail, store};
use mailgate_types::ids::CertificateId;

use super::MX;
use crate::support::database;

const DIRECTORY: &str = "https://ca.example/dir";

fn certificate(mark: u8) -> NewCertificate {
    let now = Utc::now();
    NewCertificate {
        pair_sealed: vec![mark],
        not_before: now - TimeDelta::days(1),
        not_after: now + TimeDelta::days(89),
        renew_at: now + TimeDelta::days(59),
    }
}

#[tokio::test]
async fn only_the_latest_attempt_writes() {
    let url = database::create().await;
    let mut connection = database::connect(&url).await;
    let names = [MX.to_owned()];
    ensure(
        &mut connection,
        CertificateId::at(Utc::now()),
        MX,
        DIRECTORY,
    )
    .await
    .unwrap();
    let sleeper = claim(&mut connection, &names, DIRECTORY, 600.0)
        .await
        .unwrap()
        .unwrap();
    assert!(
        claim(&mut connection, &names, DIRECTORY, 600.0)
            .await
            .unwrap()
            .is_none()
    );
    let lapse = "UPDATE certificates SET lease_until = now() - interval '1 second'";
    sqlx::query(lapse).execute(&mut connection).await.unwrap();
    let published =
        acme_challenges::publish(&mut connection, &sleeper, "late", "late.x", 60.0).await;
    assert!(!published.unwrap(), "its lease has ended");
    let successor = claim(&mut connection, &names, DIRECTORY, 600.0)
        .await
        .unwrap()
        .unwrap();
    let published = acme_challenges::publish(&mut connection, &sleeper, "old", "old.x", 60.0).await;
    assert!(!published.unwrap());
    let published =
        acme_challenges::publish(&mut connection, &successor, "new", "new.x", 60.0).await;
    assert!(published.unwrap());
    assert_eq!(
        store(&mut connection, &sleeper, &certificate(1))
            .await
            .unwrap(),
        None
    );
    assert!(!fail(&mut connection, &sleeper, "late", 1.0).await.unwrap());
    assert!(
        store(&mut connection, &successor, &certificate(2))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        store(&mut connection, &sleeper, &certificate(3))
            .await
            .unwrap(),
        None
    );
    assert!(!fail(&mut connection, &sleeper, "late", 1.0).await.unwrap());
    let (sealed, failures, revision): (Vec<u8>, i32, i64) =
        sqlx::query_as("SELECT pair_sealed, failures, revision FROM certificates")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!((sealed, failures, revision), (vec![2], 0, 1));
}

#[tokio::test]
async fn a_clock_that_was_set_back_holds_up_nobody() {
    let url = database::create().await;
    let mut connection = database::connect(&url).await;
    let names = [MX.to_owned()];
    ensure(
        &mut connection,
        CertificateId::at(Utc::now()),
        MX,
        DIRECTORY,
    )
    .await
    .unwrap();
    claim(&mut connection, &names, DIRECTORY, 600.0)
        .await
        .unwrap()
        .unwrap();
    let far = "UPDATE certificates SET lease_until = now() + interval '10 days'";
    sqlx::query(far).execute(&mut connection).await.unwrap();
    assert!(
        claim(&mut connection, &names, DIRECTORY, 600.0)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_short_life_is_not_ordered_again_immediately() {
    let url = database::create().await;
    let mut connection = database::connect(&url).await;
    let names = [MX.to_owned()];
    ensure(
        &mut connection,
        CertificateId::at(Utc::now()),
        MX,
        DIRECTORY,
    )
    .await
    .unwrap();
    let attempt = claim(&mut connection, &names, DIRECTORY, 600.0)
        .await
        .unwrap()
        .unwrap();
    let mut new = certificate(1);
    new.not_after = new.not_before + TimeDelta::seconds(1);
    new.renew_at = new.not_before;
    let due_at = store(&mut connection, &attempt, &new)
        .await
        .unwrap()
        .unwrap();
    assert!(due_at > Utc::now() + TimeDelta::minutes(4), "{due_at}");
    assert!(
        claim(&mut connection, &names, DIRECTORY, 600.0)
            .await
            .unwrap()
            .is_none()
    );
}

/// Its statement began a moment before the other's lease was given, so the lease lies a moment further ahead for it than
/// any that it gives itself.
#[tokio::test]
async fn who_comes_a_moment_later_takes_nothing_over() {
    let url = database::create().await;
    let mut first = database::connect(&url).await;
    let mut later = database::connect(&url).await;
    let names = [MX.to_owned()];
    let id = CertificateId::at(Utc::now());
    ensure(&mut first, id, MX, DIRECTORY).await.unwrap();
    for statement in ["BEGIN", "SELECT now()"] {
        sqlx::query(statement).execute(&mut later).await.unwrap();
    }
    let claimed = claim(&mut first, &names, DIRECTORY, 600.0).await;
    assert!(claimed.unwrap().is_some());
    let taken_over = claim(&mut later, &names, DIRECTORY, 600.0).await;
    assert!(taken_over.unwrap().is_none());
}
