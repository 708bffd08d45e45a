//! Connect sessions: links for one user and one mailbox, which apps request.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use super::link::LOGIN_HINT_LENGTH;
use crate::AppState;
use crate::http::access::MailboxesWrite;
use crate::http::authority::OwnedApp;
use crate::http::field::Field;
use crate::http::json_body::JsonBody;
use crate::http::problem::{FieldError, Problem, take};
use mailgate_domain::accounts::App;
use mailgate_domain::mailboxes::{
    CreateSessionError, LONGEST_SESSION, SESSION_LIFE, SessionRequest, USER_ID_LENGTH,
};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::moment::iso8601;
use mailgate_types::plugin::Plugin;
use mailgate_types::web_address::check_web_address;

/// The parameters of a connect session.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct CreateConnectSessionRequest {
    /// Your own ID for the end user, required when the app is multiuser. It is passed back to your `callback_url`,
    /// and `POST /send` accepts it.
    #[schema(value_type = Option<String>, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "customer-7")]
    user_id: Field<String>,
    /// The provider. If omitted, the user chooses.
    #[schema(value_type = Option<Plugin>)]
    plugin: Field<String>,
    /// The account that the provider's page suggests to the user.
    #[schema(value_type = Option<String>, max_length = 320, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    login_hint: Field<String>,
    /// The only account that is accepted. A user who signs in with another account sees which one to use.
    #[schema(value_type = Option<String>, max_length = 254, format = "idn-email", example = "ada@example.com")]
    expected_email: Field<String>,
    /// Where the user goes afterwards. It must have the same origin (scheme, host and port) as the app's
    /// `callback_url`.
    #[schema(value_type = Option<String>, max_length = 2048, pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$")]
    callback_url: Field<String>,
    /// How long the link is valid, in seconds; one day by default.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 604_800, default = 86_400)]
    expires_in: Field<u64>,
}

/// A connect session.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConnectSessionShown {
    /// The link for your user, good for one mailbox. Open it in the user's browser.
    #[schema(example = "https://gateway.example/connect/pk_…?session=…")]
    url: String,
    /// When the link expires, ISO 8601, UTC.
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Creates a link with which one of your users connects one mailbox. Unlike a link that you build yourself, it can't
/// be tampered with, can require a particular account, and can replace the user's current mailbox.
/// Renewing the pushable key invalidates it.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/connect-sessions",
    operation_id = "create_connect_session",
    tag = "Apps",
    security(("api_secret" = ["mailboxes:write"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    request_body = CreateConnectSessionRequest,
    responses(
        (status = 201, body = ConnectSessionShown),
        (status = 402, description = "`subscriber_suspended`: the operator has suspended the account"),
    )
)]
pub(crate) async fn create(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MailboxesWrite>,
    JsonBody(request): JsonBody<CreateConnectSessionRequest>,
) -> Result<(StatusCode, Json<ConnectSessionShown>), Problem> {
    let request = request.validate(&app, state.allow_private)?;
    let session = state
        .mailboxes
        .create_session(app.id, &app.pushable_key, request, caller.author)
        .await
        .map_err(|error| match error {
            error @ CreateSessionError::Suspended(_) => Problem::suspended(format!("{error}.")),
            CreateSessionError::Database(error) => Problem::database(&error),
            error @ CreateSessionError::Seal(_) => Problem::internal(&error),
        })?;
    let answer = ConnectSessionShown {
        url: format!("{}{}", state.base_url, session.link),
        expires_at: iso8601(session.expires_at),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

impl CreateConnectSessionRequest {
    fn validate(self, app: &App, allow_private: bool) -> Result<SessionRequest, Problem> {
        let mut errors = Vec::new();
        let user_id = text("user_id", self.user_id, USER_ID_LENGTH, &mut errors);
        if app.multiuser && user_id.is_none() && errors.is_empty() {
            let detail = "is required: the app is multiuser";
            errors.push(FieldError::new("user_id", detail));
        }
        let plugin = self.plugin.optional("plugin", &mut errors);
        let plugin = take(&mut errors, "plugin", plugin, str::parse);
        let hint = self.login_hint;
        let login_hint = text("login_hint", hint, LOGIN_HINT_LENGTH, &mut errors);
        let expected = self.expected_email.optional("expected_email", &mut errors);
        let expected = take(&mut errors, "expected_email", expected, |text| {
            EmailAddress::parse(text).map_err(|_| "must be one email address")
        });
        let callback_url = self.callback_url.optional("callback_url", &mut errors);
        let callback_url = take(&mut errors, "callback_url", callback_url, |text| {
            check_web_address(text, allow_private).map_err(|error| error.to_string())?;
            is_of_host(text, &app.callback_url)
                .then(|| text.to_owned())
                .ok_or_else(|| "must have the same origin as the app's own callback_url".to_owned())
        });
        let seconds = self.expires_in.optional("expires_in", &mut errors);
        let life = seconds.map_or(Some(SESSION_LIFE), |seconds| {
            let life = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
            life.filter(|life| (TimeDelta::seconds(1)..=LONGEST_SESSION).contains(life))
        });
        if life.is_none() {
            let detail = "must be a whole number from 1 to 604800";
            errors.push(FieldError::new("expires_in", detail));
        }
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(SessionRequest {
            user_id,
            plugin,
            login_hint,
            expected_email: expected.map(|email| email.as_str().to_owned()),
            callback_url,
            life: life.unwrap_or(SESSION_LIFE),
        })
    }
}

/// A string of at most `longest` characters, without control characters; an empty one counts as missing.
fn text(
    field: &'static str,
    given: Field<String>,
    longest: usize,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    let text = given.optional(field, errors);
    let text = text.filter(|text| !text.is_empty());
    take(errors, field, text, |text| {
        if text.chars().count() > longest {
            Err(format!("must have at most {longest} characters"))
        } else if text.contains(char::is_control) {
            Err("must not contain control characters".to_owned())
        } else {
            Ok(text.to_owned())
        }
    })
}

/// Whether both URLs have the same origin.
fn is_of_host(address: &str, callback_url: &str) -> bool {
    match (Url::parse(address), Url::parse(callback_url)) {
        (Ok(address), Ok(own)) => address.origin() == own.origin(),
        _ => false,
    }
}
