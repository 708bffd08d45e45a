//! The API secret: shown and renewed only after it is entered again, or after signing in with a link.

use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use secrecy::ExposeSecret;
use serde::Deserialize;

use crate::PortalState;
use crate::page::fields::Sent;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::{Guest, Session};
use crate::page::words::{Moment, number};
use crate::page::{page, see};
use crate::sign_in::subscriber_of;
use mailgate_domain::accounts::{
    self, Accounts, LISTED, Minted, RenewError, RestoredEmail, Visitor,
};
use mailgate_types::secrets::ApiSecret;
use mailgate_types::sign_in::SignedInBy;

/// The title of the page with a new one.
const NEW_SECRET: &str = "Your new API secret";

/// The form.
#[derive(Default, Deserialize)]
pub(crate) struct Proof {
    #[serde(default)]
    api_secret: String,
}

impl Proof {
    /// The fields of a form.
    pub(crate) fn of(api_secret: &str) -> Self {
        Self {
            api_secret: api_secret.to_owned(),
        }
    }
}

/// A form that renews a key.
#[derive(Default, Deserialize)]
pub(crate) struct Renewal {
    #[serde(flatten)]
    pub(crate) proof: Proof,
    /// The fingerprint of the current key when the form was made. Without it nothing is renewed.
    #[serde(default)]
    pub(crate) last: String,
    /// `all`: also ends everything that was created with the API secrets.
    #[serde(default)]
    revoke: String,
    /// The former address to restore; empty: none.
    #[serde(default)]
    restored_email: String,
}

/// The secret, only in this response.
#[derive(Template)]
#[template(path = "secret.html")]
struct SecretPage<'a> {
    frame: Frame,
    is_new: bool,
    /// The address that was restored with it.
    restored: Option<&'a str>,
    api_secret: &'a str,
}

/// The confirmation page for renewing it.
#[derive(Template)]
#[template(path = "renew_secret.html")]
struct RenewPage {
    frame: Frame,
    is_fresh: bool,
    /// The fingerprint of the current one.
    last: String,
    /// Everything that was created with the API secrets.
    minted: Minted,
    more: More,
    since: Option<Moment>,
}

/// How many more of each the page doesn't list; empty: none.
struct More {
    send_keys: String,
    apps: String,
    webhooks: String,
}

impl More {
    fn of(minted: &Minted) -> Self {
        let more = |count: i64| match count - LISTED {
            more @ 1.. => format!("{} more", number(more)),
            _ => String::new(),
        };
        Self {
            send_keys: more(i64::try_from(minted.send_keys.len()).unwrap_or(i64::MAX)),
            apps: more(minted.apps.count),
            webhooks: more(minted.webhooks.count),
        }
    }
}

/// The session replaces the secret, or the secret is this subscriber's.
pub(crate) async fn check(
    state: &PortalState,
    session: &Session,
    visitor: &Visitor,
    proof: &Proof,
) -> Result<(), PortalProblem> {
    if session.is_fresh(state.clock.now()) {
        return Ok(());
    }
    let holder = subscriber_of(state, visitor, &proof.api_secret).await?;
    if holder.is_some_and(|holder| holder.id == session.id()) {
        return Ok(());
    }
    Err(PortalProblem::new(
        StatusCode::FORBIDDEN,
        "wrong_api_secret",
        "That isn't the current API secret",
        "Nothing was shown or changed. Enter the current API secret, or open the portal with a new sign-in link.",
    )
    .leading("Back to the settings", "/portal/settings"))
}

/// Shows it.
pub(crate) async fn reveal(
    session: Session,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(proof): Sent<Proof>,
) -> Result<Response, PortalProblem> {
    check(&state, &session, &visitor, &proof).await?;
    let secret = state
        .accounts
        .reveal_api_secret(&session.subscriber, session.author())
        .await?;
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Settings,
        "Your API secret",
        None,
    )
    .await;
    let body = SecretPage {
        frame,
        is_new: false,
        restored: None,
        api_secret: secret.expose_secret(),
    };
    Ok(page(StatusCode::OK, &body))
}

