//! What else is held by a lease: whoever asks with a clock of an hour later finds it held all the same.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_storage::subscribers::billing::renewals;
use mailgate_storage::{billing_jobs, billing_notices, mailboxes, payprov_events};

use crate::support::gateway::Gateway;

/// One notice, one event and one piece of work, all due.
const DUE: [&str; 3] = [
    "INSERT INTO billing_notices (id, subscriber_id, kind, event_id, data, created_at, due_at)
     SELECT gen_random_uuid(), id, 'payment_failed', 'evt_1', '{}', now(), now() FROM subscribers",
    "INSERT INTO payprov_events (id, type, received_at, state, due_at)
     VALUES ('evt_1', 'invoice.paid', now(), 'waiting', now())",
    "INSERT INTO billing_jobs (id, subscriber_id, kind, due_at, created_at)
     SELECT gen_random_uuid(), id, 'quantity', now(), now() FROM subscribers
     ON CONFLICT DO NOTHING",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_of_an_hour_later_ends_no_lease() {
    let gateway = Gateway::start().await;
    gateway.stop_daemon().await;
    let mut database = gateway.database().await;
    for statement in DUE {
        sqlx::query(statement).execute(&mut database).await.unwrap();
    }
    let lease = TimeDelta::minutes(10);
    let mut claimed = Vec::new();
    let now = Utc::now() + TimeDelta::seconds(1);
    for now in [now, now + TimeDelta::hours(1)] {
        claimed.push(claims(&gateway, now, lease).await);
    }
    assert_eq!(claimed, [[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]);
    gateway.stop().await;
}

/// What a process claims whose clock says `now`.
async fn claims(gateway: &Gateway, now: DateTime<Utc>, lease: TimeDelta) -> [usize; 5] {
    let mut database = gateway.database().await;
    let until = now + lease;
    let notices = billing_notices::claim(&mut database, now, until, 10).await;
    let events = payprov_events::claim(&mut database, now, until, 10).await;
    let jobs = billing_jobs::claim(&mut database, now, until, 10).await;
    let subscriber = gateway.subscriber;
    let reactivation = renewals::claim(&mut database, subscriber, now, until).await;
    let mailbox = gateway.mailbox.credential;
    let generation = sqlx::query_scalar("SELECT token_generation FROM mailboxes WHERE id = $1")
        .bind(mailbox.0)
        .fetch_one(&mut database)
        .await
        .unwrap();
    let lease = Duration::from_mins(10);
    let refresh = mailboxes::claim_refresh(&mut database, mailbox, generation, lease, None);
    [
        notices.unwrap().len(),
        events.unwrap().len(),
        jobs.unwrap().len(),
        usize::from(reactivation.unwrap()),
        usize::from(refresh.await.unwrap()),
    ]
}
