//! How far the deletion of an app has come: its log goes in batches after everything else.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::PortalState;
use crate::page::fields::Asked;
use crate::page::frame::{Frame, Section, query};
use crate::page::page;
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::number;
use mailgate_domain::mailboxes::Deletion;
use mailgate_types::ids::AppId;

/// The page's query.
#[derive(Default, Deserialize)]
pub(crate) struct Begun {
    /// How many messages there were at first.
    #[serde(default)]
    of: String,
}

/// The page.
#[derive(Template)]
#[template(path = "deletion_progress.html")]
struct DeletionPage {
    frame: Frame,
    /// Its own path and query.
    here: String,
    is_running: bool,
    name: String,
    /// `30 messages`
    left: String,
    /// The bar's value and its end, if it is known.
    bar: Option<(i64, i64)>,
}

/// The page's path, with its query.
pub(super) fn path(app: AppId, of: &str) -> String {
    format!("/portal/deleted-apps/{app}?{}", query(&[("of", of)]))
}

/// The number of messages that are left, in words.
fn messages(left: i64) -> String {
    match left {
        1 => "1 message".to_owned(),
        Deletion::MOST.. => format!("{} or more messages", number(left)),
        left => format!("{} messages", number(left)),
    }
}

/// The bar's value and its end. What is counted no further has none.
fn bar(of: &str, left: i64) -> Option<(i64, i64)> {
    let of: i64 = of.parse().ok()?;
    (left <= of && of < Deletion::MOST).then(|| (of - left, of))
}

/// Shows the page.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Asked(begun): Asked<Begun>,
) -> Result<Response, PortalProblem> {
    let app = AppId(id.parse().map_err(|_| PortalProblem::not_found())?);
    let deletion = state.mailboxes.deletion(session.id(), app).await?;
    let deletion = deletion.ok_or_else(PortalProblem::not_found)?;
    let (section, title) = (Section::Apps, "App deletion");
    let body = DeletionPage {
        frame: Frame::load(&state, &session.subscriber, section, title, None).await,
        here: path(app, &begun.of),
        is_running: deletion.left > 0,
        name: deletion.name,
        left: messages(deletion.left),
        bar: bar(&begun.of, deletion.left),
    };
    Ok(page(StatusCode::OK, &body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_in_words_and_as_a_bar() {
        for (of, left, words, expected) in [
            ("3000", 3_000, "3\u{202f}000 messages", Some((0, 3_000))),
            ("3000", 1, "1 message", Some((2_999, 3_000))),
            ("3000", 3_001, "3\u{202f}001 messages", None),
            ("10000", 9_000, "9\u{202f}000 messages", None),
            ("", 10_000, "10\u{202f}000 or more messages", None),
            ("-1", 5, "5 messages", None),
            ("-9223372036854775808", 5, "5 messages", None),
            ("9223372036854775807", 5, "5 messages", None),
        ] {
            assert_eq!(messages(left), words);
            assert_eq!(bar(of, left), expected, "{of} {left}");
        }
    }
}
