//! The operations that connect and disconnect mailboxes.

use mailgate_types::audit::AuditAction;
use reqwest::Method;
use serde_json::json;

use super::{Matrix, post};
use crate::support::caller::{Caller, anonymous};

pub(super) async fn with_mailboxes(matrix: &mut Matrix<'_>, owner: &Caller<'_>, app: &str) {
    use AuditAction as A;
    let gateway = matrix.gateway;
    let create = post(owner, &format!("{app}/connect-sessions"), &json!({}));
    matrix
        .does(
            "create_connect_session",
            Some(A::ConnectSessionCreated),
            create,
        )
        .await;
    let page = format!("/connect/{}", gateway.app.pushable_key.expose());
    for (operation, method, path) in [
        ("connect", Method::GET, page.as_str()),
        ("begin_connecting", Method::POST, page.as_str()),
        ("connect_result", Method::GET, "/connect/result"),
        // One that has been granted is among the actions.
        (
            "oauth_callback",
            Method::GET,
            "/oauth/callback?state=x&code=y",
        ),
        ("healthz", Method::GET, "/healthz"),
        ("readyz", Method::GET, "/readyz"),
    ] {
        matrix
            .does(operation, None, anonymous(gateway, method, path))
            .await;
    }
    let mailbox = format!("{app}/credentials/{}", gateway.mailbox.credential);
    let disconnect = owner.request(Method::DELETE, &mailbox);
    matrix
        .does("disconnect_mailbox", Some(A::UserDisconnected), disconnect)
        .await;
    // A user whom a session has brought.
    sqlx::query("UPDATE end_users SET vouched_at = now()")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let user = format!("{app}/users/{}", gateway.mailbox.user_key);
    let release = owner.request(Method::DELETE, &user);
    matrix
        .does("release_user", Some(A::UserReleased), release)
        .await;
}
