//! All paths of the portal.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::page::see;
use super::{
    api_secrets, app, app_actions, app_keys, apps, assets, billing, billing_actions, email_change,
    mailbox, mailbox_actions, mailboxes, message, message_actions, messages, messages_csv,
    overview, problem, requests, send_keys, settings, settings_secret, settings_sessions, sign_in,
    sign_in_link, sign_in_mail, sign_out, webhook, webhook_actions, webhook_delivery, webhook_form,
    webhook_replay, webhook_secret, webhooks,
};
use crate::PortalState;

/// Largest form, in bytes: the longest has a few thousand characters.
const FORM_BYTES: usize = 64 * 1024;

/// The router.
pub fn router(state: PortalState) -> Router {
    Router::new()
        .route("/portal", get(overview::show))
        .route("/portal/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route(
            "/portal/sign-in/{token}",
            get(sign_in_link::show).post(sign_in_link::sign_in),
        )
        .route("/portal/sign-in-mail", post(sign_in_mail::ask))
        .route(
            "/portal/email-change/{token}",
            get(email_change::show).post(email_change::follow),
        )
        .route(
            "/portal/settings/email-change/stop",
            post(email_change::stop),
        )
        .route("/portal/sign-out", post(sign_out::sign_out))
        .route("/portal/messages", get(messages::list))
        .route("/portal/messages.csv", get(messages_csv::export))
        .route("/portal/messages/{log_id}", get(message::show))
        .route(
            "/portal/messages/{log_id}/retry",
            post(message_actions::retry),
        )
        .route(
            "/portal/messages/{log_id}/cancel",
            get(message_actions::confirm_cancel).post(message_actions::cancel),
        )
        .route(
            "/portal/settings",
            get(settings::show).post(settings::change),
        )
        .route(
            "/portal/settings/api-secret/reveal",
            post(settings_secret::reveal),
        )
        .route(
            "/portal/settings/api-secret/renew",
            get(settings_secret::confirm_renew).post(settings_secret::renew),
        )
        .route(
            "/portal/settings/api-secrets/new",
            get(api_secrets::show_new).post(api_secrets::create),
        )
        .route(
            "/portal/settings/api-secrets/{id}/delete",
            get(api_secrets::confirm_delete).post(api_secrets::delete),
        )
        .route(
            "/portal/settings/sessions/end-others",
            post(settings_sessions::end_others),
        )
        .route(
            "/portal/settings/sessions/{id}/end",
            post(settings_sessions::end),
        )
        .merge(app_routes())
        .merge(billing_routes())
        .merge(webhook_routes())
        .merge(mailbox_routes())
        .route("/portal/assets/{file}", get(assets::serve))
        .route("/portal/", get(async || see("/portal")))
        .route("/portal/{*rest}", any(problem::nothing_here))
        .method_not_allowed_fallback(problem::wrong_method)
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .layer(CatchPanicLayer::custom(problem::panicked))
        .layer(from_fn_with_state(state.clone(), requests::frame))
        .with_state(state)
}

fn app_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/apps", get(apps::list).post(apps::create))
        .route("/portal/apps/{pk}", get(app::show))
        .route("/portal/apps/{pk}/reveal/{key}", post(app_keys::reveal))
        .route(
            "/portal/apps/{pk}/renew/{key}",
            get(app_keys::confirm).post(app_keys::renew),
        )
        .route(
            "/portal/apps/{pk}/send-keys/new",
            get(send_keys::show_new).post(send_keys::create),
        )
        .route(
            "/portal/apps/{pk}/send-keys/{id}/delete",
            get(send_keys::confirm_delete).post(send_keys::delete),
        )
        .route("/portal/apps/{pk}/link", post(app_actions::link))
        .route("/portal/apps/{pk}/options", post(app_actions::change))
        .route(
            "/portal/apps/{pk}/unsuppress",
            post(app_actions::unsuppress),
        )
        .route(
            "/portal/apps/{pk}/delete",
            get(app_actions::confirm_delete).post(app_actions::delete),
        )
}

fn billing_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/billing", get(billing::show))
        .route("/portal/billing/card", post(billing_actions::add_card))
        .route("/portal/billing/visit", post(billing_actions::visit))
        .route("/portal/billing/pay", post(billing_actions::pay))
        .route(
            "/portal/billing/cancel",
            get(billing_actions::confirm_cancel).post(billing_actions::cancel),
        )
}

fn mailbox_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/mailboxes", get(mailboxes::list))
        .route("/portal/mailboxes/{id}", get(mailbox::show))
        .route(
            "/portal/mailboxes/{id}/reconnect",
            post(mailbox_actions::reconnect),
        )
        .route(
            "/portal/mailboxes/{id}/disconnect",
            get(mailbox_actions::confirm_disconnect).post(mailbox_actions::disconnect),
        )
}

fn webhook_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/webhooks", get(webhooks::list))
        .route(
            "/portal/webhooks/new",
            get(webhook_form::show_new).post(webhook_form::create),
        )
        .route("/portal/webhooks/{id}", get(webhook::show))
        .route(
            "/portal/webhooks/{id}/edit",
            get(webhook_form::show_edit).post(webhook_form::edit),
        )
        .route("/portal/webhooks/{id}/pause", post(webhook_actions::pause))
        .route(
            "/portal/webhooks/{id}/resume",
            post(webhook_actions::resume),
        )
        .route("/portal/webhooks/{id}/test", post(webhook_actions::test))
        .route(
            "/portal/webhooks/{id}/delete",
            get(webhook_actions::confirm_delete).post(webhook_actions::delete),
        )
        .route(
            "/portal/webhooks/{id}/secret",
            get(webhook_secret::confirm_rotate).post(webhook_secret::rotate),
        )
        .route(
            "/portal/webhooks/{id}/replay",
            get(webhook_replay::show).post(webhook_replay::replay),
        )
        .route(
            "/portal/webhooks/{id}/deliveries/{delivery_id}",
            get(webhook_delivery::show),
        )
        .route(
            "/portal/webhooks/{id}/deliveries/{delivery_id}/replay",
            post(webhook_delivery::replay),
        )
}
