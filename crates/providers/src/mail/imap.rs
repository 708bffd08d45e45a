//! Reads mailboxes by IMAP (RFC 9051, and RFC 3501 before it) with XOAUTH2. A connection lasts for one check, and
//! changes nothing in the mailbox, except that it files a sent message if the provider keeps no copy.

mod append;
mod connection;
mod cursor;
mod folder;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod response;
mod special_use;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::reader::{self, Filed, MailReader, NewMail, ReadError};
use super::received::{BOUNCES, BOUNCES_IN_JUNK};
use super::sent_copy::{Found, Sought};
use super::transport::MailboxAccess;
use mailgate_settings::{Endpoint, PluginSettings, ProviderKind, SendingSettings};
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;

use connection::{Connection, ImapError, Limits};
use cursor::{Cursor, Place};
use folder::FolderError;
use response::Status;
use special_use::{JUNK, SENT};

/// Google's only scope for IMAP.
const GOOGLE_SCOPE: &str = "https://mail.google.com/";

/// Microsoft's scope for IMAP, without the URI of the service.
const MICROSOFT_SCOPE: &str = "IMAP.AccessAsUser.All";

/// Commands that may each take their full timeout in one check; a check has some twelve, and one for each bounce.
const SLOW_COMMANDS: u32 = 4;

/// A provider's IMAP server.
pub struct ImapReader {
    kind: ProviderKind,
    keeps_sent_mail: bool,
    append_sent_mail: bool,
    server: Endpoint,
    connector: TlsConnector,
    limits: Limits,
    /// The timeout for filing a message.
    data: Duration,
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
            append_sent_mail: settings.append_sent_mail,
            server: server.clone(),
            connector: TlsConnector::from(tls),
            limits: Limits {
                connect: sending.connect,
                command: sending.command,
                look: (sending.connect + sending.command * SLOW_COMMANDS).min(reader::LONGEST),
            },
            data: sending.data,
        }
    }

    async fn open(&self, account: &MailboxAccess) -> Result<Connection, ReadError> {
        self.open_within(account, self.limits).await
    }

    async fn open_within(
        &self,
        account: &MailboxAccess,
        limits: Limits,
    ) -> Result<Connection, ReadError> {
        let mut connection = Connection::open(&self.server, &self.connector, limits).await?;
        connection
            .authenticate(&account.address, &account.access_token)
            .await
            .map_err(log_in_refused)?;
        Ok(connection)
    }

    async fn look_among_sent(
        &self,
        account: &MailboxAccess,
        sought: Sought<'_>,
    ) -> Result<Found, ReadError> {
        let mut connection = self.open(account).await?;
        examine_sent(&mut connection).await?;
        let found = connection.find(sought).await?;
        connection.logout().await;
        Ok(found)
    }

    async fn append_unless_there(
        &self,
        account: &MailboxAccess,
        id: LogId,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Result<Filed, ReadError> {
        let limits = Limits {
            look: self.limits.look + self.data,
            ..self.limits
        };
        let mut connection = self.open_within(account, limits).await?;
        let sent = examine_sent(&mut connection).await?;
        let filed = if connection.has(id, at).await? {
            Filed::Before
        } else {
            connection.append(&sent, message, self.data).await?;
            Filed::Now
        };
        connection.logout().await;
        Ok(filed)
    }

    async fn look_for_new(
        &self,
        account: &MailboxAccess,
        cursor: Option<&str>,
        since: DateTime<Utc>,
        until: Instant,
    ) -> Result<NewMail, ReadError> {
        let mut connection = self.open(account).await?;
        let known = cursor.and_then(Cursor::read);
        let inbox = connection.examine(b"INBOX").await?;
        let place = known.map(|cursor| cursor.inbox);
        let limits = folder::Limits {
            bounces: BOUNCES,
            until,
        };
        let mut new = folder::read_new(&mut connection, &inbox, place, since, limits).await?;
        let mut junk = known.and_then(|cursor| cursor.junk);
        // The junk folder waits only while the inbox has new mail.
        let is_late = Instant::now() >= until && !new.messages.is_empty();
        new.more |= is_late;
        if !new.is_broken && !is_late {
            match read_junk(&mut connection, junk, since, until).await {
                Ok(None) => junk = None,
                Ok(Some(read)) => {
                    new.messages.extend(read.messages);
                    new.more |= read.more;
                    junk = Some(read.place);
                }
                // It is read the next time; the inbox doesn't wait for it.
                Err(error) => tracing::debug!(
                    credential_id = %account.credential, %error, "the junk folder can't be read"
                ),
            }
        }
        connection.logout().await;
        let cursor = Cursor {
            inbox: new.place,
            junk,
        };
        Ok(NewMail {
            messages: new.messages,
            cursor: cursor.to_string(),
            more: new.more,
        })
    }
}

