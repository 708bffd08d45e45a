//! Errors as pages.

use std::any::Any;
use std::borrow::Cow;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};

use super::frame::Frame;
use crate::page::page;
use mailgate_domain::accounts::{ShowError, credential_has_ended};
use mailgate_domain::mailboxes::CreateSessionError;
use mailgate_server::failure::Failure;

/// `Retry-After` in seconds when the database is unavailable.
const RETRY_SECONDS: u16 = 5;

/// A failed request. The layer that knows the request's ID renders it.
#[derive(Debug, Clone)]
pub(crate) struct PortalProblem {
    status: StatusCode,
    /// The code, for the log.
    code: &'static str,
    title: &'static str,
    /// What to do.
    text: Box<str>,
    /// The next step: the link text, and the path.
    way: (&'static str, Cow<'static, str>),
    /// `Retry-After` in seconds.
    retry_after: Option<u16>,
    /// Only for the log.
    cause: Option<Box<str>>,
}

/// The page.
#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: Frame,
    problem: &'a PortalProblem,
    request_id: &'a str,
}

impl PortalProblem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        text: impl Into<Box<str>>,
    ) -> Self {
        Self {
            status,
            code,
            title,
            text: text.into(),
            way: ("Go to the overview", Cow::Borrowed("/portal")),
            retry_after: None,
            cause: None,
        }
    }

    /// With another next step.
    pub(crate) fn leading(self, words: &'static str, path: impl Into<Cow<'static, str>>) -> Self {
        Self {
            way: (words, path.into()),
            ..self
        }
    }

    fn because(self, cause: String) -> Self {
        Self {
            cause: Some(cause.into()),
            ..self
        }
    }

    /// 503; the database error goes to the log. If the session has ended meanwhile, the page says so.
    pub(crate) fn database(error: &sqlx::Error) -> Self {
        if credential_has_ended(error) {
            return Self::signed_out();
        }
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "Please try again shortly",
            "The gateway can't reach its database at the moment. Nothing is lost: wait a minute, and reload this page.",
        )
        .because(format!("database query failed: {error}"))
    }

    /// 500; the cause goes to the log.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        Self::slip().because(error.to_string())
    }

    fn slip() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something went wrong",
            "Something went wrong on our side. Try again. If the problem persists, ask for help and quote this ID.",
        )
    }

    /// 402: the operator has suspended the account.
    pub(crate) fn suspended(error: &dyn std::error::Error) -> Self {
        Self::new(
            StatusCode::PAYMENT_REQUIRED,
            "subscriber_suspended",
            "Your account is suspended",
            format!("{error}."),
        )
    }

    /// 504: the outcome is unknown.
    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout",
            "This is taking too long",
            "The gateway has stopped waiting. If you were changing something, check whether it was changed before you try again.",
        )
    }

    /// 429: the subscriber's limit, which its API calls share.
    pub(crate) fn too_many(wait: Duration) -> Self {
        let seconds = u16::try_from(wait.as_secs() + 1).unwrap_or(u16::MAX);
        Self {
            retry_after: Some(seconds),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limited",
                "Too many requests",
                "Nothing was changed. Wait a few seconds and try again.",
            )
        }
    }

    /// 404: it doesn't exist, or belongs to another subscriber.
    pub(crate) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "Page not found",
            "It may have been deleted, or the link is incomplete.",
        )
    }

    /// 403: another site's page sent this.
    pub(crate) fn foreign() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "cross_site_request",
            "This was sent from another site",
            "Nothing was changed. If you meant to do this, open the portal and do it there.",
        )
    }

    /// 401: the session had ended when something was sent.
    pub(crate) fn signed_out() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "signed_out",
            "You are signed out",
            "Nothing was changed. Sign in and try again.",
        )
        .leading("Sign in", "/portal/sign-in")
    }

    /// 400: the body isn't a valid form.
    pub(crate) fn unreadable() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_form",
            "The form can't be read",
            "Nothing was changed. Go back, load the page again, and send it once more.",
        )
    }

    /// 400: the address isn't valid.
    pub(crate) fn unreadable_address() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_address",
            "This address can't be read",
            "It is incomplete or was changed. Open the page through its link again.",
        )
    }

    /// 413: no form of ours is that large.
    pub(crate) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "form_too_large",
            "The form is too large",
            "Nothing was changed. Go back, enter less, and send it again.",
        )
    }

    /// Whether the frame isn't loaded for it: there may be no session or no database, or the caller asks too much.
    pub(crate) fn is_outside(&self) -> bool {
        self.status.is_server_error()
            || matches!(
                self.status,
                StatusCode::UNAUTHORIZED
                    | StatusCode::FORBIDDEN
                    | StatusCode::PAYLOAD_TOO_LARGE
                    | StatusCode::TOO_MANY_REQUESTS
            )
    }

    /// The title of its page.
    pub(crate) fn title(&self) -> &'static str {
        self.title
    }

    pub(crate) fn render(self, frame: Frame, request_id: &str) -> Response {
        let body = ProblemPage {
            frame,
            problem: &self,
            request_id,
        };
        let mut response = page(self.status, &body);
        let seconds = match (self.retry_after, self.status) {
            (None, StatusCode::SERVICE_UNAVAILABLE) => Some(RETRY_SECONDS),
            (seconds, _) => seconds,
        };
        if let Some(seconds) = seconds {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(Failure {
            code: self.code.to_owned(),
            fields: String::new(),
            cause: self.cause.map(String::from),
        });
        response
    }
}

impl From<sqlx::Error> for PortalProblem {
    fn from(error: sqlx::Error) -> Self {
        Self::database(&error)
    }
}

impl From<CreateSessionError> for PortalProblem {
    fn from(error: CreateSessionError) -> Self {
        match error {
            CreateSessionError::Database(error) => Self::database(&error),
            error @ CreateSessionError::Suspended(_) => Self::suspended(&error),
            error @ CreateSessionError::Seal(_) => Self::internal(&error),
        }
    }
}

impl From<ShowError> for PortalProblem {
    fn from(error: ShowError) -> Self {
        match error {
            ShowError::Database(error) => Self::database(&error),
            error => Self::internal(&error),
        }
    }
}

impl IntoResponse for PortalProblem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A panic must not leave anyone without a page. The hook logs the panic itself.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    PortalProblem::slip().into_response()
}

/// A path that doesn't support this method.
pub(crate) async fn wrong_method() -> PortalProblem {
    PortalProblem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "This address can't be used this way",
        "Nothing was changed. It belongs to a button of a page: open the page, and use it there.",
    )
}

/// Any other path.
pub(crate) async fn nothing_here() -> PortalProblem {
    PortalProblem::not_found()
}
