//! The operations that send messages and report them.

use mailgate_types::audit::AuditAction;
use reqwest::Method;
use serde_json::json;

use super::{Matrix, get};
use crate::support::caller::{Caller, anonymous, text};

pub(super) async fn with_messages(matrix: &mut Matrix<'_>, owner: &Caller<'_>, app: &str) {
    use AuditAction as A;
    let gateway = matrix.gateway;
    let message = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "tempfail@example.com", "subject": "x",
        "body": "x",
    });
    let send = anonymous(gateway, Method::POST, "/send");
    let send = send.header("x-send-key", gateway.app.send_key.expose());
    let accepted = matrix.does("send", None, send.json(&message)).await;
    let log = format!("/logs/{}", text(&accepted, "log_id"));
    matrix.does("list_logs", None, get(owner, "/logs")).await;
    let csv = get(owner, "/logs").header("accept", "text/csv");
    matrix.does("list_logs", Some(A::LogsExported), csv).await;
    matrix.does("show_log", None, get(owner, &log)).await;
    for (operation, path) in [
        ("show_queue", "/queue".to_owned()),
        ("stats", "/stats".to_owned()),
        ("email_stats", "/email-stats".to_owned()),
        ("list_refusals", format!("{app}/refusals")),
        ("list_suppressions", format!("{app}/suppressions")),
        ("list_audit_entries", "/audit".to_owned()),
    ] {
        matrix.does(operation, None, get(owner, &path)).await;
    }
    let retry = owner.request(Method::POST, &format!("{log}/retry"));
    matrix
        .does("retry_message", Some(A::MessageRetried), retry)
        .await;
    let waits = "SELECT count(*) FROM spool WHERE state = 'deferred' AND attempts = 2";
    gateway
        .eventually("the second attempt", async |gateway| {
            let waiting = sqlx::query_scalar::<_, i64>(waits);
            waiting
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap()
                == 1
        })
        .await;
    let cancel = owner.request(Method::POST, &format!("{log}/cancel"));
    matrix
        .does("cancel_message", Some(A::MessageCanceled), cancel)
        .await;
    sqlx::query("INSERT INTO suppressions SELECT $1, 'bob@example.com', $1, now()")
        .bind(gateway.app.id.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let all = owner.request(Method::DELETE, &format!("{app}/suppressions"));
    matrix
        .does("delete_suppressions", Some(A::SuppressionsDeleted), all)
        .await;
}
