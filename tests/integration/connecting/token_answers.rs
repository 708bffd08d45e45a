//! What a token endpoint says against the standard: errors with a good status, errors that are objects, forms, and
//! tokens that aren't any.

use chrono::TimeDelta;
use mailgate_domain::mailboxes::{TokenError, Wanted};
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use super::{Visit, complete, link, rows};
use crate::support::gateway::Gateway;
use crate::support::stand_in::oauth::Answer;
use crate::support::stand_in::{self, ADDRESS, StandIn};

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// How a token endpoint refuses, and whether it says for sure that the grant is dead.
struct Refusal {
    status: u16,
    content_type: &'static str,
    body: String,
    /// What the page says at a connection.
    page: (u16, &'static str),
    is_dead: bool,
}

fn refusal(body: &Value, page: (u16, &'static str), is_dead: bool) -> Refusal {
    Refusal {
        status: 200,
        content_type: "application/json;charset=UTF-8",
        body: body.to_string(),
        page,
        is_dead,
    }
}

fn form(body: &str, page: (u16, &'static str), is_dead: bool) -> Refusal {
    Refusal {
        content_type: FORM,
        body: body.to_owned(),
        ..refusal(&Value::Null, page, is_dead)
    }
}

// Weble/ZohoBooksApi#84, octokit/auth-oauth-app.js#13, lelylan/simple-oauth2#459: errors with status 200.
#[expect(clippy::too_many_lines, reason = "a table")]
fn refusals() -> Vec<Refusal> {
    vec![
        refusal(
            &json!({ "error": "invalid_code" }),
            (400, "invalid_code"),
            true,
        ),
        refusal(
            &json!({ "error": "bad_refresh_token", "error_description": "It is incorrect or expired.",
                     "error_uri": "https://docs.example/x" }),
            (400, "bad_refresh_token"),
            true,
        ),
        refusal(
            &json!({ "error": "invalid_grant" }),
            (400, "invalid_grant"),
            true,
        ),
        refusal(
            &json!({ "ok": false, "error": "invalid_refresh_token" }),
            (400, "invalid_refresh_token"),
            true,
        ),
        refusal(
            &json!({ "ok": false, "error": "token_revoked" }),
            (400, "token_revoked"),
            true,
        ),
        refusal(
            &json!({ "error": { "code": "invalid_grant", "message": "It was revoked." } }),
            (400, "invalid_grant"),
            true,
        ),
        refusal(
            &json!({ "error": { "code": 400, "type": "invalid_grant" } }),
            (400, "invalid_grant"),
            true,
        ),
        refusal(
            &json!({ "error": "invalid_grant", "access_token": "" }),
            (400, "invalid_grant"),
            true,
        ),
        refusal(
            &json!({ "error": " Invalid_Grant " }),
            (400, "invalid_grant"),
            true,
        ),
        form(
            "error=bad_refresh_token&error_description=It+is+incorrect.",
            (400, "bad_refresh_token"),
            true,
        ),
        form("error=invalid_grant", (400, "invalid_grant"), true),
        Refusal {
            status: 400,
            ..form(
                "error=invalid_grant&error_description=x",
                (400, "invalid_grant"),
                true,
            )
        },
        // Words that say nothing of the grant for sure.
        refusal(
            &json!({ "error": "invalid_client" }),
            (502, "invalid_client"),
            false,
        ),
        refusal(
            &json!({ "error": "access_denied" }),
            (502, "access_denied"),
            false,
        ),
        refusal(
            &json!({ "error": "temporarily_unavailable" }),
            (503, "provider_unavailable"),
            false,
        ),
        refusal(
            &json!({ "error": "slow_down" }),
            (503, "provider_unavailable"),
            false,
        ),
        refusal(
            &json!({ "error": "invalid_token" }),
            (502, "invalid_token"),
            false,
        ),
        refusal(
            &json!({ "error": "unsupported_grant_type" }),
            (502, "unsupported_grant_type"),
            false,
        ),
        refusal(
            &json!({ "error": "general_error", "error_description": "not invalid_grant" }),
            (502, "general_error"),
            false,
        ),
        refusal(
            &json!({ "error": "not_invalid_grant" }),
            (502, "not_invalid_grant"),
            false,
        ),
        refusal(
            &json!({ "error": { "code": 190, "message": "invalid_grant" } }),
            (502, "provider_error"),
            false,
        ),
        refusal(&json!({ "error": true }), (502, "provider_error"), false),
        refusal(&json!({ "ok": false }), (502, "provider_error"), false),
        refusal(
            &json!({ "error": ["invalid_grant"] }),
            (502, "provider_error"),
            false,
        ),
        // It contradicts itself.
        refusal(
            &json!({ "error": "invalid_grant", "access_token": "a", "refresh_token": "r" }),
            (502, "invalid_grant"),
            false,
        ),
        form(
            "access_token=a&refresh_token=r&error=invalid_grant",
            (502, "invalid_grant"),
            false,
        ),
        form(
            "error=incorrect_client_credentials",
            (502, "incorrect_client_credentials"),
            false,
        ),
        Refusal {
            status: 500,
            ..refusal(
                &json!({ "error": "invalid_code" }),
                (503, "provider_unavailable"),
                false,
            )
        },
        Refusal {
            status: 429,
            ..refusal(
                &json!({ "error": "invalid_grant" }),
                (503, "provider_unavailable"),
                false,
            )
        },
        // Nothing that was said by the endpoint itself.
        Refusal {
            content_type: "text/html",
            ..form(
                "<a href=\"/?x&error=invalid_grant&y\">Sign in</a>",
                (502, "provider_error"),
                false,
            )
        },
        refusal(
            &json!({ "access_token": "", "refresh_token": "r" }),
            (502, "provider_error"),
            false,
        ),
        refusal(
            &json!({ "access_token": null }),
            (502, "provider_error"),
            false,
        ),
        refusal(
            &json!([{ "error": "invalid_grant" }]),
            (502, "provider_error"),
            false,
        ),
        form("", (502, "provider_error"), false),
    ]
}

/// A user who comes back from the stand-in with a code.
async fn come_back(gateway: &Gateway) -> Visit {
    let begun = Visit::press(link(gateway, &gateway.app, &[("plugin", "plugin_b")])).await;
    let state = begun.parameter("state").unwrap();
    let base = &gateway.daemon.base_url;
    let url = format!("{base}/oauth/callback?state={state}&code=c");
    complete(url.parse().unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_read_at_the_exchange_whatever_its_status() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for refusal in refusals() {
        let (status, word) = refusal.page;
        let answer = Answer::typed(refusal.status, refusal.content_type, &refusal.body);
        stand_in.tokens.queue(answer);
        let page = come_back(&gateway).await;
        assert_eq!(page.status, status, "{}: {}", refusal.body, page.body);
        page.is_failure(status, word);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_ends_the_mailbox_only_by_a_word_that_says_so() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let wanted = Wanted {
        app: gateway.app.id,
        user: None,
        plugin: Some(Plugin::B),
        address_lookup: None,
        only: None,
    };
    let mailboxes = &gateway.daemon.mailboxes;
    for refusal in refusals() {
        gateway.clock.advance(TimeDelta::hours(2));
        // A dead grant is asked for twice.
        let expected = if refusal.is_dead { 2 } else { 1 };
        for _ in 0..expected {
            let answer = Answer::typed(refusal.status, refusal.content_type, &refusal.body);
            stand_in.tokens.queue(answer);
        }
        let before = stand_in.tokens.calls_so_far();
        let mailbox = mailboxes.choose(&wanted).await.unwrap().unwrap().mailbox;
        let error = mailboxes.access(&mailbox, None).await.unwrap_err();
        let calls = stand_in.tokens.calls_so_far() - before;
        assert_eq!(calls, expected, "{}: {error}", refusal.body);
        let is_ended = matches!(error, TokenError::Disconnected);
        assert_eq!(is_ended, refusal.is_dead, "{}: {error}", refusal.body);
        let rows = rows(&gateway, &gateway.app).await;
        let row = rows.into_iter().find(|row| row.email == ADDRESS).unwrap();
        if refusal.is_dead {
            assert_eq!(row.status, "disconnected", "{}", refusal.body);
            assert_eq!(row.disconnect_reason.as_deref(), Some("invalid_grant"));
            stand_in.connect(&gateway).await;
        } else {
            assert_eq!(row.status, "active", "{}", refusal.body);
            // The provider's own word is logged, and told to whoever sends.
            let word = refusal.page.1;
            let is_own = refusal.status == 200 && !word.starts_with("provider_");
            assert!(!is_own || error.to_string().contains(word), "{error}");
        }
    }
    // And the refresh token that was there is still there.
    gateway.clock.advance(TimeDelta::hours(2));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    gateway.stop().await;
}

/// Fields that say nothing stand beside the tokens.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_error_stands_in_no_way() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let tokens = |extra: Value| {
        let mut tokens = json!({ "access_token": "a", "refresh_token": "r", "expires_in": 60 });
        let extra = extra.as_object().unwrap().clone();
        tokens.as_object_mut().unwrap().extend(extra);
        ("application/json", tokens.to_string())
    };
    for (content_type, body) in [
        tokens(json!({ "error": "" })),
        tokens(json!({ "error": " " })),
        tokens(json!({ "error": null, "error_description": null })),
        tokens(json!({ "error": false })),
        tokens(json!({ "error": 0 })),
        tokens(json!({ "error": {} })),
        tokens(json!({ "error": [] })),
        tokens(json!({ "ok": true, "error_description": "" })),
        tokens(json!({ "id_token": null, "scope": null, "expires_in": { "seconds": 3 } })),
        (
            FORM,
            "access_token=a&refresh_token=r&scope=&token_type=bearer".to_owned(),
        ),
        (
            FORM,
            "access_token=a%2Bb&refresh_token=r&error=&expires_in=60".to_owned(),
        ),
        ("text/plain", "access_token=a&refresh_token=r\n".to_owned()),
        (
            "application/json",
            format!("\u{feff}{}", tokens(json!({})).1),
        ),
    ] {
        stand_in
            .tokens
            .queue(Answer::typed(200, content_type, &body));
        let page = come_back(&gateway).await;
        assert_eq!(page.status, 200, "{body}: {}", page.body);
    }
    gateway.stop().await;
}

/// An empty refresh token would take the place of the one that works.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_refresh_token_is_none() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for (number, empty) in [json!(""), json!(" "), Value::Null, json!(7), json!({})]
        .into_iter()
        .enumerate()
    {
        let answer = json!({ "access_token": format!("a-{number}"), "refresh_token": empty });
        stand_in.tokens.queue(Answer::json(200, &answer));
        gateway.clock.advance(TimeDelta::hours(2));
        let (status, sent) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{answer}: {sent}");
    }
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1"; 5]);
    gateway.stop().await;
}
