//! The log as CSV (RFC 4180), in pieces that are made as the client takes them.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::try_unfold;

use super::AppState;
use super::log_query::Wanted;
use super::log_views::LogItem;
use super::problem::Problem;
use crate::reports::{Export, ExportError, NoTurn, ScheduledExport};
use crate::storage::outage::trouble;
use mailgate_types::ids::SubscriberId;

/// The names of the columns.
const HEADER: &str = "id,app_id,app_name,oauth_credential_id,from_address,to_address,subject,plugin,status,\
                      error_message,message_id,size_bytes,sent_at,send_at,bounced\r\n";

/// What a spreadsheet takes for the beginning of a formula, also in its full width (OWASP, CSV injection).
const FORMULA: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Adds a cell and the comma in front of it. What looks like a formula gets an apostrophe in front, by which a
/// spreadsheet takes it for a text.
fn cell(line: &mut String, text: &str) {
    line.push(',');
    let is_formula = text.starts_with(FORMULA);
    if !is_formula && !text.contains([',', '"', '\r', '\n']) {
        line.push_str(text);
        return;
    }
    line.push('"');
    if is_formula {
        line.push('\'');
    }
    for part in text.split_inclusive('"') {
        line.push_str(part);
        if part.ends_with('"') {
            line.push('"');
        }
    }
    line.push('"');
}

fn lines(items: impl Iterator<Item = LogItem>) -> String {
    let mut lines = String::new();
    for item in items {
        lines.push_str(&item.id);
        for text in [
            &item.app_id,
            &item.app_name,
            &item.oauth_credential_id,
            &item.from_address,
            &item.to_address,
            &item.subject,
            item.plugin,
            item.status,
            item.error_message.as_deref().unwrap_or_default(),
            item.message_id.as_deref().unwrap_or_default(),
            &item.size_bytes.to_string(),
            &item.sent_at,
            item.send_at.as_deref().unwrap_or_default(),
            &item.bounced.to_string(),
        ] {
            cell(&mut lines, text);
        }
        lines.push_str("\r\n");
    }
    lines
}

/// What is exported.
enum Exported {
    Log(Export),
    Scheduled(ScheduledExport),
}

impl Exported {
    /// The lines of the next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<String>, sqlx::Error> {
        Ok(match self {
            Self::Log(export) => {
                let rows = export.next().await?;
                rows.map(|rows| lines(rows.into_iter().map(LogItem::new)))
            }
            Self::Scheduled(export) => {
                let messages = export.next().await?;
                messages.map(|messages| lines(messages.into_iter().map(LogItem::scheduled)))
            }
        })
    }
}

/// Why an answer ends before the last row; its client sees a broken connection.
#[derive(Debug, thiserror::Error)]
enum CutOff {
    #[error("the database can't be asked")]
    Database,
    #[error("the process ends")]
    Stopping,
}

/// All rows that a filter lets through. The first ones are read before the answer begins, so that what can't be read
/// at all is answered by a problem.
pub(super) async fn answer(
    state: AppState,
    subscriber: SubscriberId,
    wanted: Wanted,
) -> Result<Response, Problem> {
    let (reports, filter) = (&state.reports, wanted.filter);
    let export = if wanted.is_scheduled {
        let export = reports.export_scheduled(subscriber, filter);
        export.map(Exported::Scheduled)
    } else {
        reports.export(subscriber, &filter).await.map(Exported::Log)
    };
    let mut export = export.map_err(|error| refused(&error))?;
    let first = export.next().await;
    let first = first.map_err(|error| Problem::database(&error))?;
    let begin = HEADER.to_owned() + &first.unwrap_or_default();
    let now = state.clock.now();
    let pieces = try_unfold((Some(begin), export), move |(begin, mut export)| {
        let stopping = state.stopping.clone();
        async move {
            let piece = match begin {
                Some(begin) => Some(begin),
                None if stopping.is_cancelled() => return Err(CutOff::Stopping),
                None => next(&mut export).await?,
            };
            Ok::<_, CutOff>(piece.map(|piece| (Bytes::from(piece), (None, export))))
        }
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    let name = format!(
        "attachment; filename=\"logs-{}.csv\"",
        now.format("%Y%m%dT%H%M%SZ")
    );
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

async fn next(export: &mut Exported) -> Result<Option<String>, CutOff> {
    export.next().await.map_err(|error| {
        trouble!(error, error, "an export of the log was cut off");
        CutOff::Database
    })
}

fn refused(error: &ExportError) -> Problem {
    match error {
        ExportError::NoTurn(NoTurn::OfSubscriber) => Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "export_in_progress",
            "You are exporting the log already. Take that answer to its end, or end it.",
        ),
        ExportError::NoTurn(NoTurn::InAll) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "Too many logs are being exported at the moment; try again shortly.",
        ),
        ExportError::Database(error) => Problem::database(error),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut line = String::new();
        cell(&mut line, text);
        line
    }

    #[test]
    fn cells() {
        for (text, expected) in [
            ("", ","),
            ("plain text", ",plain text"),
            ("a,b", ",\"a,b\""),
            ("\"a\"", ",\"\"\"a\"\"\""),
            ("a\r\nb", ",\"a\r\nb\""),
            ("=1+1", ",\"'=1+1\""),
            ("+tag@example.com", ",\"'+tag@example.com\""),
            ("-1", ",\"'-1\""),
            ("@SUM(A1)", ",\"'@SUM(A1)\""),
            ("\tx", ",\"'\tx\""),
            ("\rx", ",\"'\rx\""),
            ("\u{ff1d}1", ",\"'\u{ff1d}1\""),
            ("=HYPERLINK(\"x\")", ",\"'=HYPERLINK(\"\"x\"\")\""),
            ("a=1", ",a=1"),
        ] {
            assert_eq!(written(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_one_cell_and_no_formula(text in "(?s)[=+@\"',\r\n\t\u{ff1d}a -]{0,20}") {
            let written = written(&text);
            let cell = &written[1..];
            let inside = cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"'));
            let read = inside.map_or(cell.to_owned(), |inside| inside.replace("\"\"", "\""));
            if let Some(inside) = inside {
                prop_assert!(!inside.replace("\"\"", "").contains('"'));
            } else {
                prop_assert!(!cell.contains(['"', ',', '\r', '\n']));
            }
            prop_assert!(!read.starts_with(FORMULA));
            prop_assert!(read == text || read.strip_prefix('\'') == Some(&*text));
        }
    }
}
