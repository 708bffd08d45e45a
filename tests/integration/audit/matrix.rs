//! Every operation of the interface, with what it leaves: those that change, show or create something leave one entry
//! each, the others none.

mod account;
mod apps;
mod mailboxes;
mod messages;
mod portal;

use std::collections::BTreeSet;

use mailgate_types::audit::AuditAction;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{rows, since};
use crate::support::caller::{Caller, anonymous, path, text};
use crate::support::gateway::Gateway;
use account::{with_a_subscription, with_keys};
use apps::with_an_app;
use mailboxes::with_mailboxes;
use messages::with_messages;

const TOKEN: &str = "an operator token of this test's own";

const HOOK: &str = "https://hooks.example/a";

/// Those that are no `GET` and leave nothing: they send a message, lead to a provider, or report what a provider did.
const SILENT: [&str; 3] = ["begin_connecting", "billing_webhook", "send"];

/// What has been called of a gateway.
struct Matrix<'a> {
    gateway: &'a Gateway,
    called: BTreeSet<&'static str>,
}

impl Matrix<'_> {
    /// Calls an operation, which leaves one entry of this action, or none at all.
    async fn does(
        &mut self,
        operation: &'static str,
        leaves: Option<AuditAction>,
        request: RequestBuilder,
    ) -> Value {
        let request = request.build().unwrap();
        if *request.method() != Method::GET && !SILENT.contains(&operation) {
            assert!(leaves.is_some(), "{operation} leaves something");
        }
        let before = rows(self.gateway).await;
        let response = self.gateway.http.execute(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.text().await.unwrap();
        if leaves.is_some() {
            assert!(status < 300, "{operation}: {status} {body}");
        } else {
            assert!(status < 500, "{operation}: {status} {body}");
        }
        let new = since(self.gateway, &before).await;
        let left: Vec<&str> = new.iter().map(|row| row.action.as_str()).collect();
        let expected: Vec<&str> = leaves.iter().map(|action| action.as_str()).collect();
        assert_eq!(left, expected, "{operation}");
        self.called.insert(operation);
        serde_json::from_str(&body).unwrap_or_default()
    }

    /// Waits until an event was tried at both endpoints; nothing more is done for it.
    async fn tried(&self) {
        let tried = "SELECT count(DISTINCT endpoint_id) FROM webhook_deliveries
                     WHERE event = 'send_key.renewed'";
        self.gateway
            .eventually("attempts", async |gateway| {
                let tried = sqlx::query_scalar::<_, i64>(tried);
                tried
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap()
                    == 2
            })
            .await;
        self.forget_waiting().await;
    }

    async fn forget_waiting(&self) {
        sqlx::query("DELETE FROM webhook_queue")
            .execute(&mut self.gateway.database().await)
            .await
            .unwrap();
    }
}

fn get(caller: &Caller<'_>, path: &str) -> RequestBuilder {
    caller.request(Method::GET, path)
}

fn post(caller: &Caller<'_>, path: &str, body: &Value) -> RequestBuilder {
    caller.request(Method::POST, path).json(body)
}

/// The operations in the document.
async fn documented(gateway: &Gateway) -> BTreeSet<String> {
    let document = anonymous(gateway, Method::GET, "/openapi.json");
    let document: Value = document.send().await.unwrap().json().await.unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    operations
        .map(|operation| text(operation, "operationId").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_leaves_what_it_is_said_to() {
    let gateway = Gateway::builder()
        .billed()
        .set("HTTP__OPERATOR_TOKEN", TOKEN)
        .start()
        .await;
    let mut matrix = Matrix {
        gateway: &gateway,
        called: BTreeSet::new(),
    };
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let new = anonymous(&gateway, Method::POST, "/subscribers")
        .header("x-operator-token", TOKEN)
        .json(&json!({ "label": "New", "email": "new@example.com" }));
    let created = matrix
        .does(
            "create_subscriber",
            Some(AuditAction::SubscriberCreated),
            new,
        )
        .await;
    let payer = Caller {
        gateway: &gateway,
        secret: text(&created, "api_secret").to_owned(),
    };
    with_keys(&mut matrix, &owner, &app).await;
    with_an_app(&mut matrix, &owner).await;
    with_messages(&mut matrix, &owner, &app).await;
    with_a_subscription(&mut matrix, &payer).await;
    with_mailboxes(&mut matrix, &owner, &app).await;
    let reset = owner.request(Method::POST, "/me/reset-api-secret");
    matrix
        .does(
            "reset_api_secret",
            Some(AuditAction::ApiSecretRenewed),
            reset,
        )
        .await;
    let called: BTreeSet<String> = matrix.called.iter().map(ToString::to_string).collect();
    assert_eq!(
        called,
        documented(&gateway).await,
        "a new operation is to be classified here"
    );
    gateway.stop().await;
}
