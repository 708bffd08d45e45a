//! New messages in a folder, from its delta query.

use chrono::{DateTime, SecondsFormat, Utc};
use tokio::time::Instant;

use super::entry::{Entry, Page};
use super::item::FIELDS;
use super::refusal::{nonsense, refused, unreachable};
use crate::mail::graph::Graph;
use crate::mail::graph::api::encoded;
use crate::mail::graph::verdict::Words;
use crate::mail::reader::ReadError;
use crate::mail::received::{BOUNCES, Received};
use crate::mail::taken::Taken;
use crate::mail::transport::MailboxAccess;

/// Messages per page, and pages per check.
const PAGE: usize = 50;
const PAGES: usize = 4;

/// The error codes for a delta token that is too old, besides 410.
const LOST_PLACE: [&str; 3] = ["SyncStateNotFound", "SyncStateInvalid", "ResyncRequired"];

/// The outcome of requesting a page.
enum Asked {
    Page {
        entries: Vec<Entry>,
        /// The URL of the next page, or of the next delta query.
        next: String,
        more: bool,
    },
    /// The delta token is no longer valid.
    Lost,
}

/// The messages read from a folder.
pub(super) struct FolderMail {
    /// Oldest first.
    pub(super) messages: Vec<Received>,
    pub(super) cursor: String,
    pub(super) more: bool,
    /// The provider failed meanwhile.
    pub(super) is_broken: bool,
}

/// How far a folder has been read.
struct Progress {
    /// The URL of the current page.
    address: String,
    /// The messages taken from this page. Graph's positions are pages, so a page that isn't finished is requested
    /// again.
    taken: Taken,
    /// With the time when each was received.
    messages: Vec<(Option<String>, Received)>,
    /// Messages that were fetched whole.
    bounces: usize,
    /// The next check begins further on than this one.
    has_advanced: bool,
}

/// Where the reading of a folder ended.
enum Reached {
    End,
    Limit,
    /// The position is no longer valid.
    Nothing,
}

impl Progress {
    fn at(address: String, taken: Taken) -> Self {
        Self {
            address,
            taken,
            messages: Vec::new(),
            bounces: 0,
            has_advanced: false,
        }
    }
}

impl Graph {
    /// New messages since `cursor`; without it, or if it is no longer valid, since `since`.
    pub(super) async fn read_folder(
        &self,
        account: &MailboxAccess,
        folder: &str,
        cursor: Option<&str>,
        since: DateTime<Utc>,
        until: Instant,
    ) -> Result<FolderMail, ReadError> {
        let anew = || Progress::at(self.beginning(folder, since), Taken::default());
        // A link from another server, stored before the settings were changed, is ignored.
        let kept = (cursor.map(Taken::split)).filter(|(link, _)| self.api.is_own(link));
        let is_kept = kept.is_some();
        let mut progress =
            kept.map_or_else(anew, |(link, taken)| Progress::at(link.to_owned(), taken));
        let mut reached = self
            .read_pages(account, &mut progress, is_kept, until)
            .await;
        if let Ok(Reached::Nothing) = reached {
            tracing::info!(credential_id = %account.credential, folder, "a folder is read from the start: its position was lost");
            progress = anew();
            reached = self.read_pages(account, &mut progress, false, until).await;
        }
        let (more, is_broken) = match reached {
            Ok(reached) => (!matches!(reached, Reached::End), false),
            Err(error) if progress.has_advanced => {
                tracing::debug!(credential_id = %account.credential, folder, %error, "a folder was read only partly");
                (true, true)
            }
            Err(error) => return Err(error),
        };
        let mut messages = progress.messages;
        messages.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(FolderMail {
            messages: messages.into_iter().map(|(_, received)| received).collect(),
            cursor: progress.taken.join(&progress.address),
            more,
            is_broken,
        })
    }

    async fn read_pages(
        &self,
        account: &MailboxAccess,
        progress: &mut Progress,
        from_cursor: bool,
        until: Instant,
    ) -> Result<Reached, ReadError> {
        for number in 0..PAGES {
            let asked = self.page(account, &progress.address, from_cursor && number == 0);
            let Asked::Page {
                entries,
                next,
                more,
            } = asked.await?
            else {
                return Ok(Reached::Nothing);
            };
            for entry in entries {
                if entry.removed.is_some() || progress.taken.has(&entry.id) {
                    continue;
                }
                if progress.has_advanced && Instant::now() >= until {
                    return Ok(Reached::Limit);
                }
                self.take(account, entry, progress).await?;
            }
            progress.address = next;
            progress.taken = Taken::default();
            progress.has_advanced = true;
            if !more {
                return Ok(Reached::End);
            }
            // All of the next page may be bounces.
            if progress.bounces + PAGE > BOUNCES || Instant::now() >= until {
                break;
            }
        }
        Ok(Reached::Limit)
    }

    async fn take(
        &self,
        account: &MailboxAccess,
        entry: Entry,
        progress: &mut Progress,
    ) -> Result<(), ReadError> {
        let id = entry.id.clone();
        if let Some(entry) = self.with_headers(account, entry).await? {
            let (received, is_whole) = self.received(account, &entry).await?;
            progress.bounces += usize::from(is_whole);
            let message = (entry.received_date_time, received);
            progress.messages.push(message);
        }
        if !id.is_empty() {
            progress.taken.add(&id);
        }
        progress.has_advanced = true;
        Ok(())
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
            200 => {}
            400 | 404 | 410 if from_cursor => return Ok(Asked::Lost),
            _ if from_cursor && Words::read(&answer.body).says(&LOST_PLACE) => {
                return Ok(Asked::Lost);
            }
            _ => return Err(refused(&answer)),
        }
        let page: Page = serde_json::from_slice(&answer.body).map_err(|_| nonsense())?;
        let (next, more) = match (page.next, page.delta) {
            (Some(next), _) => (next, true),
            (None, Some(delta)) => (delta, false),
            (None, None) => return Err(nonsense()),
        };
        // The token must not be sent anywhere else.
        if !self.api.is_own(&next) {
            return Err(nonsense());
        }
        Ok(Asked::Page {
            entries: page.value,
            next,
            more,
        })
    }
}
