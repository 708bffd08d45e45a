//! A page that shows every component with invented content, for work on the portal's look. Only `mailgate dev` serves it.
//! It reads nothing of a subscriber, so it needs no session.

mod examples;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};

use super::PortalState;
use super::page::page;
use crate::messages::{Happening, Row};
use crate::overview::attention::Item;
use crate::overview::plots::Plot;
use crate::overview::tiles::Tile;
use crate::page::frame::Frame;
use crate::page::said::Said;
use crate::page::words::{Moment, Status};
use crate::page::wrong::Wrong;
use crate::webhooks::week::Week;
use mailgate_domain::explanation::{Concern, Explanation};

#[derive(Template)]
#[template(path = "components.html")]
struct ComponentsPage {
    frame: Frame,
    badges: Vec<Status>,
    said: [Said; 3],
    tiles: [Tile; 4],
    attention: [Item; 3],
    plot: Plot,
    week: Week,
    rows: Vec<Row>,
    happenings: [Happening; 5],
    explanation: Explanation,
    /// A key that begins like none of ours.
    key: &'static str,
    /// The same, masked.
    masked: &'static str,
    used_at: Option<Moment>,
    never: Option<Moment>,
    wrong: Wrong,
    right: Wrong,
    previous: Option<&'static str>,
    next: Option<&'static str>,
    now: Moment,
    chosen: &'static str,
}

impl ComponentsPage {
    fn new(frame: Frame, now: DateTime<Utc>) -> Self {
        Self {
            frame,
            badges: examples::badges(),
            said: examples::said(),
            tiles: examples::tiles(),
            attention: examples::attention(now),
            plot: examples::plot(),
            week: examples::week(),
            rows: examples::rows(now),
            happenings: examples::happenings(now),
            explanation: Explanation {
                meaning: "The recipient's mailbox is full.".to_owned(),
                action: "The gateway tries again for two days.".to_owned(),
                concerns: Concern::Recipient,
            },
            key: "example-4f9d1c7b2a60",
            masked: "",
            used_at: Some(Moment::new(now)),
            never: None,
            wrong: examples::wrong(),
            right: Wrong::default(),
            previous: Some("page=previous"),
            next: Some("page=next"),
            now: Moment::new(now),
            chosen: "one",
        }
    }
}

/// Shows them.
pub(super) async fn show(State(state): State<PortalState>) -> Response {
    let frame = Frame::example(&state, "Components");
    page(
        StatusCode::OK,
        &ComponentsPage::new(frame, state.clock.now()),
    )
}
