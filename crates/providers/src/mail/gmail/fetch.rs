//! Fetches the messages of a list: the headers of each, and possible bounces whole.

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;

use super::GmailApi;
use super::inbox::FETCHED_AT_ONCE;
use super::message::header_block;
use crate::mail::reader::ReadError;
use crate::mail::received::{BOUNCES, Received, header_names};
use crate::mail::transport::MailboxAccess;

/// The largest message that is fetched whole, in bytes: base64 makes a third more of it, within
/// [`super::MAXIMUM_ANSWER`]. Only the headers of a larger one are fetched; Gmail's own bounces are never that large.
const LARGEST_WHOLE: u64 = 2_900_000;

/// A message that was added.
#[derive(Debug)]
pub(super) struct Added {
    /// The history record that added it; zero if it was found by time.
    pub(super) record: u64,
    pub(super) id: String,
    pub(super) is_spam: bool,
}

/// The messages read from a list.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// Each with its position in the list.
    pub(super) messages: Vec<(usize, Received)>,
    /// The number of positions that were read.
    pub(super) done: usize,
    /// The number of possible bounces.
    bounces: usize,
}

impl GmailApi {
    /// Reads messages, in order, until an error or a limit. Those deleted meanwhile are left out; in spam, so is
    /// everything except bounces.
    pub(super) async fn fetch(
        &self,
        account: &MailboxAccess,
        added: &[Added],
        until: Instant,
    ) -> Result<Fetched, ReadError> {
        let mut fetched = Fetched::default();
        match self.fetch_on(account, added, until, &mut fetched).await {
            Ok(()) => Ok(fetched),
            Err(error) if may_stop(added, fetched.done) => {
                tracing::debug!(credential_id = %account.credential, %error, "new mail was read only partly");
                Ok(fetched)
            }
            Err(error) => Err(error),
        }
    }

    async fn fetch_on(
        &self,
        account: &MailboxAccess,
        added: &[Added],
        until: Instant,
        fetched: &mut Fetched,
    ) -> Result<(), ReadError> {
        let mut query = vec![("format", "metadata")];
        query.extend(header_names().map(|name| ("metadataHeaders", name)));
        let query = &query;
        let ids: Vec<String> = added.iter().map(|one| one.id.clone()).collect();
        let mut found = stream::iter(ids)
            .map(|id| async move { self.metadata(account, &id, query).await })
            .buffered(FETCHED_AT_ONCE);
        while let Some(one) = added.get(fetched.done) {
            let is_late = || fetched.done > 0 && Instant::now() >= until;
            let may_stop = may_stop(added, fetched.done);
            if may_stop && is_late() {
                break;
            }
            if let Some(found) = found.try_next().await?.flatten() {
                let headers = header_block(&found.payload.headers);
                let mut received = Received::parse(&headers);
                if received.is_read_whole(&headers) {
                    let is_enough = fetched.bounces == BOUNCES || is_late();
                    if may_stop && is_enough {
                        break;
                    }
                    fetched.bounces += 1;
                    // A record that adds too many gets only headers: otherwise it would be read again forever, and
                    // later records never.
                    let whole = if is_enough || found.size_estimate > LARGEST_WHOLE {
                        None
                    } else {
                        self.beginning(account, &one.id).await?
                    };
                    received.read_whole(whole.as_deref().unwrap_or(&headers));
                }
                if !one.is_spam || received.bounce.is_some() {
                    fetched.messages.push((fetched.done, received));
                }
            }
            fetched.done += 1;
        }
        Ok(())
    }
}

/// Whether the next check can continue from this position: after any message found by time, or after a whole record.
fn may_stop(added: &[Added], place: usize) -> bool {
    match added.get(place) {
        Some(next) if next.record == 0 => place > 0,
        Some(next) => (added.first()).is_some_and(|first| first.record < next.record),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_next_check_can_go_on() {
        let added = |records: &[u64]| -> Vec<Added> {
            let one = |record: &u64| Added {
                record: *record,
                id: String::new(),
                is_spam: false,
            };
            records.iter().map(one).collect()
        };
        let records = added(&[7, 7, 9, 9]);
        let places: Vec<bool> = (0..5).map(|place| may_stop(&records, place)).collect();
        assert_eq!(places, [false, false, true, true, true]);
        let by_time = added(&[0, 0]);
        let places: Vec<bool> = (0..3).map(|place| may_stop(&by_time, place)).collect();
        assert_eq!(places, [false, true, true]);
    }
}
