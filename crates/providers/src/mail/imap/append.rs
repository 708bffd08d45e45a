//! Files a sent message in the mailbox of sent mail, for providers that keep no copy themselves.

use std::time::Duration;

use chrono::{DateTime, Days, Utc};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout_at};

use super::connection::search::Keep;
use super::connection::{Connection, ImapError, quoted};
use super::framing::NotAResponse;
use super::response::{Condition, Response};
use mailgate_types::ids::{LOG_ID_HEADER, LogId};
use mailgate_types::message::Message;

impl Connection {
    /// Whether the opened mailbox has a message with this log id that arrived about `at` or later: without the day, a
    /// server would search every message.
    pub(super) async fn has(&mut self, id: LogId, at: DateTime<Utc>) -> Result<bool, ImapError> {
        // The server's days may be another zone's.
        let since = at.checked_sub_days(Days::new(2)).unwrap_or(at);
        let since = since.format("%-d-%b-%Y");
        let criteria = format!("SINCE {since} HEADER {LOG_ID_HEADER} {id}");
        let found = self.search(&[&criteria], Keep::Newest(1)).await?;
        Ok(!found.is_empty())
    }

    /// Appends a message, as one that was read (RFC 9051 §6.3.12), within `limit`.
    pub(super) async fn append(
        &mut self,
        mailbox: &[u8],
        message: &Message,
        limit: Duration,
    ) -> Result<(), ImapError> {
        let name = quoted(mailbox).ok_or(ImapError::Unspeakable)?;
        let command = format!("APPEND {name} (\\Seen) {{{}}}", message.size());
        let end = self.deadline.min(Instant::now() + limit);
        timeout_at(end, self.append_within(&command, message))
            .await
            .map_err(|_| ImapError::TimedOut)?
    }

    async fn append_within(&mut self, command: &str, message: &Message) -> Result<(), ImapError> {
        let tag = self.begin(command.as_bytes()).await?;
        let mut message = Some(message);
        loop {
            match self.response().await? {
                Response::Continue(_) => {
                    let message = message.take().ok_or(NotAResponse)?;
                    for chunk in message.chunks() {
                        self.stream.write_all(chunk).await?;
                    }
                    self.stream.write_all(b"\r\n").await?;
                    self.stream.flush().await?;
                }
                Response::Tagged(its, status) if its == tag => {
                    return match (status.condition, message) {
                        (Condition::Ok, None) => Ok(()),
                        // The server sent no continuation request.
                        (Condition::Ok, Some(_)) => Err(NotAResponse.into()),
                        _ => Err(ImapError::Refused(status)),
                    };
                }
                Response::Tagged(..) => return Err(NotAResponse.into()),
                _ => {}
            }
        }
    }
}
