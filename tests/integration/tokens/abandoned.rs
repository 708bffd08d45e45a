//! A refresh whose caller, or whose gateway, goes away.

use mailgate_domain::mailboxes::Wanted;
use mailgate_sandbox::certificates;
use mailgate_types::plugin::Plugin;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::LAPSED;
use crate::command_line::process::Invocation;
use crate::command_line::serve::with_plugins;
use crate::support::stand_in::oauth::Answer as TokenAnswer;
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_loses_no_rotated_token() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let rotated = json!({
        "access_token": "late-access", "refresh_token": "late-refresh", "expires_in": 3_600,
    });
    let release = CancellationToken::new();
    let answer = TokenAnswer::json(200, &rotated).held(&release);
    stand_in.tokens.queue(answer);
    {
        let asked = gateway.eventually("the refresh", async |_| {
            !stand_in.tokens.refresh_tokens().is_empty()
        });
        tokio::select! {
            // Its connection is closed when this ends.
            (status, answer) = stand_in::send(&gateway, "bob@example.com") => {
                panic!("answered before the refresh: {status} {answer}");
            }
            () = asked => {}
        }
    }
    release.cancel();
    gateway
        .eventually("the message", async |_| {
            !stand_in.submission.messages().is_empty()
        })
        .await;
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        stand_in.tokens.refresh_tokens(),
        ["refresh-1", "late-refresh"]
    );
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].token, "late-access");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_that_dies_with_its_gateway_is_asked_for_again() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let folder = gateway.ca_file.parent().unwrap();
    let files = certificates::ensure(folder, &[], chrono::Utc::now()).unwrap();
    let child = Invocation::serve(&gateway.database_url, &files);
    let child = with_plugins(child, gateway.sandbox.plugins(&gateway.ca_file));
    let mut child = with_plugins(child, stand_in.plugins()).start();
    let http = child.ready().await.http;
    sqlx::raw_sql("UPDATE mailboxes SET access_token_expires_at = now() WHERE plugin = 'plugin_b'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    // The provider has answered, and the process dies before it has stored the answer.
    let never = CancellationToken::new();
    let rotated = json!({ "access_token": "a", "refresh_token": "lost", "expires_in": 3_600 });
    stand_in
        .tokens
        .queue(TokenAnswer::json(200, &rotated).held(&never));
    let request = gateway
        .http
        .post(format!("http://{http}/send"))
        .header("x-send-key", gateway.app.send_key.expose())
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": "bob@example.com",
            "subject": "Hello",
            "body": "It works.",
            "plugin": "plugin_b",
        }));
    let killing = async {
        gateway
            .eventually("the refresh", async |_| {
                stand_in.tokens.refresh_tokens() == ["refresh-1"]
            })
            .await;
        child.signal("KILL").await;
    };
    let (answered, ()) = tokio::join!(request.send(), killing);
    assert!(answered.is_err(), "{answered:?}");
    // Nobody sends anything meanwhile.
    gateway
        .eventually("the next refresh", async |_| {
            stand_in.tokens.refresh_tokens() == ["refresh-1", "refresh-1"]
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_goes_on_when_nobody_waits_for_it() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let rotated = json!({ "access_token": "late-access", "refresh_token": "late-refresh" });
    let release = CancellationToken::new();
    let answer = TokenAnswer::json(200, &rotated).held(&release);
    stand_in.tokens.queue(answer);
    let mailboxes = &gateway.daemon.mailboxes;
    let wanted = Wanted {
        app: gateway.app.id,
        user: None,
        plugin: Some(Plugin::B),
        address_lookup: None,
        only: None,
    };
    let mailbox = mailboxes.choose(&wanted).await.unwrap().unwrap().mailbox;
    let asked = gateway.eventually("the refresh", async |_| {
        !stand_in.tokens.refresh_tokens().is_empty()
    });
    tokio::select! {
        account = mailboxes.access(&mailbox, None) => panic!("too early: {account:?}"),
        () = asked => {}
    }
    release.cancel();
    gateway
        .eventually("the new token", async |_| {
            let mailbox = mailboxes.active(mailbox.id).await.unwrap().unwrap();
            mailbox.token_generation > 2
        })
        .await;
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        stand_in.tokens.refresh_tokens(),
        ["refresh-1", "late-refresh"]
    );
    gateway.stop().await;
}
