//! Against oidc-provider and Postfix: connected by the link, withdrawn at the provider, connected again.

use chrono::TimeDelta;
use serde_json::json;

use super::{Visit, connected, disconnected, events, execute, link, rows};
use crate::peers::Provider;
use crate::peers_end_to_end::{Encryption, plugins};
use crate::support::gateway::Gateway;
use crate::support::ports;

const ADA: &str = "ada@provider.test";

/// The whole way of a user's browser; answers the address at its end.
async fn connect(provider: &Provider, gateway: &Gateway, hint: &str) -> Visit {
    let parameters = [("plugin", "plugin_b"), ("login_hint", hint)];
    let begun = Visit::press(link(gateway, &gateway.app, &parameters)).await;
    let callback = provider.authorize(begun.location().as_str()).await;
    Visit::to(callback).await
}

#[tokio::test(flavor = "multi_thread")]
async fn connected_withdrawn_and_connected_again() {
    let [port] = ports::reserve();
    let provider = Provider::start(&format!("http://127.0.0.1:{port}/oauth/callback")).await;
    let gateway = Gateway::builder()
        .plugins(plugins(&provider, Encryption::StartTls))
        .set("HTTP__LISTEN", format!("127.0.0.1:{port}"))
        .start()
        .await;
    execute(
        &gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/hook', callback_url = 'https://app.example/'",
    )
    .await;

    let denied = connect(&provider, &gateway, "deny@provider.test").await;
    assert_eq!(denied.parameter("error").as_deref(), Some("access_denied"));
    let first = connect(&provider, &gateway, ADA).await;
    assert_eq!(
        first.parameter("status").as_deref(),
        Some("success"),
        "{}",
        first.location()
    );
    assert_eq!(first.parameter("email").as_deref(), Some(ADA));
    let credential = first.parameter("credential_id").unwrap();
    let message = json!({
        "to": "bob@provider.test", "subject": "Hello", "body": "Hi.", "plugin": "plugin_b",
    });
    let (status, answer) = gateway.send(message.clone()).await;
    assert_eq!(status, 200, "{answer}");
    provider.wait_for_messages("bob@provider.test", 1).await;

    provider.withdraw(ADA).await;
    gateway.clock.advance(TimeDelta::hours(2));
    let sends = [(); 3].map(|()| gateway.send(message.clone()));
    for (status, answer) in futures_util::future::join_all(sends).await {
        // Who comes after the end finds no mailbox at all.
        assert!(matches!(status, 502 | 422), "{answer}");
        if status == 502 {
            let detail = answer["detail"].as_str().unwrap();
            assert!(detail.contains("connect it again"), "{answer}");
        }
    }
    let ended = &rows(&gateway, &gateway.app).await[0];
    assert_eq!(
        (ended.email.as_str(), ended.status.as_str()),
        (ADA, "disconnected")
    );
    assert_eq!(ended.disconnect_reason.as_deref(), Some("invalid_grant"));

    let again = connect(&provider, &gateway, ADA).await;
    for name in ["credential_id", "user_key"] {
        assert_eq!(again.parameter(name), first.parameter(name), "{name}");
    }
    let (status, answer) = gateway.send(message).await;
    assert_eq!(status, 200, "{answer}");
    provider.wait_for_messages("bob@provider.test", 2).await;
    assert_eq!(
        events(&gateway).await,
        [
            connected(&credential, ADA, "plugin_b"),
            disconnected(&credential, ADA, "plugin_b", "invalid_grant"),
            connected(&credential, ADA, "plugin_b"),
        ]
    );
    gateway.stop().await;
}
