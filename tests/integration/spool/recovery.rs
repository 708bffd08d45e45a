//! Messages whose gateway died while it worked on them.

use chrono::TimeDelta;
use mailgate_types::clock::Clock;
use mailgate_types::ids::LogId;

use super::{advance_to, chunks, deferred, emptied, logged_once};
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::stand_in::{ADDRESS, StandIn};

const RAW: &[u8] = b"From: carol@stand-in.example\r\nTo: bob@example.com\r\n\r\nHello\r\n";

/// A message in the hands of a process that is dead.
async fn leave_behind(gateway: &Gateway, stored: bool) -> LogId {
    let opened = gateway.clock.now() - TimeDelta::minutes(30);
    let id = LogId::at(opened);
    let mut database = gateway.database().await;
    sqlx::query(
        "INSERT INTO spool
             (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
              subject, plugin, message_id, size_bytes, has_attachments, recipients, smtputf8,
              opened_at, state, attempts, lease_until)
         SELECT $1, app_id, id, $2, 'bob@example.com', '{}', '{}', 'Hello', plugin, NULL, $3,
                false, '{bob@example.com}', false, $4, 'open', $5, $4
         FROM mailboxes WHERE plugin = 'plugin_b'",
    )
    .bind(id.0)
    .bind(ADDRESS)
    .bind(i64::try_from(RAW.len()).unwrap())
    .bind(opened)
    .bind(i32::from(stored))
    .execute(&mut database)
    .await
    .unwrap();
    if stored {
        sqlx::query("INSERT INTO spool_chunks (spool_id, position, content) VALUES ($1, 0, $2)")
            .bind(id.0)
            .bind(RAW)
            .execute(&mut database)
            .await
            .unwrap();
    }
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_left_behind_fails_and_says_that_it_may_have_arrived() {
    for stored in [false, true] {
        let (stand_in, gateway) = StandIn::with_gateway().await;
        let id = leave_behind(&gateway, stored).await;
        // What a gateway does first, and then every half minute.
        let replica = gateway.replica().plugins(stand_in.plugins()).start().await;
        emptied(&gateway).await;
        let (status, error) = logged_once(&gateway).await;
        assert_eq!(status, "failed_perm");
        assert!(error.contains("may have arrived"), "{error}");
        assert!(error.contains("the gateway stopped"), "{error}");
        let logged: uuid::Uuid = sqlx::query_scalar("SELECT id FROM email_logs")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(logged, id.0);
        assert!(chunks(&gateway).await.is_empty());
        assert_eq!(stand_in.submission.connections(), 0);
        replica.stop().await;
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_left_behind_is_sent_again_where_the_setting_says_so() {
    let retry =
        |builder: crate::support::gateway::Builder| builder.set("SENDING__UNVERIFIABLE", "retry");
    let (stand_in, gateway) = StandIn::with(retry(Gateway::builder())).await;
    leave_behind(&gateway, true).await;
    let replica = retry(gateway.replica().plugins(stand_in.plugins()));
    let replica = replica.start().await;
    gateway
        .eventually("the recovery", async |gateway| {
            deferred(gateway).await.is_some()
        })
        .await;
    let waiting = deferred(&gateway).await.unwrap();
    assert_eq!(waiting.attempts, 2);
    assert_eq!(logged_once(&gateway).await.0, "failed_temp");
    advance_to(&gateway, waiting.next_attempt_at);
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].content, RAW);
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_holder_lives_is_left_alone() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let id = leave_behind(&gateway, true).await;
    sqlx::query("UPDATE spool SET lease_until = $2 WHERE id = $1")
        .bind(id.0)
        .bind(gateway.clock.now() + TimeDelta::minutes(5))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let abandoned = leave_behind(&gateway, false).await;
    let replica = gateway.replica().plugins(stand_in.plugins()).start().await;
    gateway
        .eventually("the other one's recovery", async |gateway| {
            gateway.logged().await.len() == 1
        })
        .await;
    let left: Vec<uuid::Uuid> = sqlx::query_scalar("SELECT id FROM spool")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(left, [id.0]);
    assert_ne!(id, abandoned);
    assert_eq!(chunks(&gateway).await, [RAW]);
    replica.stop().await;
    gateway.stop().await;
}

/// Many times what is looked for at a time, and as the queue has places.
const MANY: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn looks_that_take_long_leave_the_queue_its_places() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    gateway.stop_daemon().await;
    for _ in 0..MANY {
        leave_behind(&gateway, false).await;
    }
    sqlx::query("UPDATE spool SET message_id = '<sought@stand-in.example>'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    // Nobody accepts: each look waits as long as it may.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plugins = stand_in.plugins();
    let plugin = plugins["plugin_b"].as_table_mut().unwrap();
    plugin.insert("imap_host".to_owned(), "localhost".into());
    let port = i64::from(silent.local_addr().unwrap().port());
    plugin.insert("imap_port".to_owned(), port.into());
    let replica = gateway.replica().plugins(plugins).start().await;
    let in_hand = async || -> i64 {
        sqlx::query_scalar(
            "SELECT count(*) FROM spool WHERE state = 'open' AND lease_until IS NULL",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
    };
    patience::until("looks", async || in_hand().await > 100).await;
    sqlx::query("UPDATE spool SET next_attempt_at = now() WHERE state = 'deferred'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    patience::until("its last attempt", async || {
        deferred(&gateway).await.is_none()
    })
    .await;
    let left = in_hand().await;
    assert!(left > 64, "{left}");
    replica.stop().await;
    gateway.stop().await;
}
