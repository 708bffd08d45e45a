//! `DELETE /apps/{pushable_key}/credentials/{credential_id}`.

use mailgate_types::plugin::Plugin;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    access_token, active, another_app, connect, disconnected, events, execute, grants, grants_of,
    left_with, no_grant_of,
};
use crate::support::gateway::{Gateway, MAILBOX, create_app};

async fn api_secret(gateway: &Gateway) -> String {
    let credentials = gateway
        .daemon
        .accounts
        .app_credentials(gateway.app.id)
        .await;
    credentials.unwrap().unwrap().api_secret.expose().to_owned()
}

/// The answer to a `DELETE`, as its status and body.
async fn delete(gateway: &Gateway, pushable_key: &str, credential: &str) -> (u16, Value) {
    let base = &gateway.daemon.base_url;
    let url = format!("{base}/apps/{pushable_key}/credentials/{credential}");
    let request = gateway.http.request(Method::DELETE, url);
    let request = request.header("x-api-secret", api_secret(gateway).await);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_is_disconnected_once_and_its_grant_ends() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    let id = gateway.mailbox.credential;
    let token = access_token(&gateway, id).await;
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");

    let key = gateway.app.pushable_key.expose();
    let shown = id.to_string();
    let (one, two) = tokio::join!(delete(&gateway, key, &shown), delete(&gateway, key, &shown));
    let (first, second) = if one.0 == 200 { (one, two) } else { (two, one) };
    assert_eq!(first, (200, json!({ "disconnected": shown })));
    assert_eq!(
        (second.0, &second.1["code"]),
        (404, &json!("credential_not_found"))
    );
    assert_eq!(active(&gateway, &gateway.app).await, [""; 0]);
    let told = events(&gateway).await;
    assert_eq!(told, [disconnected(&shown, MAILBOX, "plugin_a", "removed")]);
    left_with(&gateway, 0).await;
    assert!(!gateway.sandbox.authorization.authenticate(MAILBOX, &token));

    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!((status, &answer["code"]), (422, &json!("no_mailbox")));
    // What waited for the mailbox fails at its next attempt, and says why.
    gateway.clock.advance(chrono::TimeDelta::hours(1));
    gateway
        .eventually("the end of the message", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    let logged = gateway.logged().await;
    assert_eq!(logged[0].0, "failed_perm");
    let reason = logged[0].1.as_deref().unwrap();
    assert!(reason.contains("no longer connected"), "{reason}");

    // Its user may come back.
    assert_eq!(connect(&gateway, &gateway.app, MAILBOX).await.status, 200);
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(delete(&gateway, key, &shown).await.0, 200, "the id stays");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_foreign_mailboxes_are_not_found() {
    let gateway = Gateway::start().await;
    let key = gateway.app.pushable_key.expose();
    let own_other = another_app(&gateway, "Other").await;
    let (_, foreign) = create_app(&gateway.daemon, "Foreign").await;
    let id = gateway.mailbox.credential.to_string();
    let unknown = format!("cred_{}", "0".repeat(26));
    for credential in [
        "x",
        "%00",
        "%ff",
        "cred_",
        &unknown,
        &id[5..],
        &id.to_uppercase(),
    ] {
        let (status, answer) = delete(&gateway, key, credential).await;
        assert_eq!(status, 404, "{credential}: {answer}");
        let code = &answer["code"];
        assert!(
            code == "credential_not_found" || credential == "%ff",
            "{answer}"
        );
    }
    let (status, answer) = delete(&gateway, own_other.pushable_key.expose(), &id).await;
    assert_eq!(
        (status, &answer["code"]),
        (404, &json!("credential_not_found"))
    );
    for key in [foreign.pushable_key.expose(), "pk_x"] {
        let (status, answer) = delete(&gateway, key, &id).await;
        assert_eq!((status, &answer["code"]), (404, &json!("app_not_found")));
    }
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX], "untouched");
    assert_eq!(grants(&gateway), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_shared_is_not_revoked() {
    let gateway = Gateway::start().await;
    let other = another_app(&gateway, "Other").await;
    // Providers spell addresses in their own ways.
    assert_eq!(
        connect(&gateway, &other, "Ada@Sandbox.example")
            .await
            .status,
        200
    );
    // At the other provider it is another account.
    let b = gateway.connect(None, Plugin::B, "b@sandbox.example").await;
    let elsewhere = gateway.connect(None, Plugin::B, MAILBOX).await;
    assert_eq!(grants_of(&gateway, MAILBOX), 3);
    no_grant_of(&gateway, &b.email).await;
    let key = gateway.app.pushable_key.expose();
    let (ada, elsewhere) = (gateway.mailbox.credential, elsewhere.credential);
    let shared = access_token(&gateway, ada).await;
    let alone = access_token(&gateway, elsewhere).await;
    assert_eq!(delete(&gateway, key, &ada.to_string()).await.0, 200);
    // The next one goes, so that the one before it has had its turn.
    assert_eq!(delete(&gateway, key, &elsewhere.to_string()).await.0, 200);
    let authorization = &gateway.sandbox.authorization;
    gateway
        .eventually("the end of the grant", async |_| {
            !authorization.authenticate(MAILBOX, &alone)
        })
        .await;
    assert!(authorization.authenticate(MAILBOX, &shared));
    gateway.stop().await;
}
