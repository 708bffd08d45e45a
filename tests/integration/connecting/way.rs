//! The whole way, and how often and for how long it can be gone.

use chrono::TimeDelta;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    Row, Visit, access_token, active, another_app, connect, connected, events, execute, grants,
    left_with, link, rows, until_callback, used_links, walk,
};
use crate::support::gateway::{Gateway, OPERATOR};

const GRACE: &str = "grace@sandbox.example";

#[tokio::test(flavor = "multi_thread")]
async fn a_user_connects_a_mailbox_and_mail_leaves_from_it() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET multiuser = true, webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    let parameters = [
        ("plugin", "plugin_b"),
        ("user_id", "customer 7"),
        ("login_hint", GRACE),
    ];
    let begun = Visit::press(link(&gateway, &gateway.app, &parameters)).await;
    let callback = format!("{}/oauth/callback", gateway.daemon.base_url);
    assert_eq!(begun.parameter("redirect_uri"), Some(callback.clone()));
    for (name, expected) in [
        ("response_type", "code"),
        ("code_challenge_method", "S256"),
        ("login_hint", GRACE),
    ] {
        assert_eq!(begun.parameter(name).as_deref(), Some(expected), "{name}");
    }
    // Sealed: it says nothing, and nothing of it is in the database.
    let state = begun.parameter("state").unwrap();
    assert!(state.len() <= 128, "{state}");
    assert_eq!(used_links(&gateway).await, 0);

    let granted = Visit::to(begun.location()).await;
    assert!(granted.location().as_str().starts_with(&callback));
    let code = granted.parameter("code").unwrap();
    let done = Visit::to(granted.location()).await;
    let result = done.location();
    // It can be loaded again, and holds nothing of the provider's.
    let page = Visit::to(result.clone()).await;
    assert!(!result.as_str().contains(&code) && !result.as_str().contains(&state));
    assert_eq!(Visit::to(result).await.body, page.body);
    assert_eq!(page.status, 200, "{}", page.body);
    page.is_page();
    assert_eq!(page.title(), "Your mailbox is connected");
    for part in [GRACE, "<bdi>Demo</bdi>", "return to"] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(!page.body.contains(&code) && !page.body.contains(&state));
    assert_eq!(used_links(&gateway).await, 1);

    let message = json!({
        "to": "bob@example.com", "subject": "Hello", "body": "Hi.", "user_id": "customer 7",
    });
    let (status, answer) = gateway.send(message).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["from"], GRACE);
    let of_grace = Row {
        email: GRACE.to_owned(),
        user_id: Some("customer 7".to_owned()),
        status: "active".to_owned(),
        disconnect_reason: None,
        has_tokens: true,
    };
    assert_eq!(rows(&gateway, &gateway.app).await[1], of_grace);
    let credential: uuid::Uuid = sqlx::query_scalar(
        "SELECT id FROM mailboxes
         WHERE user_key <> $1 AND refresh_due_at > connected_at + interval '1 day'",
    )
    .bind(gateway.mailbox.user_key.0)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    let credential = mailgate_types::ids::CredentialId(credential);
    assert_eq!(
        events(&gateway).await,
        [connected(&credential.to_string(), GRACE, "plugin_b")]
    );
    let token = access_token(&gateway, credential).await;
    assert!(gateway.sandbox.authorization.authenticate(GRACE, &token));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_apps_own_page_is_told() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET callback_url = 'https://app.example/done?tab=a%20b#/mail'",
    )
    .await;
    let parameters = [
        ("plugin", "plugin_b"),
        ("user_id", "ü & 1"),
        ("login_hint", GRACE),
    ];
    let done = walk(&gateway, &gateway.app, &parameters).await;
    assert_eq!(done.headers["cache-control"], "no-store");
    assert_eq!(done.headers["referrer-policy"], "no-referrer");
    let location = done.location();
    assert!(
        location
            .as_str()
            .starts_with("https://app.example/done?tab=a%20b&status=success&"),
        "{location}"
    );
    assert_eq!(location.fragment(), Some("/mail"));
    let (credential, user_key): (uuid::Uuid, uuid::Uuid) =
        sqlx::query_as("SELECT id, user_key FROM mailboxes WHERE email = $1")
            .bind(GRACE)
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    // The app has one user, whom the link may call as it likes.
    assert_eq!(user_key, gateway.mailbox.user_key.0);
    let credential = mailgate_types::ids::CredentialId(credential).to_string();
    let user_key = user_key.to_string();
    let pairs: Vec<(String, String)> = location.query_pairs().into_owned().collect();
    let expected = [
        ("tab", "a b"),
        ("status", "success"),
        ("credential_id", &credential),
        ("user_key", &user_key),
        ("email", GRACE),
        ("plugin", "plugin_b"),
        ("user_id", "ü & 1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(pairs, expected);

    let denied = connect(&gateway, &gateway.app, "deny@sandbox.example").await;
    for (name, expected) in [
        ("status", Some("error")),
        ("error", Some("access_denied")),
        ("plugin", Some("plugin_a")),
        ("user_id", None),
        ("credential_id", None),
    ] {
        assert_eq!(denied.parameter(name).as_deref(), expected, "{name}");
    }
    assert!(!denied.parameter("error_description").unwrap().is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_is_gone_once_and_within_ten_minutes() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET callback_url = 'https://app.example/'",
    )
    .await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", GRACE)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    let (one, two) = tokio::join!(Visit::to(callback.clone()), Visit::to(callback.clone()));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [302, 410]);
    Visit::to(callback).await.is_failure(410, "link_expired");
    assert_eq!(active(&gateway, &gateway.app).await.len(), 2);

    // The code at the sandbox lives for a minute only, so that a lapsed way is tried with an error.
    for (minutes, status) in [(9, 302), (10, 410)] {
        let begun = Visit::press(link(&gateway, &gateway.app, &parameters)).await;
        let state = begun.parameter("state").unwrap();
        gateway.clock.advance(TimeDelta::minutes(minutes));
        let base = &gateway.daemon.base_url;
        let callback = format!("{base}/oauth/callback?error=access_denied&state={state}");
        assert_eq!(Visit::to(callback).await.status, status, "{minutes}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn used_links_are_forgotten_when_they_have_lapsed_and_not_before() {
    let gateway = Gateway::start().await;
    let declined = [
        ("plugin", "plugin_a"),
        ("login_hint", "deny@sandbox.example"),
    ];
    walk(&gateway, &gateway.app, &declined).await;
    assert_eq!(used_links(&gateway).await, 1);
    let granted = [
        ("plugin", "plugin_a"),
        ("login_hint", "ada@sandbox.example"),
    ];
    for _ in 0..3 {
        walk(&gateway, &gateway.app, &granted).await;
    }
    // Who declined has used it, too, but not for a month.
    let stop = CancellationToken::new();
    let forget = async || gateway.daemon.mailboxes.forget_lapsed_links(&stop).await;
    forget().await.unwrap();
    assert_eq!(used_links(&gateway).await, 4);
    gateway.clock.advance(TimeDelta::minutes(11));
    forget().await.unwrap();
    assert_eq!(used_links(&gateway).await, 3);
    // A month past their end.
    gateway
        .clock
        .advance(TimeDelta::days(30) + TimeDelta::minutes(11));
    walk(&gateway, &gateway.app, &granted).await;
    assert_eq!(used_links(&gateway).await, 4);
    forget().await.unwrap();
    assert_eq!(used_links(&gateway).await, 1);
    execute(
        &gateway,
        "UPDATE used_links SET expires_at = now() - interval '31 days'",
    )
    .await;
    // The worker of a process that starts looks at once.
    let replica = gateway.replica().start().await;
    gateway
        .eventually("the end of a lapsed link", async |gateway| {
            used_links(gateway).await == 0
        })
        .await;
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_pushable_key_ends_ways_under_way() {
    let gateway = Gateway::start().await;
    let other = another_app(&gateway, "Other").await;
    execute(
        &gateway,
        "UPDATE apps SET callback_url = 'https://app.example/'",
    )
    .await;
    let parameters = [("plugin", "plugin_a"), ("login_hint", GRACE)];
    let callback = until_callback(&gateway, &other, &parameters).await;
    let live = grants(&gateway);
    gateway
        .daemon
        .accounts
        .renew_pushable_key(other.id, None, OPERATOR)
        .await
        .unwrap();
    Visit::to(callback).await.is_failure(410, "link_expired");
    let page = Visit::to(link(&gateway, &other, &parameters)).await;
    page.is_failure(404, "link_not_found");
    assert_eq!(active(&gateway, &other).await, [""; 0]);
    assert_eq!(grants(&gateway), live, "the code was not exchanged");

    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_app_ends_ways_under_way() {
    let gateway = Gateway::start().await;
    let other = another_app(&gateway, "Other").await;
    let parameters = [("plugin", "plugin_a"), ("login_hint", GRACE)];
    let callback = until_callback(&gateway, &other, &parameters).await;
    assert!(
        gateway
            .daemon
            .mailboxes
            .delete_app(other.id, OPERATOR)
            .await
            .unwrap()
    );
    Visit::to(callback).await.is_failure(410, "link_expired");
    left_with(&gateway, 1).await;
    gateway.stop().await;
}
