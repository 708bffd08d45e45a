//! Whose mailboxes are looked at: one subscriber's many hold up nobody else's.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_storage::mailboxes::{addresses, due};
use mailgate_types::clock::Clock as _;
use mailgate_types::ids::CredentialId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::support::gateway::{Gateway, create_app};

/// Active mailboxes of an app's user, of which one is due each millisecond from then on.
async fn insert(
    connection: &mut PgConnection,
    app: Uuid,
    name: &str,
    number: i64,
    due: DateTime<Utc>,
) {
    sqlx::query(
        "WITH owner AS (
             INSERT INTO end_users (user_key, app_id, user_id, created_at)
             VALUES (gen_random_uuid(), $1, $2, now()) RETURNING user_key
         )
         INSERT INTO mailboxes
             (id, app_id, user_key, plugin, email, email_lookup, status, scopes, connected_at,
              refresh_token_sealed, replies_due_at, addresses_due_at, refresh_due_at)
         SELECT gen_random_uuid(), $1, user_key, 'plugin_a', address, address, 'active', '{}', now(),
                '', due, due, due
         FROM owner, generate_series(1, $3) AS number,
              LATERAL (SELECT $2 || number || '@example.com' AS address,
                              $4 + interval '1 millisecond' * number AS due) AS named",
    )
    .bind(app)
    .bind(name)
    .bind(number)
    .bind(due)
    .execute(connection)
    .await
    .unwrap();
}

/// How many of these are of which app.
async fn owners(connection: &mut PgConnection, claimed: &[CredentialId]) -> BTreeMap<Uuid, i64> {
    let ids: Vec<Uuid> = claimed.iter().map(|id| id.0).collect();
    let owners: Vec<(Uuid, i64)> =
        sqlx::query_as("SELECT app_id, count(*) FROM mailboxes WHERE id = ANY($1) GROUP BY 1")
            .bind(ids)
            .fetch_all(connection)
            .await
            .unwrap();
    owners.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_take_turns_however_many_of_one_are_due() {
    const PLACES: i64 = 8;
    let gateway = Gateway::start().await;
    let (_, busy) = create_app(&gateway.daemon, "Busy").await;
    let (_, early) = create_app(&gateway.daemon, "Early").await;
    let (_, late) = create_app(&gateway.daemon, "Late").await;
    gateway.stop_daemon().await;
    let mut connection = gateway.database().await;
    let now = gateway.clock.now();
    sqlx::query("DELETE FROM mailboxes")
        .execute(&mut connection)
        .await
        .unwrap();
    insert(
        &mut connection,
        early.id.0,
        "early",
        1,
        now - TimeDelta::hours(1),
    )
    .await;
    insert(
        &mut connection,
        busy.id.0,
        "busy",
        2_000,
        now - TimeDelta::minutes(30),
    )
    .await;
    insert(
        &mut connection,
        late.id.0,
        "late",
        1,
        now - TimeDelta::seconds(1),
    )
    .await;
    let mut claimed: [Vec<CredentialId>; 3] = Default::default();
    let until = now + TimeDelta::minutes(1);
    let looks = due::claim_reply_looks(&mut connection, now, until, PLACES).await;
    claimed[0].extend(looks.unwrap().iter().map(|look| look.mailbox.id));
    let looks = addresses::claim_due(&mut connection, now, until, PLACES).await;
    claimed[1].extend(looks.unwrap().iter().map(|look| look.mailbox.id));
    let idle = due::claim_idle_refreshes(&mut connection, now, until, PLACES).await;
    claimed[2].extend(idle.unwrap().iter().map(|mailbox| mailbox.id));
    let fair = BTreeMap::from([(busy.id.0, PLACES - 2), (early.id.0, 1), (late.id.0, 1)]);
    for claimed in claimed {
        assert_eq!(owners(&mut connection, &claimed).await, fair);
    }
    // Alone, it has all places.
    let looks = due::claim_reply_looks(&mut connection, now, until, 500).await;
    assert_eq!(looks.unwrap().len(), 500);
    gateway.stop().await;
}
