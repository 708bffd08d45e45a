//! All paths of the portal.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    apps, billing, components, mailboxes, messages, overview, page, settings, sign_in, webhooks,
};
use crate::PortalState;
use crate::page::see;

/// Largest form, in bytes: the longest has a few thousand characters.
const FORM_BYTES: usize = 64 * 1024;

/// The router.
pub fn router(state: PortalState) -> Router {
    Router::new()
        .route("/portal", get(overview::show))
        .route("/portal/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route(
            "/portal/sign-in/{token}",
            get(sign_in::link::show).post(sign_in::link::sign_in),
        )
        .route("/portal/sign-in-mail", post(sign_in::mail::request_link))
        .route(
            "/portal/email-change/{token}",
            get(settings::email_change::show).post(settings::email_change::follow),
        )
        .route(
            "/portal/settings/email-change/stop",
            post(settings::email_change::stop),
        )
        .route("/portal/sign-out", post(sign_in::out::sign_out))
        .route("/portal/messages", get(messages::list))
        .route("/portal/messages.csv", get(messages::csv::export))
        .route("/portal/messages/{log_id}", get(messages::message::show))
        .route(
            "/portal/messages/{log_id}/retry",
            post(messages::actions::retry),
        )
        .route(
            "/portal/messages/{log_id}/cancel",
            get(messages::actions::confirm_cancel).post(messages::actions::cancel),
        )
        .route(
            "/portal/settings",
            get(settings::show).post(settings::change),
        )
        .route(
            "/portal/settings/api-secret/reveal",
            post(settings::secret::reveal),
        )
        .route(
            "/portal/settings/api-secret/renew",
            get(settings::secret::confirm_renew).post(settings::secret::renew),
        )
        .route(
            "/portal/settings/api-secrets/new",
            get(settings::api_secrets::show_new).post(settings::api_secrets::create),
        )
        .route(
            "/portal/settings/api-secrets/{id}/delete",
            get(settings::api_secrets::confirm_delete).post(settings::api_secrets::delete),
        )
        .route(
            "/portal/settings/sessions/end-others",
            post(settings::sessions::end_others),
        )
        .route(
            "/portal/settings/sessions/{id}/end",
            post(settings::sessions::end),
        )
        .merge(app_routes())
        .merge(billing_routes())
        .merge(webhook_routes())
        .merge(mailbox_routes())
        .merge(developers_routes(&state))
        .route("/portal/assets/{file}", get(page::assets::serve))
        .route("/portal/", get(async || see("/portal")))
        .route("/portal/{*rest}", any(page::problem::nothing_here))
        .method_not_allowed_fallback(page::problem::wrong_method)
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .layer(CatchPanicLayer::custom(page::problem::panicked))
        .layer(from_fn_with_state(state.clone(), page::requests::frame))
        .with_state(state)
}

/// Empty outside of `mailgate dev`.
fn developers_routes(state: &PortalState) -> Router<PortalState> {
    if state.settings.shows_components {
        Router::new().route("/portal/_components", get(components::show))
    } else {
        Router::new()
    }
}

fn app_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/apps", get(apps::list).post(apps::create))
        .route("/portal/deleted-apps/{id}", get(apps::deletion::show))
        .route("/portal/apps/{pk}", get(apps::app::show))
        .route("/portal/apps/{pk}/reveal/{key}", post(apps::keys::reveal))
        .route(
            "/portal/apps/{pk}/renew/{key}",
            get(apps::keys::confirm).post(apps::keys::renew),
        )
        .route(
            "/portal/apps/{pk}/send-keys/new",
            get(apps::send_keys::show_new).post(apps::send_keys::create),
        )
        .route(
            "/portal/apps/{pk}/send-keys/{id}/delete",
            get(apps::send_keys::confirm_delete).post(apps::send_keys::delete),
        )
        .route("/portal/apps/{pk}/link", post(apps::actions::link))
        .route("/portal/apps/{pk}/options", post(apps::actions::change))
        .route(
            "/portal/apps/{pk}/unsuppress",
            post(apps::actions::unsuppress),
        )
        .route(
            "/portal/apps/{pk}/delete",
            get(apps::actions::confirm_delete).post(apps::actions::delete),
        )
}

fn billing_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/billing", get(billing::show))
        .route("/portal/billing/card", post(billing::actions::add_card))
        .route("/portal/billing/visit", post(billing::actions::visit))
        .route("/portal/billing/pay", post(billing::actions::pay))
        .route(
            "/portal/billing/cancel",
            get(billing::actions::confirm_cancel).post(billing::actions::cancel),
        )
}

fn mailbox_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/mailboxes", get(mailboxes::list))
        .route("/portal/mailboxes/{id}", get(mailboxes::mailbox::show))
        .route(
            "/portal/mailboxes/{id}/reconnect",
            post(mailboxes::actions::reconnect),
        )
        .route(
            "/portal/mailboxes/{id}/disconnect",
            get(mailboxes::actions::confirm_disconnect).post(mailboxes::actions::disconnect),
        )
}

fn webhook_routes() -> Router<PortalState> {
    Router::new()
        .route("/portal/webhooks", get(webhooks::list))
        .route(
            "/portal/webhooks/new",
            get(webhooks::form::show_new).post(webhooks::form::create),
        )
        .route("/portal/webhooks/{id}", get(webhooks::webhook::show))
        .route(
            "/portal/webhooks/{id}/edit",
            get(webhooks::form::show_edit).post(webhooks::form::edit),
        )
        .route(
            "/portal/webhooks/{id}/pause",
            post(webhooks::actions::pause),
        )
        .route(
            "/portal/webhooks/{id}/resume",
            post(webhooks::actions::resume),
        )
        .route("/portal/webhooks/{id}/test", post(webhooks::actions::test))
        .route(
            "/portal/webhooks/{id}/delete",
            get(webhooks::actions::confirm_delete).post(webhooks::actions::delete),
        )
        .route(
            "/portal/webhooks/{id}/secret",
            get(webhooks::secret::confirm_rotate).post(webhooks::secret::rotate),
        )
        .route(
            "/portal/webhooks/{id}/replay",
            get(webhooks::replay::show).post(webhooks::replay::replay),
        )
        .route(
            "/portal/webhooks/{id}/replay/progress",
            get(webhooks::replay_progress::show),
        )
        .route(
            "/portal/webhooks/{id}/deliveries/{delivery_id}",
            get(webhooks::delivery::show),
        )
        .route(
            "/portal/webhooks/{id}/deliveries/{delivery_id}/replay",
            post(webhooks::delivery::replay),
        )
}
