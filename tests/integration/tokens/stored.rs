//! The tokens that are stored: which refresh token is shown next, and that nobody reads one in the database.

use serde_json::json;
use sqlx::Row;

use super::LAPSED;
use crate::support::stand_in::oauth::Answer as TokenAnswer;
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn each_refresh_shows_the_refresh_token_of_the_one_before() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for _ in 0..4 {
        gateway.clock.advance(LAPSED);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(
        stand_in.tokens.refresh_tokens(),
        ["refresh-1", "refresh-2", "refresh-3", "refresh-4"]
    );
    let used = stand_in.submission.messages();
    let used: Vec<&str> = used.iter().map(|message| message.token.as_str()).collect();
    assert_eq!(used, ["access-2", "access-3", "access-4", "access-5"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_without_a_new_refresh_token_keeps_the_old_one() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for number in 0..2 {
        let answer = json!({ "access_token": format!("bare-{number}"), "expires_in": 3_600 });
        stand_in.tokens.queue(TokenAnswer::json(200, &answer));
        gateway.clock.advance(LAPSED);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1", "refresh-1"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_lie_sealed_in_the_database() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let row = sqlx::query(
        "SELECT mailboxes::text AS row, refresh_token_sealed AS refresh,
                access_token_sealed AS access
         FROM mailboxes WHERE plugin = 'plugin_b'",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    let columns = [
        row.get::<String, _>("row").into_bytes(),
        row.get("refresh"),
        row.get("access"),
    ];
    for column in columns {
        assert!(!column.is_empty());
        for token in ["access-", "refresh-"] {
            let found = column
                .windows(token.len())
                .any(|part| part == token.as_bytes());
            assert!(!found, "{token} can be read");
        }
    }
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1"]);
    gateway.stop().await;
}
