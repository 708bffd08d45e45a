//! The switches: for people by forms, for programs as JSON:
//!
//! | | |
//! |---|---|
//! | `GET /switches` | `{"effect": null, "repeat": false}` |
//! | `PUT /switches` | sets them: `{"effect": "bounce"}` ([`Setting`]) |
//! | `DELETE /switches` | switches everything off |

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::{Form, Json};
use serde::Deserialize;

use super::back;
use crate::inbox::Inbox;
use crate::switches::{Effect, Setting, Switches};

pub(super) async fn json(State(switches): State<Switches>) -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(switches.get())).into_response()
}

pub(super) async fn set(
    State(switches): State<Switches>,
    Json(setting): Json<Setting>,
) -> Json<Setting> {
    switches.set(setting);
    Json(setting)
}

pub(super) async fn off(State(switches): State<Switches>) -> StatusCode {
    switches.set(Setting::default());
    StatusCode::NO_CONTENT
}

#[derive(Debug, Deserialize)]
pub(super) struct Fields {
    /// Without one, everything is switched off.
    effect: Option<Effect>,
    /// The box is ticked.
    repeat: Option<String>,
    /// The message whose page it was sent from.
    back: Option<String>,
}

pub(super) async fn set_by_form(
    State(switches): State<Switches>,
    State(inbox): State<Inbox>,
    Form(form): Form<Fields>,
) -> Response {
    switches.set(Setting {
        effect: form.effect,
        repeat: form.effect.is_some() && form.repeat.is_some(),
    });
    back(&inbox, form.back.as_deref()).into_response()
}

/// A button.
pub(super) struct Choice {
    pub(super) effect: Effect,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
}

/// The buttons.
pub(super) const CHOICES: [Choice; 5] = [
    Choice {
        effect: Effect::Fail,
        label: "Fail",
        hint: "550 5.1.1, no such user",
    },
    Choice {
        effect: Effect::Defer,
        label: "Defer",
        hint: "451, try again later",
    },
    Choice {
        effect: Effect::Slow,
        label: "Slow",
        hint: "accepted after 2 seconds",
    },
    Choice {
        effect: Effect::Bounce,
        label: "Bounce",
        hint: "accepted, then returned as undeliverable; by SMTP",
    },
    Choice {
        effect: Effect::Reply,
        label: "Reply",
        hint: "accepted, then answered by the recipient; by SMTP",
    },
];

/// What is going to happen.
pub(super) const fn outlook(effect: Effect, repeat: bool) -> &'static str {
    match (effect, repeat) {
        (Effect::Fail, false) => "The next message will fail (550 5.1.1).",
        (Effect::Fail, true) => "Every message fails (550 5.1.1).",
        (Effect::Defer, false) => "The next message will fail temporarily (451).",
        (Effect::Defer, true) => "Every message fails temporarily (451).",
        (Effect::Slow, false) => "The next message will be accepted after 2 seconds.",
        (Effect::Slow, true) => "Every message is accepted after 2 seconds.",
        (Effect::Bounce, false) => "The next message will bounce.",
        (Effect::Bounce, true) => "Every message bounces.",
        (Effect::Reply, false) => "The next message will be replied to.",
        (Effect::Reply, true) => "Every message is replied to.",
    }
}
