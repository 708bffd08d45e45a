//! Reads mailboxes by IMAP (RFC 9051, and RFC 3501 before it) with XOAUTH2. A connection lasts for one check, and
//! changes nothing in the mailbox.

mod connection;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod response;
mod sent;

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use tokio_rustls::TlsConnector;

use super::reader::{MailReader, NewMail, ReadError};
use super::transport::MailboxAccess;
use crate::config::{Endpoint, PluginSettings, ProviderKind, SendingSettings};

use connection::{Connection, Examined, ImapError, Keep, Limits};
use response::{Condition, Status};

/// Google's only scope for IMAP.
const GOOGLE_SCOPE: &str = "https://mail.google.com/";

/// Microsoft's scope for IMAP, without the URI of the service.
const MICROSOFT_SCOPE: &str = "IMAP.AccessAsUser.All";

/// Messages in one FETCH.
const ROUND: usize = 200;

/// Messages in one check.
const LOOK: usize = 500;

/// Commands that may each take their full timeout in one check; a check has some eight.
const SLOW_COMMANDS: u32 = 4;

/// A provider's IMAP server.
pub struct ImapReader {
    kind: ProviderKind,
    keeps_sent_mail: bool,
    server: Endpoint,
    connector: TlsConnector,
    limits: Limits,
}

impl fmt::Debug for ImapReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ImapReader")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl ImapReader {
    /// A reader of the mailboxes at `server`.
    #[must_use]
    pub fn new(
        server: &Endpoint,
        settings: &PluginSettings,
        tls: Arc<ClientConfig>,
        sending: &SendingSettings,
    ) -> Self {
        Self {
            kind: settings.kind,
            keeps_sent_mail: settings.keeps_sent_mail,
            server: server.clone(),
            connector: TlsConnector::from(tls),
            limits: Limits {
                connect: sending.connect,
                command: sending.command,
                look: sending.connect + sending.command * SLOW_COMMANDS,
            },
        }
    }

    async fn open(&self, account: &MailboxAccess) -> Result<Connection, ReadError> {
        let mut connection = Connection::open(&self.server, &self.connector, self.limits).await?;
        connection
            .authenticate(&account.address, &account.access_token)
            .await
            .map_err(log_in_refused)?;
        Ok(connection)
    }

    async fn look_among_sent(
        &self,
        account: &MailboxAccess,
        message_id: &str,
    ) -> Result<bool, ReadError> {
        let mut connection = self.open(account).await?;
        let found = match connection.sent_mailbox().await? {
            // It may be hidden (Gmail's "Show in IMAP"): finding nothing would prove nothing.
            None => {
                return Err(ReadError::Forbidden(
                    "the server shows no mailbox of sent mail".to_owned(),
                ));
            }
            Some(sent) => {
                connection.examine(&sent).await?;
                connection.has_message_id(message_id).await?
            }
        };
        connection.logout().await;
        Ok(found)
    }

    async fn look_into_inbox(
        &self,
        account: &MailboxAccess,
        cursor: Option<&str>,
        since: DateTime<Utc>,
    ) -> Result<NewMail, ReadError> {
        let mut connection = self.open(account).await?;
        let inbox = connection.examine(b"INBOX").await?;
        let (begin, uids) = unread(&mut connection, &inbox, cursor, since).await?;
        let mut messages = Vec::new();
        let mut more = uids.len() > LOOK;
        let mut reached = None;
        for round in uids[..uids.len().min(LOOK)].chunks(ROUND) {
            match connection.headers(round).await {
                Ok(read) => messages.extend(read.into_values()),
                Err(error) if reached.is_none() => return Err(error.into()),
                // What was read is kept: a slow server is read in several checks.
                Err(error) => {
                    tracing::debug!(
                        credential_id = %account.credential, %error, "the inbox was read in part"
                    );
                    more = true;
                    break;
                }
            }
            reached = Some(behind(round));
        }
        connection.logout().await;
        let uid = match reached {
            Some(uid) if more => uid,
            Some(uid) => uid.max(begin.uid),
            None => begin.uid,
        };
        Ok(NewMail {
            messages,
            cursor: Cursor { uid, ..begin }.to_string(),
            more,
        })
    }
}