fn too_often() -> PortalProblem {
    PortalProblem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_renewals",
        "The API secret was rotated too often",
        "Nothing was changed. It was rotated 60 times within 24 hours: wait, or sign in with a mailed link and rotate it then.",
    )
    .leading("Back to the settings", "/portal/settings")
}

/// Shows the confirmation page for renewing it.
pub(crate) async fn confirm_renew(
    session: Session,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let title = "Rotate the API secret?";
    let minted = state.accounts.minted(&session.subscriber).await?;
    let body = RenewPage {
        since: minted.since.map(Moment::new),
        more: More::of(&minted),
        minted,
        frame: Frame::load(&state, &session.subscriber, Section::Settings, title, None).await,
        is_fresh: session.is_fresh(state.clock.now()),
        last: Accounts::api_secret_mark(&session.subscriber),
    };
    Ok(page(StatusCode::OK, &body))
}

/// Renews it, and ends all other sessions. Resubmitting the form, for example by reloading the response, renews
/// nothing.
pub(crate) async fn renew(
    session: Session,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(sent): Sent<Renewal>,
) -> Result<Response, PortalProblem> {
    check(&state, &session, &visitor, &sent.proof).await?;
    let renewal = accounts::Renewal {
        last: Some(sent.last),
        kept: Some(session.open.id),
        revokes: sent.revoke == "all",
        restores: if sent.restored_email.is_empty() {
            RestoredEmail::None
        } else {
            RestoredEmail::Only(sent.restored_email)
        },
        is_by_mail: session.open.by == SignedInBy::Link && !session.open.needs_secret,
    };
    let restored = match &renewal.restores {
        RestoredEmail::Only(email) => Some(email.clone()),
        _ => None,
    };
    let renewed = (state.accounts).renew_api_secret(session.id(), renewal, session.author());
    let secret = match renewed.await {
        Ok((secret, _)) => secret,
        Err(RenewError::Before) => return Ok(see("/portal/settings?done=renewed-before")),
        Err(error) => return Err(not_renewed(&error)),
    };
    let section = Section::Settings;
    let frame = Frame::load(&state, &session.subscriber, section, NEW_SECRET, None).await;
    let body = SecretPage {
        frame,
        is_new: true,
        restored: restored.as_deref(),
        api_secret: secret.expose(),
    };
    Ok(page(StatusCode::OK, &body))
}

/// Whether following a link also renews the API secret.
#[derive(Default, Deserialize)]
pub(crate) struct Following {
    /// `renew`: also renews the API secret.
    #[serde(default)]
    then: String,
    /// `all`: also ends everything that was created with the API secrets.
    #[serde(default)]
    revoke: String,
}

impl Following {
    /// The requested renewal.
    pub(crate) fn renewal(&self) -> Option<accounts::Renewal> {
        (self.then == "renew").then(|| accounts::Renewal {
            revokes: self.revoke == "all",
            ..accounts::Renewal::default()
        })
    }
}

/// Shows the secret that was renewed through a link; `restored` is the restored address.
pub(crate) fn renewed_by_link(
    state: &PortalState,
    secret: &ApiSecret,
    restored: Option<&str>,
) -> Response {
    let body = SecretPage {
        frame: Frame::outside(state, NEW_SECRET),
        is_new: true,
        restored,
        api_secret: secret.expose(),
    };
    page(StatusCode::OK, &body)
}

/// Why nothing was renewed.
pub(crate) fn not_renewed(error: &RenewError) -> PortalProblem {
    match error {
        RenewError::UnderWay => PortalProblem::too_many(Duration::from_secs(1)),
        RenewError::TooOften => too_often(),
        RenewError::EmailMoved => email_moved(),
        RenewError::Gone => PortalProblem::signed_out(),
        RenewError::Database(error) => PortalProblem::database(error),
        error => PortalProblem::internal(error),
    }
}

fn email_moved() -> PortalProblem {
    PortalProblem::new(
        StatusCode::CONFLICT,
        "email_moved",
        "The address can't be restored",
        "Nothing was changed. The 72 hours have passed, or a different address would be restored now. Check the page again.",
    )
    .leading("Rotate the API secret", "/portal/settings/api-secret/renew")
}