/// Opens the mailbox of sent mail.
async fn examine_sent(connection: &mut Connection) -> Result<Vec<u8>, ReadError> {
    // It may be hidden (Gmail's "Show in IMAP"): finding nothing would prove nothing.
    let sent = connection.special_mailbox(&SENT).await?.ok_or_else(|| {
        ReadError::Forbidden("the server shows no mailbox of sent mail".to_owned())
    })?;
    connection.examine(&sent).await?;
    Ok(sent)
}

/// The bounces in the junk folder; none if there is no such folder.
async fn read_junk(
    connection: &mut Connection,
    known: Option<Place>,
    since: DateTime<Utc>,
    until: Instant,
) -> Result<Option<folder::Read>, FolderError> {
    let Some(name) = connection.special_mailbox(&JUNK).await? else {
        return Ok(None);
    };
    let junk = connection.examine(&name).await?;
    let limits = folder::Limits {
        bounces: BOUNCES_IN_JUNK,
        until,
    };
    let mut read = folder::read_new(connection, &junk, known, since, limits).await?;
    read.messages.retain(|received| received.bounce.is_some());
    Ok(Some(read))
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
        sought: Sought<'a>,
    ) -> BoxFuture<'a, Result<Found, ReadError>> {
        self.look_among_sent(account, sought).boxed()
    }

    fn files_sent(&self) -> bool {
        self.append_sent_mail
    }

    fn file_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        id: LogId,
        message: &'a Message,
        at: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Filed, ReadError>> {
        self.append_unless_there(account, id, message, at).boxed()
    }

    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
        until: Instant,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>> {
        self.look_for_new(account, cursor, since, until).boxed()
    }
}

impl From<FolderError> for ReadError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Imap(error) => error.into(),
            FolderError::Unnumbered => Self::unavailable(error.to_string()),
        }
    }
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

/// Why a login failed. Many servers give no reason.
fn log_in_refused(error: ImapError) -> ReadError {
    match &error {
        // The provider's next token would be no better.
        ImapError::Token(_) => ReadError::Forbidden(error.to_string()),
        // Gmail: "Your account is not enabled for IMAP use", "IMAP access is disabled for your domain".
        ImapError::Refused(status) if is_off(&status.text) => {
            ReadError::Forbidden(error.to_string().trim().to_owned())
        }
        // BAD too: the server knows no such mechanism.
        ImapError::Refused(status) => refused(status)
            .unwrap_or_else(|| ReadError::Unexplained(error.to_string().trim().to_owned())),
        _ => error.into(),
    }
}

fn is_off(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("not enabled for imap") || text.contains("imap access is disabled")
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
    use super::response::Condition;
    use super::*;

    #[test]
    fn refusals() {
        let kind = |error: ReadError| match error {
            ReadError::TokenRefused(_) => "token",
            ReadError::Unexplained(_) => "unexplained",
            ReadError::Forbidden(_) => "forbidden",
            ReadError::Unavailable { .. } => "unavailable",
        };
        for (condition, code, at_log_in, later) in [
            (Condition::No, "AUTHENTICATIONFAILED", "token", "token"),
            (Condition::No, "EXPIRED", "token", "token"),
            (Condition::No, "", "unexplained", "unavailable"),
            (Condition::No, "UNKNOWN-CTE", "unexplained", "unavailable"),
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
            (Condition::Bad, "", "unexplained", "unavailable"),
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
        for text in [
            "Your account is not enabled for IMAP use. Please visit your Gmail settings page",
            "IMAP access is disabled for your domain. Please contact your domain administrator",
        ] {
            let off = ImapError::Refused(Status {
                condition: Condition::No,
                code: vec!["ALERT".to_owned()],
                text: text.to_owned(),
            });
            assert_eq!(kind(log_in_refused(off)), "forbidden", "{text}");
        }
        let bye = ImapError::Bye(Status {
            condition: Condition::Bye,
            code: vec!["AUTHENTICATIONFAILED".to_owned()],
            text: String::new(),
        });
        assert_eq!(kind(log_in_refused(bye)), "unavailable");
    }
}
