//! The log as CSV (RFC 4180), in pieces produced as the client reads them.

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Export, ExportError, Filter, LogRow, Reports, Scheduled, ScheduledExport};
use crate::accounts::audit;
use mailgate_storage::database::outage::trouble;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;

/// The names of the columns.
const HEADER: &str = "id,app_id,app_name,oauth_credential_id,from_address,to_address,subject,plugin,status,\
                      error_message,message_id,size_bytes,sent_at,send_at,bounced\r\n";

/// Characters that begin a formula in a spreadsheet, also in their full-width forms (OWASP, CSV injection).
const FORMULA: [char; 9] = [
    '=', '+', '-', '@', '\t', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Whether some reader begins a cell or a record after this: a comma, a semicolon, a tab or a line end. A semicolon
/// reader doesn't recognize the quotes of a comma reader, since they aren't at the beginning of its cells.
fn parts_cells(letter: char) -> bool {
    matches!(letter, ',' | ';' | '\u{2028}' | '\u{2029}') || letter.is_control()
}

/// Adds a cell and the comma in front of it. Any part that a reader with commas, semicolons or tabs as separators would
/// take for a formula gets an apostrophe in front, which makes it text in a spreadsheet. Spaces and quotes before it
/// don't matter: readers drop them.
fn cell(line: &mut String, text: &str) {
    line.push(',');
    let begins_with_formula = text.trim_start().starts_with(FORMULA);
    if !begins_with_formula && !text.contains(|letter| letter == '"' || parts_cells(letter)) {
        line.push_str(text);
        return;
    }
    line.push('"');
    if text.starts_with(['\r', '\n']) {
        line.push('\'');
    }
    let mut is_start = true;
    for letter in text.chars() {
        if is_start && FORMULA.contains(&letter) {
            line.push('\'');
        }
        if letter == '"' {
            line.push('"');
        }
        line.push(letter);
        is_start = parts_cells(letter) || is_start && (letter == '"' || letter.is_whitespace());
    }
    line.push('"');
}

/// The line of a message.
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

/// The rows to export.
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

/// Why a response ends before the last row; its client sees a broken connection.
#[derive(Debug, thiserror::Error)]
pub enum CutOff {
    /// The database failed.
    #[error("database query failed")]
    Database,
    /// The process is shutting down.
    #[error("the process is shutting down")]
    Stopping,
}

impl Reports {
    /// All rows that match a filter, or all scheduled messages. The first ones are read before this returns, so that a
    /// failure to read is an error. Ends early when `stopping` is cancelled.
    pub async fn csv(
        &self,
        subscriber: SubscriberId,
        filter: Filter,
        is_scheduled: bool,
        stopping: CancellationToken,
        author: Author,
    ) -> Result<impl Stream<Item = Result<Bytes, CutOff>> + use<>, ExportError> {
        let entry = AuditEntry::of_subscriber(AuditAction::LogsExported, subscriber).with(json!({
            "from": filter.from.map(iso8601),
            "before": filter.before.map(iso8601),
            "scheduled": is_scheduled,
        }));
        let mut export = if is_scheduled {
            Exported::Scheduled(self.export_scheduled(subscriber, filter)?)
        } else {
            Exported::Log(self.export(subscriber, &filter).await?)
        };
        let begin = HEADER.to_owned() + &export.next().await?.unwrap_or_default();
        let transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        transaction.commit_change(entry).await?;
        let reports = self.clone();
        Ok(try_unfold(
            (Some(begin), export),
            move |(begin, mut export)| {
                let (stopping, reports) = (stopping.clone(), reports.clone());
                async move {
                    let piece = match begin {
                        Some(begin) => Some(begin),
                        None if stopping.is_cancelled() => return Err(CutOff::Stopping),
                        None => {
                            reports.still_may(author).await?;
                            next(&mut export).await?
                        }
                    };
                    Ok(piece.map(|piece| (Bytes::from(piece), (None, export))))
                }
            },
        ))
    }
}

impl Reports {
    /// Nothing more is exported once the author's credential has ended.
    async fn still_may(&self, author: Author) -> Result<(), CutOff> {
        let begun = audit::begin(&self.pool, author, self.clock.now()).await;
        let begun = begun.map_err(|error| cut_off(&error))?;
        begun.rollback().await.map_err(|error| cut_off(&error))
    }
}

fn cut_off(error: &sqlx::Error) -> CutOff {
    trouble!(error, error, "an export of the log was cut off");
    CutOff::Database
}

async fn next(export: &mut Exported) -> Result<Option<String>, CutOff> {
    export.next().await.map_err(|error| cut_off(&error))
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
            (" =1", ",\" '=1\""),
            ("a;=1", ",\"a;'=1\""),
            ("a;b=1", ",\"a;b=1\""),
            ("a\t=1", ",\"a\t'=1\""),
            ("a, -5 %", ",\"a, '-5 %\""),
            ("a;\"=1", ",\"a;\"\"'=1\""),
            ("a\r\n=1", ",\"a\r\n'=1\""),
            ("\r\n=1", ",\"'\r\n'=1\""),
            ("a;\u{a0}\u{ff1d}1", ",\"a;\u{a0}'\u{ff1d}1\""),
        ] {
            assert_eq!(written(text), expected, "{text:?}");
        }
    }

    /// All cells that a program reads with this `delimiter`. Like most, it treats a quote at the beginning of a cell as
    /// the start of a quoted part and any other as a character, and appends the text after a quoted part to the cell.
    fn read(text: &str, delimiter: char) -> Vec<Vec<String>> {
        let mut records = vec![vec![String::new()]];
        let (mut is_start, mut is_quoted) = (true, false);
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let was_start = std::mem::take(&mut is_start);
            let mut taken = None;
            if is_quoted && letter == '"' {
                is_quoted = letters.next_if_eq(&'"').is_some();
                taken = is_quoted.then_some('"');
            } else if was_start && letter == '"' {
                is_quoted = true;
            } else if !is_quoted && letter == delimiter {
                if let Some(record) = records.last_mut() {
                    record.push(String::new());
                }
                is_start = true;
            } else if !is_quoted && matches!(letter, '\r' | '\n') {
                records.push(vec![String::new()]);
                is_start = true;
            } else {
                taken = Some(letter);
            }
            if let Some(cell) = records.last_mut().and_then(|record| record.last_mut()) {
                cell.extend(taken);
            }
        }
        records.retain(|record| record != &[""]);
        records
    }

    /// Without the apostrophes that `cell` may have added.
    fn bare(text: &str) -> String {
        let mut bare = String::new();
        for letter in text.chars() {
            let guards = FORMULA.contains(&letter) || bare == "'" && matches!(letter, '\r' | '\n');
            if guards && bare.ends_with('\'') {
                bare.pop();
            }
            bare.push(letter);
        }
        bare
    }

    proptest! {
        #[test]
        fn no_reader_finds_a_formula(
            texts in proptest::collection::vec("[=+@\"',;\r\n\t\u{ff1d}a\u{a0} -]{0,12}", 3),
        ) {
            let mut lines = String::new();
            // No line ends with a string.
            let texts: Vec<&str> = texts.iter().map(String::as_str).chain(["false"]).collect();
            line(&mut lines, "id", &texts);
            line(&mut lines, "id", &texts);
            for delimiter in [',', ';', '\t'] {
                for found in read(&lines, delimiter).iter().flatten() {
                    let shown = found.trim_start_matches(|it: char| it == '"' || it.is_whitespace());
                    prop_assert!(!shown.starts_with(FORMULA), "{delimiter:?} {found:?} of {lines:?}");
                    prop_assert!(!found.starts_with(['\t', '\r', '\n']), "{delimiter:?} {found:?} of {lines:?}");
                }
            }
            let records = read(&lines, ',');
            prop_assert_eq!(records.len(), 2);
            for record in records {
                prop_assert_eq!(&record[0], "id");
                let found: Vec<String> = record[1..].iter().map(|text| bare(text)).collect();
                let sent: Vec<String> = texts.iter().map(|text| bare(text)).collect();
                prop_assert_eq!(found, sent);
            }
        }
    }
}
