//! Finds the messages of a search, and what an address in the search box means.

use super::query::{Meaning, MessagesQuery, Wanted, WrongField};
use crate::PortalState;
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::{self, Moment, Status, logged, number};
use mailgate_domain::reports::{LogRow, Position, Scheduled};
use mailgate_types::ids::LogId;

/// Rows per page.
const ROWS: usize = 25;

/// A message in the table.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) status: Status,
    pub(crate) to: String,
    pub(crate) from: String,
    pub(crate) subject: String,
    pub(crate) app: String,
    pub(crate) at: Moment,
}

impl Row {
    pub(crate) fn path(&self) -> String {
        format!("/portal/messages/{}", self.id)
    }

    pub(crate) fn logged(row: LogRow) -> Self {
        Self {
            id: row.id.to_string(),
            status: logged(&row),
            to: row.to_address,
            from: row.from_address,
            subject: row.subject,
            app: row.app_name,
            at: Moment::new(row.sent_at),
        }
    }

    fn scheduled(message: Scheduled) -> Self {
        Self {
            id: message.id.to_string(),
            status: words::scheduled(),
            to: message.to_address,
            from: message.from_address,
            subject: message.subject,
            app: message.app_name,
            at: Moment::new(message.send_at),
        }
    }
}

/// A page of the result.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) rows: Vec<Row>,
    /// `None` for a search.
    pub(crate) total: Option<String>,
    /// The query of the next page.
    pub(crate) next: Option<String>,
    /// How far back the search got before its time ran out.
    pub(crate) searched_until: Option<Moment>,
}

/// The result of a search.
pub(crate) enum Answer {
    /// This message was meant.
    Message(LogId),
    /// A page, and the search without guesses.
    Page(Box<MessagesQuery>, Found),
    /// The fields are wrong.
    Wrong(Vec<WrongField>),
}

/// Finds what is asked for. An address is looked for as a recipient, then as a Message-ID, then as a mailbox.
pub(crate) async fn find(
    state: &PortalState,
    session: &Session,
    asked: &MessagesQuery,
) -> Result<Answer, PortalProblem> {
    let candidates = match asked.read() {
        Meaning::Message(id) => {
            let found = state.reports.log(session.id(), id).await?;
            let none = MessagesQuery::of_message(id);
            return Ok(match found {
                Some(_) => Answer::Message(id),
                None => Answer::Page(Box::new(none), Found::default()),
            });
        }
        Meaning::Plain(query) => vec![*query],
        Meaning::Address(queries) => (*queries).into(),
    };
    let mut first = None;
    for query in candidates {
        let wanted = match query.validate(session.id(), &state.seal_keys) {
            Ok(wanted) => wanted,
            // A Message-ID may be no address.
            Err(_) if first.is_some() => continue,
            Err(wrong) => {
                first.get_or_insert(Answer::Wrong(wrong));
                continue;
            }
        };
        let found = page(state, session, &query, wanted).await?;
        let is_found = !found.rows.is_empty() || found.searched_until.is_some();
        let answer = Answer::Page(Box::new(query), found);
        if is_found {
            return Ok(answer);
        }
        first = match first {
            None | Some(Answer::Wrong(_)) => Some(answer),
            first => first,
        };
    }
    Ok(first.unwrap_or_else(|| Answer::Page(Box::default(), Found::default())))
}

/// The mailbox of a `from:` becomes a filter; `false`: there is no such mailbox.
pub(crate) async fn with_mailbox(
    state: &PortalState,
    session: &Session,
    query: &MessagesQuery,
    wanted: &mut Wanted,
) -> Result<bool, PortalProblem> {
    let Some(address) = &wanted.from else {
        return Ok(true);
    };
    let app = Some(query.app.trim()).filter(|app| !app.is_empty());
    let found = state.mailboxes.by_address(session.id(), app, address);
    let found = found.await?;
    let chosen = wanted.filter.search.credential;
    wanted.filter.search.credential = chosen.or(found);
    Ok(found.is_some() && wanted.filter.search.credential == found)
}

async fn page(
    state: &PortalState,
    session: &Session,
    query: &MessagesQuery,
    mut wanted: Wanted,
) -> Result<Found, PortalProblem> {
    if !with_mailbox(state, session, query, &mut wanted).await? {
        return Ok(Found::default());
    }
    let (reports, subscriber) = (&state.reports, session.id());
    let next = |next: Option<Position>| {
        let query = next.map(|next| query.at(subscriber, &state.seal_keys, next));
        query
            .transpose()
            .map_err(|error| PortalProblem::internal(&error))
    };
    if wanted.is_scheduled {
        let page = reports.scheduled(subscriber, &wanted.filter, ROWS, wanted.start);
        let page = page.await?;
        return Ok(Found {
            rows: page.messages.into_iter().map(Row::scheduled).collect(),
            total: page.total.map(number),
            next: next(page.next)?,
            searched_until: None,
        });
    }
    let page = reports
        .logs(subscriber, &wanted.filter, ROWS, wanted.start)
        .await?;
    Ok(Found {
        rows: page.logs.into_iter().map(Row::logged).collect(),
        total: page.total.map(number),
        next: next(page.next)?,
        searched_until: page.searched_until.map(Moment::new),
    })
}
