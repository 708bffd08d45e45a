//! Reads new messages in an open folder.

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::connection::fetch::Headers;
use super::connection::mailbox::Examined;
use super::connection::search::Keep;
use super::connection::{Connection, ImapError};
use super::cursor::Place;
use crate::mail::received::Received;

/// Messages in one FETCH.
const ROUND: usize = 200;

/// Messages in one check.
const LOOK: usize = 500;

/// Why a folder can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    #[error(transparent)]
    Imap(#[from] ImapError),
    #[error("the server doesn't number its messages")]
    Unnumbered,
}

/// How much of a folder is read in one check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Messages that are fetched whole, since they may be bounces.
    pub(super) bounces: usize,
    /// From this time on nothing more is fetched, except the first message.
    pub(super) until: Instant,
}

/// New messages in a folder.
#[derive(Debug)]
pub(super) struct Read {
    /// Oldest first.
    pub(super) messages: Vec<Received>,
    /// Where the next check begins.
    pub(super) place: Place,
    /// There is more to read.
    pub(super) more: bool,
    /// The server failed meanwhile.
    pub(super) is_broken: bool,
}

/// Reads new messages since `known`; without it, or if it is no longer valid, since `since`. Fetches possible bounces
/// whole, and stops before the message that exceeds the limits.
pub(super) async fn read_new(
    connection: &mut Connection,
    folder: &Examined,
    known: Option<Place>,
    since: DateTime<Utc>,
    limits: Limits,
) -> Result<Read, FolderError> {
    let (begin, uids) = unread(connection, folder, known, since).await?;
    let mut progress = Progress {
        messages: Vec::new(),
        reached: None,
        limits,
    };
    let mut more = uids.len() > LOOK;
    let mut is_broken = false;
    for round in uids[..uids.len().min(LOOK)].chunks(ROUND) {
        if progress.is_late() {
            more = true;
            break;
        }
        match progress.read(connection, round).await {
            Ok(true) => {}
            Ok(false) => {
                more = true;
                break;
            }
            Err(error) if progress.reached.is_none() => return Err(error.into()),
            // The messages read so far are kept: a slow server is read in several checks.
            Err(error) => {
                tracing::debug!(%error, "a folder was read only partly");
                (more, is_broken) = (true, true);
                break;
            }
        }
    }
    let uid = match progress.reached {
        Some(uid) if more => uid,
        Some(uid) => uid.max(begin.uid),
        None => begin.uid,
    };
    Ok(Read {
        messages: progress.messages,
        place: Place { uid, ..begin },
        more,
        is_broken,
    })
}

/// How far a folder has been read.
struct Progress {
    messages: Vec<Received>,
    /// The first UID that has not been read; none before the first message.
    reached: Option<u32>,
    /// The ones that are left.
    limits: Limits,
}

impl Progress {
    /// Whether it is time to stop; never before the first message.
    fn is_late(&self) -> bool {
        self.reached.is_some() && Instant::now() >= self.limits.until
    }

    /// Reads these messages; whether all of them were.
    async fn read(
        &mut self,
        connection: &mut Connection,
        round: &[u32],
    ) -> Result<bool, ImapError> {
        for (uid, headers) in connection.headers(round).await? {
            let Headers {
                mut received,
                is_read_whole,
            } = headers;
            if is_read_whole {
                if self.limits.bounces == 0 || self.is_late() {
                    self.reached = Some(uid);
                    return Ok(false);
                }
                if let Some(message) = connection.beginning(uid).await? {
                    received.read_whole(&message);
                }
                self.limits.bounces -= 1;
            }
            self.messages.push(received);
            self.reached = Some(behind(&[uid]));
        }
        self.reached = Some(behind(round));
        Ok(true)
    }
}

/// The UIDs to read, oldest first, and where the next check begins if there are none.
async fn unread(
    connection: &mut Connection,
    folder: &Examined,
    known: Option<Place>,
    since: DateTime<Utc>,
) -> Result<(Place, Vec<u32>), FolderError> {
    let uid_validity = folder.uid_validity.ok_or(FolderError::Unnumbered)?;
    let known = known.filter(|place| place.uid_validity == uid_validity);
    if let Some(place) = known {
        let mut found = Vec::new();
        if folder.exists > 0 {
            // If no message is that new, `*` makes it a range down to the newest message.
            let criteria = format!("UID {}:*", place.uid);
            // One extra tells whether there are more.
            let keep = Keep::OldestFrom(place.uid, LOOK + 1);
            found = connection.search(&[&criteria], keep).await?;
        }
        return Ok((place, found));
    }
    let mut found = Vec::new();
    if folder.exists > 0 {
        let criteria = format!("SINCE {}", day_before(since));
        let keep = Keep::OldestFrom(1, LOOK + 1);
        found = connection.search(&[&criteria], keep).await?;
    }
    let uid = match folder.uid_next {
        Some(uid) => uid,
        None if folder.exists == 0 => 1,
        // Some servers leave it out.
        None => {
            let newest = connection.search(&["UID *"], Keep::Newest(1)).await?;
            behind(&newest)
        }
    };
    Ok((Place { uid_validity, uid }, found))
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn behind_the_last_one() {
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
}
