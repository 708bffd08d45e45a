//! Ways that end without a mailbox: what is told, and what becomes of the grant.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    Visit, active, another_app, complete, connect, execute, grants_of, left_with, link,
    no_grant_of, rows, walk,
};
use crate::support::gateway::{Gateway, MAILBOX, OPERATOR};
use crate::support::stand_in::StandIn;
use crate::support::stand_in::oauth::Answer;

/// A user who comes back from the stand-in with any code, and these further parameters.
async fn callback(gateway: &Gateway, parameters: &str) -> Url {
    let asked = [("plugin", "plugin_b"), ("user_id", "u 1")];
    let begun = Visit::press(link(gateway, &gateway.app, &asked)).await;
    let state = begun.parameter("state").unwrap();
    let base = &gateway.daemon.base_url;
    let url = format!("{base}/oauth/callback?state={state}&{parameters}");
    url.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_declines_may_try_again() {
    let gateway = Gateway::start().await;
    let parameters = [
        ("plugin", "plugin_b"),
        ("user_id", "a&b"),
        ("login_hint", "deny@sandbox.example"),
    ];
    let page = walk(&gateway, &gateway.app, &parameters).await;
    page.is_failure(400, "access_denied");
    assert_eq!(page.title(), "Your mailbox is not connected");
    assert!(page.body.contains("Sandbox B"), "{}", page.body);
    let (_, rest) = page.body.split_once("id=\"try-again\" href=\"").unwrap();
    let again = rest.split('"').next().unwrap().replace("&amp;", "&");
    assert_eq!(again, link(&gateway, &gateway.app, &parameters).as_str());
    assert_eq!(Visit::to(again).await.status, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_grant_is_given_back() {
    let gateway = Gateway::start().await;
    let page = connect(&gateway, &gateway.app, "partial@sandbox.example").await;
    page.is_failure(400, "insufficient_scope");
    left_with(&gateway, 1).await;
    let rows = rows(&gateway, &gateway.app).await;
    let emails: Vec<&str> = rows.iter().map(|row| row.email.as_str()).collect();
    assert_eq!(emails, [MAILBOX], "nothing was stored");
    assert_eq!(rows[0].status, "active", "and nothing replaced");
    gateway.stop().await;
}

/// Where one revocation ends all that an account has granted, the mailbox of another app would die.
#[tokio::test(flavor = "multi_thread")]
async fn a_partial_grant_of_a_connected_account_is_left_alone() {
    let gateway = Gateway::start().await;
    let other = another_app(&gateway, "Other").await;
    let address = "partial@sandbox.example";
    // As if it had granted all: the sandbox does as the address says.
    let page = complete({
        let begun = Visit::press(link(&gateway, &other, &[("plugin", "plugin_a")])).await;
        let mut request = begun.location();
        request.query_pairs_mut().append_pair("login_hint", address);
        let scope: Vec<(String, String)> = request
            .query_pairs()
            .map(|(name, value)| match name.as_ref() {
                "scope" => ("scope".to_owned(), value.replacen("openid", "mail.send", 1)),
                _ => (name.into_owned(), value.into_owned()),
            })
            .collect();
        request.query_pairs_mut().clear().extend_pairs(scope);
        Visit::to(request).await.location()
    })
    .await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(active(&gateway, &other).await, [address]);

    let page = connect(&gateway, &gateway.app, address).await;
    page.is_failure(400, "insufficient_scope");
    // A later one goes, so that the one before it has had its turn.
    let later = "partial-2@sandbox.example";
    let page = connect(&gateway, &gateway.app, later).await;
    page.is_failure(400, "insufficient_scope");
    no_grant_of(&gateway, later).await;
    assert_eq!(grants_of(&gateway, address), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "mostly a table")]
async fn each_failure_of_the_provider_has_its_word() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let tokens = |scope: Option<&str>, refresh: bool| {
        let mut answer = json!({ "access_token": "a", "token_type": "Bearer", "expires_in": 60 });
        if let Some(scope) = scope {
            answer["scope"] = Value::from(scope);
        }
        if refresh {
            answer["refresh_token"] = Value::from("r");
        }
        Answer::json(200, &answer)
    };
    let cases: [(Option<Answer>, &str, u16, &str); 14] = [
        (Some(tokens(None, false)), "code=c", 400, "no_refresh_token"),
        (Some(tokens(Some("openid x"), true)), "code=c", 200, ""),
        (
            Some(Answer::error(400, "invalid_grant")),
            "code=c",
            400,
            "invalid_grant",
        ),
        (
            Some(Answer::error(401, "invalid_client")),
            "code=c",
            502,
            "invalid_client",
        ),
        (
            Some(Answer::error(400, "<i>Odd</i>")),
            "code=c",
            502,
            "provider_error",
        ),
        (
            Some(Answer::new(200, "no JSON")),
            "code=c",
            502,
            "provider_error",
        ),
        (
            Some(Answer::new(500, "")),
            "code=c",
            503,
            "provider_unavailable",
        ),
        (
            Some(Answer::error(429, "slow_down")),
            "code=c",
            503,
            "provider_unavailable",
        ),
        (None, "error=consent_required", 400, "consent_required"),
        (None, "error=Not%20a%20word", 400, "provider_error"),
        (None, "error=server_error", 502, "server_error"),
        (
            None,
            "error=temporarily_unavailable",
            503,
            "temporarily_unavailable",
        ),
        (None, "", 400, "provider_error"),
        (None, "code=c&error=access_denied", 400, "access_denied"),
    ];
    for (answer, parameters, status, word) in cases {
        if let Some(answer) = answer {
            stand_in.tokens.queue(answer);
        }
        let page = complete(callback(&gateway, parameters).await).await;
        if word.is_empty() {
            assert_eq!(page.status, status, "{}", page.body);
            continue;
        }
        page.is_failure(status, word);
        assert!(page.body.contains("user_id=u+1"), "{}", page.body);
        assert_eq!(page.headers.contains_key("retry-after"), status == 503);
    }
    // What a provider says is shown as text, a few hundred characters of it.
    let said = format!(
        "error=x&error_description=%3Cscript%3E%0A{}",
        "y".repeat(2_000)
    );
    let page = complete(callback(&gateway, &said).await).await;
    page.is_failure(400, "x");
    assert!(page.body.contains("&lt;script&gt; yyy"), "{}", page.body);
    let folded =
        "<details><summary>Details</summary><p>The provider says: “<bdi>&lt;script&gt; yyy";
    assert!(page.body.contains(folded), "{}", page.body);
    // And to the browser that came back with it alone: anybody can write it into the way back.
    let back = callback(&gateway, &said).await;
    let result = Visit::to(back).await.location();
    let elsewhere = Visit::by(super::browser().get(result)).await;
    elsewhere.is_failure(400, "x");
    assert!(!elsewhere.body.contains("yyy"), "{}", elsewhere.body);
    assert!(!page.body.contains(&"y".repeat(400)), "{}", page.body);

    // The app is told the words and not the provider's text.
    execute(
        &gateway,
        "UPDATE apps SET callback_url = 'https://app.example/'",
    )
    .await;
    let told = Visit::to(callback(&gateway, &said).await).await;
    assert_eq!(told.parameter("error").as_deref(), Some("x"));
    assert_eq!(told.parameter("user_id").as_deref(), Some("u 1"));
    assert!(!told.parameter("error_description").unwrap().contains("yyy"));
    stand_in.tokens.close();
    let told = Visit::to(callback(&gateway, "code=c").await).await;
    assert_eq!(
        told.parameter("error").as_deref(),
        Some("provider_unavailable")
    );
    gateway.stop().await;
}

/// The browser is gone before the provider has answered: the mailbox is connected all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_goes_away_leaves_nothing_half_done() {
    let stand_in = StandIn::start().await;
    let gateway = Gateway::builder().plugins(stand_in.plugins()).start().await;
    let answer = json!({ "access_token": "a", "refresh_token": "r", "expires_in": 60 });
    let release = CancellationToken::new();
    let held = Answer::json(200, &answer).held(&release);
    stand_in.tokens.queue(held);
    let url = callback(&gateway, "code=c").await;
    tokio::select! {
        // Its connection is closed when this ends.
        page = gateway.http.get(url.clone()).header("cookie", super::cookies_at(url.as_str())).send() => panic!("answered before the provider: {page:?}"),
        () = gateway.eventually("the exchange", async |_| stand_in.tokens.calls_so_far() > 0) => {}
    }
    release.cancel();
    gateway
        .eventually("the mailbox", async |gateway| {
            active(gateway, &gateway.app).await.len() == 2
        })
        .await;
    gateway.stop().await;
}

/// What changes while the provider is asked counts: the row is locked after its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_renewed_during_the_exchange_ends_the_way() {
    for delete in [false, true] {
        let stand_in = StandIn::start().await;
        let gateway = Gateway::builder().plugins(stand_in.plugins()).start().await;
        execute(
            &gateway,
            "UPDATE apps SET callback_url = 'https://app.example/'",
        )
        .await;
        let answer = json!({ "access_token": "a", "refresh_token": "r", "expires_in": 60 });
        let release = CancellationToken::new();
        stand_in
            .tokens
            .queue(Answer::json(200, &answer).held(&release));
        let url = callback(&gateway, "code=c").await;
        let (page, ()) = tokio::join!(Visit::to(url), async {
            gateway
                .eventually("the exchange", async |_| stand_in.tokens.calls_so_far() > 0)
                .await;
            let app = gateway.app.id;
            if delete {
                assert!(
                    gateway
                        .daemon
                        .mailboxes
                        .delete_app(app, OPERATOR)
                        .await
                        .unwrap()
                );
            } else {
                gateway
                    .daemon
                    .accounts
                    .renew_pushable_key(app, None, OPERATOR)
                    .await
                    .unwrap();
            }
            release.cancel();
        });
        page.is_failure(410, "link_expired");
        let emails: Vec<String> = sqlx::query_scalar("SELECT email FROM mailboxes")
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap();
        let expected = if delete {
            vec![]
        } else {
            vec![MAILBOX.to_owned()]
        };
        assert_eq!(emails, expected);
        gateway.stop().await;
    }
}
