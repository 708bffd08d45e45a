//! The log as CSV (RFC 4180), in pieces that are made as the client takes them.

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;
use tokio_util::sync::CancellationToken;

use super::{Export, ExportError, Filter, LogRow, Reports, Scheduled, ScheduledExport};
use crate::storage::outage::trouble;
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;

/// The names of the columns.
const HEADER: &str = "id,app_id,app_name,oauth_credential_id,from_address,to_address,subject,plugin,status,\
                      error_message,message_id,size_bytes,sent_at,send_at,bounced\r\n";

/// What a spreadsheet takes for the beginning of a formula, also in its full width (OWASP, CSV injection).
const FORMULA: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Adds a cell and the comma in front of it. Spreadsheets of some countries part cells at semicolons or tabs, so these
/// are quoted too. What looks like a formula gets an apostrophe in front, by which a
/// spreadsheet takes it for a text.
fn cell(line: &mut String, text: &str) {
    line.push(',');
    let is_formula = text.starts_with(FORMULA);
    if !is_formula && !text.contains([',', ';', '\t', '"', '\r', '\n']) {
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

/// The line of one message.
fn line(lines: &mut String, id: &str, cells: &[&str]) {
    lines.push_str(id);
    for text in cells {
        cell(lines, text);
    }
    lines.push_str("\r\n");
}

fn logged(lines: &mut String, row: &LogRow) {
    let cells = [
        &row.app.to_string(),
        &row.app_name,
        &row.credential.to_string(),
        &row.from_address,
        &row.to_address,
        &row.subject,
        row.plugin.log_name(),
        row.status.as_str(),
        row.error_message.as_deref().unwrap_or_default(),
        row.message_id.as_deref().unwrap_or_default(),
        &row.size_bytes.to_string(),
        &iso8601(row.sent_at),
        "",
        &row.bounced.to_string(),
    ];
    line(lines, &row.id.to_string(), &cells);
}

fn scheduled(lines: &mut String, message: &Scheduled) {
    let send_at = iso8601(message.send_at);
    let cells = [
        &message.app.to_string(),
        &message.app_name,
        &message.credential.to_string(),
        &message.from_address,
        &message.to_address,
        &message.subject,
        message.plugin.log_name(),
        "scheduled",
        "",
        message.message_id.as_deref().unwrap_or_default(),
        &message.size_bytes.to_string(),
        &send_at,
        &send_at,
        "false",
    ];
    line(lines, &message.id.to_string(), &cells);
}

/// What is exported.
enum Exported {
    Log(Export),
    Scheduled(ScheduledExport),
}

impl Exported {
    /// The lines of the next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<String>, sqlx::Error> {
        let mut lines = String::new();
        let is_more = match self {
            Self::Log(export) => {
                let rows = export.next().await?;
                rows.map(|rows| rows.iter().for_each(|row| logged(&mut lines, row)))
            }
            Self::Scheduled(export) => {
                let messages = export.next().await?;
                messages.map(|messages| messages.iter().for_each(|it| scheduled(&mut lines, it)))
            }
        };
        Ok(is_more.map(|()| lines))
    }
}

/// Why an answer ends before the last row; its client sees a broken connection.
#[derive(Debug, thiserror::Error)]
pub enum CutOff {
    /// The database failed.
    #[error("the database can't be asked")]
    Database,
    /// The process ends.
    #[error("the process ends")]
    Stopping,
}

impl Reports {
    /// All rows that a filter lets through, or all scheduled messages. The first ones are read before this returns, so
    /// that what can't be read at all is an error. Cut off when `stopping` is cancelled.
    pub async fn csv(
        &self,
        subscriber: SubscriberId,
        filter: Filter,
        is_scheduled: bool,
        stopping: CancellationToken,
    ) -> Result<impl Stream<Item = Result<Bytes, CutOff>> + use<>, ExportError> {
        let mut export = if is_scheduled {
            Exported::Scheduled(self.export_scheduled(subscriber, filter)?)
        } else {
            Exported::Log(self.export(subscriber, &filter).await?)
        };
        let begin = HEADER.to_owned() + &export.next().await?.unwrap_or_default();
        Ok(try_unfold(
            (Some(begin), export),
            move |(begin, mut export)| {
                let stopping = stopping.clone();
                async move {
                    let piece = match begin {
                        Some(begin) => Some(begin),
                        None if stopping.is_cancelled() => return Err(CutOff::Stopping),
                        None => next(&mut export).await?,
                    };
                    Ok(piece.map(|piece| (Bytes::from(piece), (None, export))))
                }
            },
        ))
    }
}

async fn next(export: &mut Exported) -> Result<Option<String>, CutOff> {
    export.next().await.map_err(|error| {
        trouble!(error, error, "an export of the log was cut off");
        CutOff::Database
    })
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
