//! What is asked of a message while it is being sent, claimed, deleted or changed by somebody else.

use std::collections::HashSet;

use chrono::TimeDelta;
use serde_json::json;

use super::*;
use crate::command_line::serve::replica;
use crate::fences::held_line::HeldLine;
use crate::support::caller::path;
use crate::support::patience;
use crate::support::stand_in::StandIn;

const HOUR: TimeDelta = TimeDelta::hours(1);

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_under_way_is_neither_cancelled_nor_repeated() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let id = scheduled(&gateway, "slow@example.com", HOUR).await;
    let hold = gateway.sandbox.slow.hold();
    gateway.clock.advance(HOUR);
    patience::until("message at the provider", async || {
        gateway.sandbox.slow.waiting() == 1
    })
    .await;
    assert_eq!(
        cancel(&owner, &id).await.problem(),
        (409, "message_in_progress")
    );
    assert_eq!(
        retry(&owner, &id).await.problem(),
        (409, "message_in_progress")
    );
    // It is still to leave, as far as anybody knows.
    let shown = owner.get(&format!("/logs/{id}")).await.success(200);
    assert_eq!(shown["status"], "scheduled");
    drop(hold);
    emptied(&gateway).await;
    assert_eq!(cancel(&owner, &id).await.problem(), (409, "message_sent"));
    assert_eq!(gateway.arrived().await.len(), 1);
    gateway.stop().await;
}

