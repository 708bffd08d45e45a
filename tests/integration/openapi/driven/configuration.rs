//! schemathesis' configuration: the credentials, and the values of parameters.

use std::fmt::Write as _;

use mailgate_types::plugin::Plugin;

use super::given::{create_apps, hooked, mailboxes};
use super::messages::{logged, user_key, waiting};
use super::rules::RULES;
use crate::openapi::OPERATOR_TOKEN;
use crate::support::gateway::{Gateway, MAILBOX};

/// Apps that a run may delete, or take the pushable keys of.
const THROWAWAY_APPS: usize = 40;

/// The credentials as schemathesis has them.
pub(super) fn credentials(gateway: &Gateway, api_secret: &str) -> String {
    let send_key = gateway.app.send_key.expose();
    format!(
        "[auth.openapi]\n\
         api_secret = {{ api_key = {api_secret:?} }}\n\
         send_key = {{ api_key = {send_key:?} }}\n\
         operator_token = {{ api_key = {OPERATOR_TOKEN:?} }}\n"
    )
}

/// Which apps are there: those that stay, and those that a run may take away.
#[expect(clippy::too_many_lines, reason = "one walk, step by step")]
pub(super) async fn apps(gateway: &Gateway, api_secret: &str) -> String {
    let lasting = create_apps(gateway, api_secret, 3).await;
    let throwaway = create_apps(gateway, api_secret, THROWAWAY_APPS).await;
    let (populated, mailboxes, user) = mailboxes(gateway, api_secret).await;
    let hooked = hooked(gateway, api_secret).await;
    let log = logged(gateway, &lasting[0]).await;
    let retried = waiting(gateway, &lasting[0]).await;
    let cancelled = waiting(gateway, &lasting[0]).await;
    let tomorrow = chrono::Utc::now() + chrono::TimeDelta::days(1);
    let mut configuration = String::new();
    for (name, keys) in [
        ("hooked", vec![hooked.pushable_key]),
        ("webhooks", hooked.lasting),
        ("throwaway_webhooks", hooked.throwaway),
        ("told", vec![hooked.told]),
        ("deliveries", vec![hooked.delivery]),
        ("own_deliveries", vec![hooked.own_delivery]),
        ("lasting", lasting),
        ("throwaway", throwaway),
        ("populated", vec![populated]),
        ("mailboxes", mailboxes),
        ("users", vec![user]),
        ("logs", vec![log]),
        ("retried", vec![retried]),
        ("cancelled", vec![cancelled]),
        ("leaving", vec![tomorrow.to_rfc3339()]),
        ("senders", vec![MAILBOX.to_owned()]),
        ("senders_users", vec![user_key(gateway).await]),
        ("senders_plugins", vec![Plugin::A.to_string()]),
        (
            "sending",
            vec![gateway.app.pushable_key.expose().to_owned()],
        ),
    ] {
        writeln!(configuration, "[dictionaries.{name}]\nvalues = {keys:?}").unwrap();
    }
    for (method, path, dictionary) in [
        ("GET", "/apps/{pushable_key}", "lasting"),
        ("PUT", "/apps/{pushable_key}", "lasting"),
        ("DELETE", "/apps/{pushable_key}", "throwaway"),
        ("GET", "/apps/{pushable_key}/send-key", "lasting"),
        ("POST", "/apps/{pushable_key}/reset-send-key", "lasting"),
        (
            "POST",
            "/apps/{pushable_key}/reset-pushable-key",
            "throwaway",
        ),
        ("GET", "/connect/{pushable_key}", "lasting"),
        ("POST", "/connect/{pushable_key}", "lasting"),
        ("POST", "/apps/{pushable_key}/connect-sessions", "lasting"),
    ] {
        // The rest of the time a key is made up.
        write!(
            configuration,
            "[[operations]]\n\
             include-name = \"{method} {path}\"\n\
             parameters.\"path.pushable_key\" = {{ dictionary = \"{dictionary}\", probability = 0.8 }}\n"
        )
        .unwrap();
    }
    for (operation, dictionary) in [
        ("GET /logs/{log_id}", "logs"),
        ("POST /logs/{log_id}/retry", "retried"),
        ("POST /logs/{log_id}/cancel", "cancelled"),
    ] {
        write!(
            configuration,
            "[[operations]]\n\
             include-name = \"{operation}\"\n\
             parameters.\"path.log_id\" = {{ dictionary = \"{dictionary}\", probability = 0.8 }}\n"
        )
        .unwrap();
    }
    write!(
        configuration,
        "[[operations]]\n\
         include-name = \"DELETE /apps/{{pushable_key}}/credentials/{{credential_id}}\"\n\
         parameters.\"path.pushable_key\" = {{ dictionary = \"populated\", probability = 0.9 }}\n\
         parameters.\"path.credential_id\" = {{ dictionary = \"mailboxes\", probability = 0.8 }}\n\
         [[operations]]\n\
         include-name = \"DELETE /apps/{{pushable_key}}/users/{{user_key}}\"\n\
         parameters.\"path.pushable_key\" = {{ dictionary = \"populated\", probability = 0.9 }}\n\
         parameters.\"path.user_key\" = {{ dictionary = \"users\", probability = 0.8 }}\n"
    )
    .unwrap();
    for (method, operation, dictionary) in [
        ("GET", "", "webhooks"),
        ("DELETE", "/{webhook_id}", "throwaway_webhooks"),
        ("GET", "/{webhook_id}/deliveries", "told"),
    ] {
        write!(
            configuration,
            "[[operations]]\n\
             include-name = \"{method} /apps/{{pushable_key}}/webhooks{operation}\"\n\
             parameters.\"path.pushable_key\" = {{ dictionary = \"hooked\", probability = 0.9 }}\n"
        )
        .unwrap();
        if !operation.is_empty() {
            writeln!(
                configuration,
                "parameters.\"path.webhook_id\" = {{ dictionary = \"{dictionary}\", probability = 0.8 }}"
            )
            .unwrap();
        }
    }
    configuration + RULES
}
