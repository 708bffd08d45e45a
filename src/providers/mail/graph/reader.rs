//! Reads a mailbox through Graph: whether a message is among the sent items, and what the delta queries of inbox and
//! junk folder report as new.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use tokio::time::Instant;

use super::api::{CallError, GraphContent, GraphResponse, Patience, encoded};
use super::verdict::Words;
use super::{Graph, grants};
use crate::providers::mail::reader::{MailReader, NewMail, ReadError};
use crate::providers::mail::received::{self, BOUNCE_BYTES, BOUNCES, Received, may_be_bounce};
use crate::providers::mail::transport::MailboxAccess;

/// Messages per page, and pages per check.
const PAGE: usize = 50;
const PAGES: usize = 4;

/// The well-known names of the folders that are read (mailFolder).
const INBOX: &str = "inbox";
const JUNK: &str = "junkemail";

/// The fields requested of each message. The headers need Mail.Read; Mail.ReadBasic isn't enough.
const FIELDS: &str =
    "internetMessageId,subject,from,toRecipients,internetMessageHeaders,receivedDateTime";

/// The error codes for a delta token that is too old, besides 410.
const LOST_PLACE: [&str; 3] = ["SyncStateNotFound", "SyncStateInvalid", "ResyncRequired"];

/// The error codes for a message that Exchange can't put into MIME, such as an opaque S/MIME one.
const NOT_CONVERTED: [&str; 2] = [
    "ErrorMimeContentConversionFailed",
    "ErrorContentConversionFailed",
];