/// What was answered as cancelled is never sent, and what was not is sent once, though two replicas claim it at that
/// very moment.
#[tokio::test(flavor = "multi_thread")]
async fn cancelling_what_becomes_due_has_one_outcome() {
    const MESSAGES: usize = 40;
    let builder = Gateway::builder().set("LIMITS__REQUESTS_BURST", 10_000);
    let (stand_in, gateway) = StandIn::with(builder).await;
    listen(&gateway).await;
    let other = gateway.replica().plugins(stand_in.plugins());
    let other = other.set("LIMITS__REQUESTS_BURST", 10_000).start().await;
    let owner = Caller::owner(&gateway).await;
    let beside = Caller {
        gateway: &other,
        secret: owner.secret.clone(),
    };
    let mut ids = Vec::new();
    for _ in 0..MESSAGES {
        let message = json!({
            "to": "bob@example.com", "subject": "x", "body": "x", "plugin": "plugin_b",
            "send_at": ahead(&gateway, HOUR),
        });
        let (status, answer) = gateway.send(message).await;
        assert_eq!(status, 202, "{answer}");
        ids.push(text(&answer, "log_id").to_owned());
    }
    gateway.clock.advance(HOUR);
    other.clock.advance(HOUR);
    let asked = ids.iter().enumerate().map(|(number, id)| {
        let callers = [&owner, &beside];
        async move {
            tokio::time::sleep(std::time::Duration::from_millis(20 * number as u64)).await;
            let both = (cancel(callers[0], id), cancel(callers[1], id));
            let (one, other) = futures_util::future::join(both.0, both.1).await;
            let statuses = (one.status, other.status);
            assert!(
                [(200, 200), (409, 409)].contains(&statuses),
                "{} {}",
                one.body,
                other.body
            );
            (one.status == 200).then_some(id.as_str())
        }
    });
    let cancelled = futures_util::future::join_all(asked).await;
    let cancelled: HashSet<&str> = cancelled.into_iter().flatten().collect();
    emptied(&gateway).await;
    let arrived = stand_in.submission.messages();
    assert_eq!(arrived.len(), MESSAGES - cancelled.len());
    for message in &arrived {
        let content = String::from_utf8_lossy(&message.content);
        let is_cancelled = cancelled.iter().any(|id| content.contains(id));
        assert!(!is_cancelled, "{content}");
    }
    let told = events(&gateway).await;
    let of: HashSet<&str> = (told.iter())
        .filter(|(_, _, error)| error.as_deref() == Some("Cancelled"))
        .map(|(_, id, _)| id.as_str())
        .collect();
    assert_eq!(of, cancelled);
    assert_eq!(told.len(), MESSAGES, "one event each");
    assert_eq!(usage(&gateway).await, 0);
    println!("{} of {MESSAGES} were cancelled", cancelled.len());
    other.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trying_and_cancelling_at_the_same_time_has_one_outcome() {
    const MESSAGES: usize = 20;
    let builder = Gateway::builder().set("LIMITS__REQUESTS_BURST", 10_000);
    let gateway = builder.start().await;
    let owner = Caller::owner(&gateway).await;
    let mut ids = Vec::new();
    for _ in 0..MESSAGES {
        ids.push(waiting(&gateway).await);
    }
    run(
        &gateway,
        "UPDATE spool SET recipients = '{bob@example.com}'",
    )
    .await;
    let asked = ids.iter().map(|id| async {
        let (tried, cancelled) =
            futures_util::future::join(retry(&owner, id), cancel(&owner, id)).await;
        let tried = tried.problem().1.to_owned();
        assert!(
            ["", "message_failed", "message_in_progress"].contains(&tried.as_str()),
            "{tried}"
        );
        cancelled.status == 200
    });
    let cancelled = futures_util::future::join_all(asked).await;
    let cancelled = cancelled.into_iter().filter(|it| *it).count();
    emptied(&gateway).await;
    assert_eq!(gateway.arrived().await.len(), MESSAGES - cancelled);
    let logged = gateway.logged().await;
    let of_them = logged
        .iter()
        .filter(|(_, error)| error.as_deref() == Some("Cancelled"));
    assert_eq!(of_them.count(), cancelled);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_while_the_app_is_deleted_ends_either_way() {
    let builder = Gateway::builder().set("LIMITS__REQUESTS_BURST", 10_000);
    let gateway = builder.start().await;
    let owner = Caller::owner(&gateway).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(scheduled(&gateway, "bob@example.com", HOUR).await);
    }
    let cancelling = futures_util::future::join_all(ids.iter().map(|id| cancel(&owner, id)));
    let scheduling = futures_util::future::join_all(
        (0..10).map(|_| schedule(&gateway, "bob@example.com", HOUR)),
    );
    let path = path(&gateway.app);
    let (cancelled, taken, deleted) =
        futures_util::future::join3(cancelling, scheduling, owner.delete(&path)).await;
    deleted.success(200);
    for answer in cancelled {
        assert!([200, 404].contains(&answer.status), "{}", answer.body);
    }
    for (status, answer) in taken {
        assert!([202, 401].contains(&status), "{answer}");
    }
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

/// A process has claimed the message and sleeps: nobody may say that it is cancelled, until another one has ended the
/// process.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_stopped_process_has_claimed_is_not_cancelled_before_it_is_ended() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let id = scheduled(&gateway, "bob@example.com", HOUR).await;
    // Only the process sees that it is due.
    run(
        &gateway,
        "UPDATE spool SET send_at = now() - interval '1 hour', opened_at = now() - interval '1 hour',
                          next_attempt_at = now()",
    )
    .await;
    gateway.clock.advance(-HOUR);
    let line = HeldLine::start(gateway.sandbox.smtp_address).await;
    let mut child = replica(&gateway)
        .set("PLUGINS__PLUGIN_A__SMTP_PORT", line.port())
        .start();
    child.ready().await;
    line.waited_at().await;
    child.signal("STOP").await;
    assert_eq!(
        cancel(&owner, &id).await.problem(),
        (409, "message_in_progress")
    );
    // The gateway takes it over, and can't send it now.
    run(
        &gateway,
        "UPDATE spool SET recipients = '{tempfail@example.com}'",
    )
    .await;
    gateway
        .eventually("it waits again", async |gateway| {
            number(
                gateway,
                "SELECT count(*) FROM spool WHERE state = 'deferred' AND attempts = 1",
            )
            .await
                == 1
        })
        .await;
    cancel(&owner, &id).await.success(200);
    line.open();
    child.signal("CONT").await;
    let status = child.end(crate::command_line::process::END).await;
    assert_eq!(status.code(), Some(1));
    assert_eq!(gateway.spooled().await, 0);
    assert!(gateway.arrived().await.is_empty());
    let logged = gateway.logged().await;
    assert_eq!(
        logged,
        [("failed_perm".to_owned(), Some("Cancelled".to_owned()))]
    );
    gateway.stop().await;
}
