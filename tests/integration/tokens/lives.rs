//! How long a token is used, and that it is refreshed before it lapses.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::LAPSED;
use crate::support::gateway::Gateway;
use crate::support::stand_in::oauth::Answer as TokenAnswer;
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn a_lapsed_token_is_refreshed_before_it_is_used() {
    let gateway = Gateway::start().await;
    gateway.clock.advance(LAPSED);
    for _ in 0..2 {
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(gateway.sandbox.authorization.refreshes(), 1);
    assert_eq!(gateway.arrived().await.len(), 2);
    gateway.stop().await;
}

/// Numbers that no date can be made of (RFC 6749 §5.1 has seconds, and says no more of them).
#[tokio::test(flavor = "multi_thread")]
async fn no_life_of_a_token_is_too_long_or_too_short_for_a_date() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for life in [
        json!("9000000000000"),
        json!("9223372036854775807"),
        json!("-9223372036854775808"),
        json!(9_000_000_000_000_000_i64),
        json!(1e300),
        json!("inf"),
        json!("nan"),
    ] {
        let tokens = json!({ "access_token": "a", "refresh_token": "r", "expires_in": life });
        stand_in.tokens.queue(TokenAnswer::json(200, &tokens));
        stand_in.connect(&gateway).await;
        let expires_at: chrono::DateTime<chrono::Utc> = sqlx::query_scalar(
            "SELECT access_token_expires_at FROM mailboxes WHERE plugin = 'plugin_b'",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
        assert!(
            expires_at < chrono::Utc::now() + TimeDelta::days(366),
            "{life}"
        );
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{life}: {answer}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lives_of_tokens_in_every_spelling_are_kept_to() {
    for (expires_in, good_minutes) in [
        (json!("7200"), 110),
        (json!(7_200.5), 110),
        (Value::Null, 50),
    ] {
        let (stand_in, gateway) = StandIn::with_gateway().await;
        let answer = json!({ "access_token": "named", "expires_in": expires_in });
        stand_in.tokens.queue(TokenAnswer::json(200, &answer));
        for (minutes, refreshes) in [(120, 1), (good_minutes, 1), (15, 2)] {
            gateway.clock.advance(TimeDelta::minutes(minutes));
            let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
            assert_eq!(status, 200, "{answer}");
            let refreshed = stand_in.tokens.refresh_tokens().len();
            assert_eq!(refreshed, refreshes, "{expires_in} after {minutes} minutes");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_nobody_uses_is_refreshed_before_it_lapses() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(TimeDelta::days(29));
    gateway.daemon.mailboxes.refresh_idle().await.unwrap();
    assert!(stand_in.tokens.refresh_tokens().is_empty());
    gateway.clock.advance(TimeDelta::days(2));
    // Several replicas look at once; each mailbox is one's.
    let (first, second) = tokio::join!(
        gateway.daemon.mailboxes.refresh_idle(),
        gateway.daemon.mailboxes.refresh_idle()
    );
    // The sandbox's mailbox is due as well; the gateway's own worker may have been first.
    assert!(first.unwrap() + second.unwrap() <= 2);
    gateway
        .eventually("the refresh", async |_| {
            stand_in.tokens.refresh_tokens() == ["refresh-1"]
        })
        .await;
    // A provider that is away is asked again an hour later, and nobody is disconnected.
    gateway.clock.advance(TimeDelta::days(31));
    stand_in
        .tokens
        .queue(TokenAnswer::error(401, "invalid_client"));
    gateway.daemon.mailboxes.refresh_idle().await.unwrap();
    gateway.clock.advance(TimeDelta::hours(2));
    gateway.daemon.mailboxes.refresh_idle().await.unwrap();
    gateway
        .eventually("the refresh after the failure", async |_| {
            stand_in.tokens.refresh_tokens() == ["refresh-1", "refresh-2", "refresh-2"]
        })
        .await;
    gateway.stop().await;
}