impl MailReader for ImapReader {
    fn may_read(&self, scopes: &[String]) -> bool {
        match self.kind {
            ProviderKind::Google => scopes.iter().any(|scope| scope == GOOGLE_SCOPE),
            ProviderKind::Microsoft => scopes.iter().any(|scope| {
                let name = scope.rsplit('/').next().unwrap_or_default();
                name.eq_ignore_ascii_case(MICROSOFT_SCOPE)
            }),
            // The operator who configures a server knows that the requested scopes allow it.
            ProviderKind::Generic => true,
        }
    }

    fn keeps_sent_mail(&self) -> bool {
        self.keeps_sent_mail
    }

    fn find_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        message_id: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReadError>> {
        self.look_among_sent(account, message_id).boxed()
    }

    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>> {
        self.look_into_inbox(account, cursor, since).boxed()
    }
}

/// The cursor: a UID, valid as long as the inbox keeps its UIDVALIDITY (RFC 9051 §2.3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    uid_validity: u32,
    /// The first UID that has not been read.
    uid: u32,
}

impl Cursor {
    fn read(text: &str) -> Option<Self> {
        let (uid_validity, uid) = text.split_once(':')?;
        Some(Self {
            uid_validity: uid_validity.parse().ok()?,
            uid: uid.parse().ok()?,
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.uid_validity, self.uid)
    }
}

/// The UIDs to read, oldest first, and the cursor of the next check if there are none.
async fn unread(
    connection: &mut Connection,
    inbox: &Examined,
    cursor: Option<&str>,
    since: DateTime<Utc>,
) -> Result<(Cursor, Vec<u32>), ReadError> {
    let unnumbered = || ReadError::unavailable("the server doesn't number its messages");
    let uid_validity = inbox.uid_validity.ok_or_else(unnumbered)?;
    let known = cursor
        .and_then(Cursor::read)
        .filter(|cursor| cursor.uid_validity == uid_validity);
    if let Some(cursor) = known {
        let mut found = Vec::new();
        if inbox.exists > 0 {
            // If no message is that new, `*` makes it a range down to the newest message.
            let criteria = format!("UID {}:*", cursor.uid);
            // One extra tells whether there are more.
            let keep = Keep::OldestFrom(cursor.uid, LOOK + 1);
            found = connection.search(&[&criteria], keep).await?;
        }
        return Ok((cursor, found));
    }
    let mut found = Vec::new();
    if inbox.exists > 0 {
        let criteria = format!("SINCE {}", day_before(since));
        found = connection.search(&[&criteria], Keep::Newest(LOOK)).await?;
    }
    let uid = match inbox.uid_next {
        Some(uid) => uid,
        None if inbox.exists == 0 => 1,
        // Some servers leave it out.
        None => {
            let newest = connection.search(&["UID *"], Keep::Newest(1)).await?;
            behind(&newest)
        }
    };
    Ok((Cursor { uid_validity, uid }, found))
}

/// The UID after the last one of these.
fn behind(uids: &[u32]) -> u32 {
    uids.last().map_or(1, |uid| uid.saturating_add(1))
}

/// SINCE only supports days, in the server's own time zone.
fn day_before(since: DateTime<Utc>) -> String {
    since
        .checked_sub_signed(TimeDelta::days(1))
        .unwrap_or(since)
        .format("%-d-%b-%Y")
        .to_string()
}

impl From<ImapError> for ReadError {
    fn from(error: ImapError) -> Self {
        match &error {
            ImapError::Refused(status) => {
                refused(status).unwrap_or_else(|| Self::unavailable(error.to_string().trim()))
            }
            _ => Self::unavailable(error.to_string()),
        }
    }
}

/// A failed login is blamed on the token unless the server says otherwise: many give no reason.
fn log_in_refused(error: ImapError) -> ReadError {
    match &error {
        ImapError::Refused(status) if status.condition == Condition::No => refused(status)
            .unwrap_or_else(|| ReadError::TokenRefused(error.to_string().trim().to_owned())),
        _ => error.into(),
    }
}

/// The meaning of a response code (RFC 9051 §7.1, RFC 5530 §3).
fn refused(status: &Status) -> Option<ReadError> {
    let text = format!("{} {}", status.code_name(), status.text);
    match status.code_name() {
        "AUTHENTICATIONFAILED" | "EXPIRED" => Some(ReadError::TokenRefused(text)),
        "AUTHORIZATIONFAILED" | "PRIVACYREQUIRED" | "NOPERM" => Some(ReadError::Forbidden(text)),
        // Gmail sends ALERT for too many connections, and OVERQUOTA for too much traffic.
        "UNAVAILABLE" | "INUSE" | "LIMIT" | "SERVERBUG" | "CONTACTADMIN" | "ALERT"
        | "OVERQUOTA" | "THROTTLED" => Some(ReadError::unavailable(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn cursors() {
        let cursor = Cursor {
            uid_validity: 4_294_967_295,
            uid: 7,
        };
        assert_eq!(cursor.to_string(), "4294967295:7");
        assert_eq!(Cursor::read("4294967295:7"), Some(cursor));
        for text in ["", "7", ":", "1:", "1:2:3", "-1:2", "1:4294967296", "a:b"] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
        assert_eq!(behind(&[3, 9]), 10);
        assert_eq!(behind(&[]), 1);
        assert_eq!(behind(&[u32::MAX]), u32::MAX);
    }

    #[test]
    fn a_day_more_than_was_asked_for() {
        for (since, expected) in [
            ("2026-03-01T00:00:00Z", "28-Feb-2026"),
            ("2026-01-10T23:59:59Z", "9-Jan-2026"),
        ] {
            assert_eq!(day_before(since.parse().unwrap()), expected);
        }
        day_before(DateTime::<Utc>::MIN_UTC);
    }

    #[test]
    fn refusals() {
        let kind = |error: ReadError| match error {
            ReadError::TokenRefused(_) => "token",
            ReadError::Forbidden(_) => "forbidden",
            ReadError::Unavailable { .. } => "unavailable",
        };
        for (condition, code, at_log_in, later) in [
            (Condition::No, "AUTHENTICATIONFAILED", "token", "token"),
            (Condition::No, "EXPIRED", "token", "token"),
            (Condition::No, "", "token", "unavailable"),
            (Condition::No, "UNKNOWN-CTE", "token", "unavailable"),
            (Condition::No, "UNAVAILABLE", "unavailable", "unavailable"),
            (Condition::No, "INUSE", "unavailable", "unavailable"),
            (Condition::No, "LIMIT", "unavailable", "unavailable"),
            (Condition::No, "ALERT", "unavailable", "unavailable"),
            (Condition::No, "PRIVACYREQUIRED", "forbidden", "forbidden"),
            (
                Condition::No,
                "AUTHORIZATIONFAILED",
                "forbidden",
                "forbidden",
            ),
            (Condition::Bad, "", "unavailable", "unavailable"),
        ] {
            let error = || {
                ImapError::Refused(Status {
                    condition,
                    code: vec![code.to_owned()],
                    text: "x".to_owned(),
                })
            };
            assert_eq!(kind(log_in_refused(error())), at_log_in, "{code}");
            assert_eq!(kind(error().into()), later, "{code}");
        }
        let bye = ImapError::Bye(Status {
            condition: Condition::Bye,
            code: vec!["AUTHENTICATIONFAILED".to_owned()],
            text: String::new(),
        });
        assert_eq!(kind(log_in_refused(bye)), "unavailable");
    }
}