#[derive(Deserialize)]
struct Page {
    value: Vec<Entry>,
    #[serde(rename = "@odata.nextLink")]
    next: Option<String>,
    #[serde(rename = "@odata.deltaLink")]
    delta: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    id: String,
    #[serde(rename = "@removed")]
    removed: Option<serde_json::Value>,
    internet_message_id: Option<String>,
    subject: Option<String>,
    from: Option<Addressee>,
    to_recipients: Option<Vec<Addressee>>,
    internet_message_headers: Option<Vec<NamedValue>>,
    received_date_time: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Addressee {
    email_address: EmailAddress,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct EmailAddress {
    address: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamedValue {
    name: String,
    value: Option<String>,
}

#[derive(Deserialize)]
struct Found {
    value: Vec<serde_json::Value>,
}

/// The outcome of requesting a page.
enum Asked {
    Page(Page),
    /// The delta token is no longer valid.
    Lost,
}

impl Graph {
    /// Whether a message with this Message-ID, angle brackets included, is among the sent items.
    pub(super) async fn is_among_sent(
        &self,
        account: &MailboxAccess,
        message_id: &str,
        patience: Patience,
    ) -> Result<bool, ReadError> {
        let filter = format!("internetMessageId eq '{}'", message_id.replace('\'', "''"));
        let path = format!(
            "/mailFolders/sentitems/messages?$filter={}&$select=id",
            encoded(&filter)
        );
        let answer = self.look(account, &self.api.address(&path), patience).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        if answer.status != 200 {
            return Err(refused(&answer));
        }
        let found: Found = serde_json::from_slice(&answer.body).map_err(|_| nonsense())?;
        Ok(!found.value.is_empty())
    }

    /// A plain GET.
    pub(super) async fn look(
        &self,
        account: &MailboxAccess,
        address: &str,
        patience: Patience,
    ) -> Result<GraphResponse, CallError> {
        self.api
            .call(
                account,
                Method::GET,
                address,
                GraphContent::Nothing,
                patience,
            )
            .await
    }

    async fn look_for_new(
        &self,
        account: &MailboxAccess,
        cursor: Option<&str>,
        since: DateTime<Utc>,
    ) -> Result<NewMail, ReadError> {
        // Releases that read the inbox alone stored its link alone.
        let (inbox, junk) = match cursor.and_then(|cursor| cursor.split_once(' ')) {
            Some((inbox, junk)) => (Some(inbox), Some(junk)),
            None => (cursor, None),
        };
        let mut new = self.read_folder(account, INBOX, inbox, since).await?;
        let junk = match self.read_folder(account, JUNK, junk, since).await {
            Ok(read) => {
                let bounces = read.messages.into_iter();
                new.messages
                    .extend(bounces.filter(|received| received.bounce.is_some()));
                new.more |= read.more;
                Some(read.cursor)
            }
            Err(error @ ReadError::TokenRefused(_)) => return Err(error),
            // It is read the next time; the inbox doesn't wait for it.
            Err(error) => {
                tracing::debug!(credential_id = %account.credential, %error, "the junk folder can't be read");
                junk.map(str::to_owned)
            }
        };
        if let Some(junk) = junk {
            new.cursor.push(' ');
            new.cursor.push_str(&junk);
        }
        Ok(new)
    }

    async fn read_folder(
        &self,
        account: &MailboxAccess,
        folder: &str,
        cursor: Option<&str>,
        since: DateTime<Utc>,
    ) -> Result<NewMail, ReadError> {
        // A link from another server, stored before the settings were changed, is ignored.
        let kept = cursor.filter(|cursor| self.api.is_own(cursor));
        let mut address = match kept {
            Some(cursor) => cursor.to_owned(),
            None => self.beginning(folder, since),
        };
        let mut may_begin_anew = kept.is_some();
        let mut messages = Vec::new();
        let (mut pages, mut bounces) = (0, 0);
        let (cursor, more) = loop {
            let page = match self.page(account, &address, may_begin_anew).await? {
                Asked::Page(page) => page,
                Asked::Lost => {
                    tracing::info!(credential_id = %account.credential, folder, "a folder is read from the start: its position was lost");
                    address = self.beginning(folder, since);
                    may_begin_anew = false;
                    continue;
                }
            };
            may_begin_anew = false;
            pages += 1;
            for entry in page.value {
                if entry.removed.is_some() {
                    continue;
                }
                if let Some(entry) = self.with_headers(account, entry).await? {
                    let (received, is_whole) = self.received(account, &entry).await?;
                    bounces += usize::from(is_whole);
                    messages.push((entry.received_date_time, received));
                }
            }
            let (next, more) = match (page.next, page.delta) {
                (Some(next), _) => (next, true),
                (None, Some(delta)) => (delta, false),
                (None, None) => return Err(nonsense()),
            };
            // The token is sent nowhere else.
            if !self.api.is_own(&next) {
                return Err(nonsense());
            }
            // Positions are those of pages: the next one must fit whole.
            if !more || pages == PAGES || bounces + PAGE > BOUNCES {
                break (next, more);
            }
            address = next;
        };
        messages.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(NewMail {
            messages: messages.into_iter().map(|(_, received)| received).collect(),
            cursor,
            more,
        })
    }

    /// A message, and whether it was fetched whole, since it may be a bounce.
    async fn received(
        &self,
        account: &MailboxAccess,
        entry: &Entry,
    ) -> Result<(Received, bool), ReadError> {
        let headers = header_block(entry);
        let mut received = Received::parse(&headers);
        if entry.id.is_empty() || !may_be_bounce(&headers) {
            return Ok((received, false));
        }
        let path = format!("/messages/{}/$value", encoded(&entry.id));
        let address = self.api.address(&path);
        let patience = self.one_call();
        let answer = self
            .api
            .beginning(account, &address, BOUNCE_BYTES, patience)
            .await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        match answer.status {
            200 => received.read_bounce(&answer.body),
            // It was deleted or moved meanwhile, or Exchange can't convert it: then it never can, also where it says
            // 500.
            400 | 404 | 410 | 422 => {}
            _ if Words::read(&answer.body).says(&NOT_CONVERTED) => {}
            _ => return Err(refused(&answer)),
        }
        Ok((received, true))
    }

    /// The URL of a new delta query, from a point in time.
    fn beginning(&self, folder: &str, since: DateTime<Utc>) -> String {
        let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
        let filter = encoded(&format!("receivedDateTime ge {since}"));
        self.api.address(&format!(
            "/mailFolders/{folder}/messages/delta?changeType=created&$select={FIELDS}&$filter={filter}"
        ))
    }

    /// A page of changes. `from_cursor`: the URL was stored by an earlier check, and may have become invalid in ways
    /// that other URLs can't.
    async fn page(
        &self,
        account: &MailboxAccess,
        address: &str,
        from_cursor: bool,
    ) -> Result<Asked, ReadError> {
        let patience = self.one_call();
        let answer = self.api.page(account, address, PAGE, patience).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        match answer.status {
            200 => serde_json::from_slice(&answer.body)
                .map(Asked::Page)
                .map_err(|_| nonsense()),
            400 | 404 | 410 if from_cursor => Ok(Asked::Lost),
            _ if from_cursor && Words::read(&answer.body).says(&LOST_PLACE) => Ok(Asked::Lost),
            _ => Err(refused(&answer)),
        }
    }

    /// A change doesn't always include the headers; those of a message deleted meanwhile are left out.
    async fn with_headers(
        &self,
        account: &MailboxAccess,
        entry: Entry,
    ) -> Result<Option<Entry>, ReadError> {
        if entry.internet_message_headers.is_some() || entry.id.is_empty() {
            return Ok(Some(entry));
        }
        let path = format!("/messages/{}?$select={FIELDS}", encoded(&entry.id));
        let patience = self.one_call();
        let answer = self.look(account, &self.api.address(&path), patience).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        match answer.status {
            200 => serde_json::from_slice(&answer.body)
                .map(Some)
                .map_err(|_| nonsense()),
            404 => Ok(None),
            _ => Err(refused(&answer)),
        }
    }

    /// The timeout of a call outside a submission.
    fn one_call(&self) -> Patience {
        Patience {
            each: self.command,
            until: Instant::now() + self.command,
        }
    }
}

impl MailReader for Graph {
    fn may_read(&self, scopes: &[String]) -> bool {
        grants(scopes, "Mail.ReadWrite") || grants(scopes, "Mail.Read")
    }

    /// Exchange may give a message another Message-ID, and may hold it in the outbox for long, so a message that isn't
    /// found may still have been sent.
    fn keeps_sent_mail(&self) -> bool {
        false
    }

    fn find_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        message_id: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReadError>> {
        self.is_among_sent(account, message_id, self.one_call())
            .boxed()
    }

    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>> {
        self.look_for_new(account, cursor, since).boxed()
    }
}

fn unreachable(error: &CallError) -> ReadError {
    ReadError::unavailable(error.to_string())
}

fn nonsense() -> ReadError {
    ReadError::unavailable("Microsoft Graph's answer can't be understood")
}

fn refused(answer: &GraphResponse) -> ReadError {
    let words = Words::read(&answer.body);
    let text = words.tell(answer.status);
    match answer.status {
        401 => ReadError::TokenRefused(text),
        403 if words.says(&["ErrorAccessDenied"]) => ReadError::Forbidden(text),
        _ => ReadError::Unavailable {
            text,
            retry_after: answer.retry_after,
        },
    }
}

/// The headers as they would appear in the message. The list of them has been seen to be incomplete; the rest is taken
/// from the fields.
fn header_block(entry: &Entry) -> Vec<u8> {
    let bracketed = |addressee: &Addressee| {
        let address = addressee.email_address.address.as_deref()?;
        Some(format!("<{address}>"))
    };
    let listed = || entry.internet_message_headers.iter().flatten();
    let from = entry.from.as_ref().and_then(bracketed);
    let to = entry.to_recipients.iter().flatten().find_map(bracketed);
    let fields = [
        ("Message-ID", entry.internet_message_id.as_deref()),
        ("From", from.as_deref()),
        ("To", to.as_deref()),
        ("Subject", entry.subject.as_deref()),
    ];
    let lacking = fields.into_iter().filter_map(|(name, value)| {
        let is_listed = listed().any(|header| header.name.eq_ignore_ascii_case(name));
        value.filter(|_| !is_listed).map(|value| (name, value))
    });
    let pairs = listed().map(|header| {
        let value = header.value.as_deref().unwrap_or_default();
        (header.name.as_str(), value)
    });
    received::header_block(pairs.chain(lacking))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use serde_json::{Value, json};

    fn received(entry: Value) -> Received {
        let entry: Entry = serde_json::from_value(entry).unwrap();
        Received::parse(&header_block(&entry))
    }

    #[test]
    fn headers_and_fields_make_one_block() {
        let received = received(json!({
            "@odata.etag": "W/\"CQAAABYAAAB\"",
            "id": "AAMk=",
            "internetMessageId": "<r1@example.org>",
            "subject": "Re: Grüße",
            "receivedDateTime": "2026-01-02T03:04:05Z",
            "from": {"emailAddress": {"name": "Bob", "address": "bob@example.org"}},
            "toRecipients": [
                {"emailAddress": {"address": "ada@example.com"}},
                {"emailAddress": {"address": "x@example.com"}},
            ],
            "internetMessageHeaders": [
                {"name": "In-Reply-To", "value": "<m2@example.com>"},
                {"name": "References", "value": "<m1@example.com>\r\n <m2@example.com>"},
                {"name": "Auto-Submitted", "value": "no"},
            ],
        }));
        assert_eq!(
            received,
            Received {
                message_id: Some("<r1@example.org>".to_owned()),
                answers: vec!["<m2@example.com>".to_owned(), "<m1@example.com>".to_owned()],
                from: "bob@example.org".to_owned(),
                to: "ada@example.com".to_owned(),
                subject: "Re: Grüße".to_owned(),
                automatic: false,
                bounce: None,
            }
        );
    }

    #[test]
    fn no_value_makes_a_header_of_its_own() {
        let received = received(json!({
            "subject": "a\r\nIn-Reply-To: <forged@example.com>",
            "from": {"emailAddress": {"address": "b@x.org>\r\nAuto-Submitted: x"}},
            "internetMessageHeaders": [
                {"name": "X-A", "value": "b\r\nReferences: <forged@example.com>\r\n\r\n"},
                {"name": "X: y\r\nReferences", "value": "<forged@example.com>"},
                {"name": "", "value": "x"},
                {"name": "Message-ID", "value": "<m@x.org>"},
            ],
        }));
        assert_eq!(received.answers, Vec::<String>::new());
        assert_eq!(received.message_id.as_deref(), Some("<m@x.org>"));
        assert!(!received.automatic);
    }

    #[test]
    fn an_entry_with_nothing() {
        assert_eq!(
            received(json!({"id": "x", "subject": null, "from": null})),
            Received::default()
        );
    }
}
