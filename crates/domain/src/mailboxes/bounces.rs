//! Processes bounces: each is reported to the app, shown in the log and counted, and its recipient is recorded as
//! undeliverable.
//! A bounce comes from a stranger, so it counts only for a message sent from this very mailbox whose Message-ID or log
//! id the stranger knows, and so has received or relayed. Any other bounce is ignored, and each message has a bounded
//! number of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::Mailboxes;
use mailgate_bounces::{Bounce, BouncedRecipient};
use mailgate_providers::mail::received::Received;
use mailgate_storage::bounces::{self, NewBounce, Original};
use mailgate_storage::mailboxes::Mailbox;
use mailgate_storage::{bounced_messages, suppressions, webhook_messages};
use mailgate_types::bounce_type::BounceType;
use mailgate_types::email_address::comparison_key;
use mailgate_types::event::{Emission, Event};
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::moment::iso8601;
use mailgate_types::one_line::one_line;

/// Maximum bounces of one type per message: further ones are ignored.
const MOST: i64 = 100;

/// Recipients of one notification that are considered.
const RECIPIENTS: usize = 100;

/// Longest stored address and diagnostic text, in bytes.
const ADDRESS_BYTES: usize = 320;
const DIAGNOSTIC_BYTES: usize = 1_000;

/// Longest RFC 3463 status code, which has three numbers: `5.123.456`.
const STATUS_BYTES: usize = 9;

/// Messages marked in one transaction.
const BATCH: i64 = 1_000;

/// Bounces that were reported.
#[derive(Debug, Default)]
pub(super) struct ToldBounces(BTreeMap<BounceType, u64>);

impl ToldBounces {
    /// Counts them, once they are committed.
    pub(super) fn count(self, mailbox: &Mailbox) {
        let all: u64 = self.0.values().sum();
        if all > 0 {
            tracing::info!(credential_id = %mailbox.id, bounces = all, "bounces were found");
        }
        for (bounce_type, bounces) in self.0 {
            metrics::counter!(
                "mailgate_bounces_total",
                "plugin" => mailbox.plugin.as_str(),
                "bounce_type" => bounce_type.as_str()
            )
            .increment(bounces);
        }
    }
}

/// A bounce of one of the mailbox's messages.
struct Found<'a> {
    bounce: NewBounce,
    original: &'a Original,
}

/// Emits the events of these messages that are bounces of the mailbox's own mail, and stores their effects, within the
/// caller's transaction.
pub(super) async fn tell(
    connection: &mut PgConnection,
    app: AppId,
    mailbox: &Mailbox,
    messages: &[Received],
    now: DateTime<Utc>,
) -> Result<ToldBounces, sqlx::Error> {
    let named: Vec<(&Received, &Bounce)> = messages
        .iter()
        .filter_map(|received| Some((received, received.bounce.as_ref()?)))
        .collect();
    if named.is_empty() {
        return Ok(ToldBounces::default());
    }
    let originals = originals(connection, mailbox, &named).await?;
    let found: Vec<Found<'_>> = named
        .iter()
        .flat_map(|(received, bounce)| found(received, bounce, &originals))
        .collect();
    if found.is_empty() || !bounces::lock_mailbox(connection, app, mailbox.id).await? {
        return Ok(ToldBounces::default());
    }
    let wanted: Vec<NewBounce> = found.iter().map(|found| found.bounce.clone()).collect();
    let fresh = bounces::insert(connection, mailbox.id, &wanted, now, MOST).await?;
    let mut by_key: HashMap<&[u8], &Found<'_>> = HashMap::new();
    for one in &found {
        // Of several with one key, the first was stored.
        by_key.entry(&one.bounce.key).or_insert(one);
    }
    let fresh: Vec<&Found<'_>> = fresh
        .iter()
        .filter_map(|key| by_key.get(key.as_slice()).copied())
        .collect();

    let emissions: Vec<Emission> = (fresh.iter())
        .map(|found| found.emission(app, mailbox, now))
        .collect();
    webhook_messages::emit(connection, &emissions, now).await?;
    let final_ones = || {
        let fresh = fresh.iter();
        fresh.filter(|found| found.bounce.bounce_type == BounceType::Permanent)
    };
    let suppressed: Vec<(String, LogId)> = final_ones()
        .filter(|found| found.original.recipient(&found.bounce.recipient).is_some())
        .map(|found| {
            let address = comparison_key(&found.bounce.recipient);
            (address, found.bounce.log)
        })
        .collect();
    if !suppressed.is_empty() {
        suppressions::note(connection, app, &suppressed, now).await?;
    }
    let bounced: BTreeSet<LogId> = final_ones().map(|found| found.bounce.log).collect();
    let bounced: Vec<LogId> = bounced.into_iter().collect();
    bounced_messages::mark(connection, &bounced).await?;

    let mut told = ToldBounces::default();
    for found in fresh {
        *told.0.entry(found.bounce.bounce_type).or_default() += 1;
    }
    Ok(told)
}

/// The mailbox's messages that these bounces may be about.
async fn originals(
    connection: &mut PgConnection,
    mailbox: &Mailbox,
    named: &[(&Received, &Bounce)],
) -> Result<Vec<Original>, sqlx::Error> {
    let message_ids: BTreeSet<String> = named
        .iter()
        .flat_map(|(_, bounce)| bounce.message_ids.iter().cloned())
        .collect();
    let message_ids: Vec<String> = message_ids.into_iter().collect();
    let logs: BTreeSet<LogId> = named
        .iter()
        .flat_map(|(_, bounce)| log_ids(bounce))
        .collect();
    let logs: Vec<LogId> = logs.into_iter().collect();
    bounces::originals(connection, mailbox.id, &message_ids, &logs).await
}

/// The log ids that a bounce names: in a header of the original, or in a Message-ID of the gateway's own.
fn log_ids(bounce: &Bounce) -> impl Iterator<Item = LogId> {
    let own = bounce.message_ids.iter().filter_map(|id| {
        let (left, _) = id.strip_prefix('<')?.split_once('@')?;
        left.parse().ok()
    });
    let in_headers = bounce.log_ids.iter().filter_map(|id| id.parse().ok());
    in_headers.chain(own)
}

/// The bounces of one notification: none, if it is about no message of the mailbox.
fn found<'a>(
    received: &Received,
    bounce: &Bounce,
    originals: &'a [Original],
) -> impl Iterator<Item = Found<'a>> {
    let notification = key_of(received, bounce);
    let found: Vec<Found<'a>> = (bounce.recipients.iter().take(RECIPIENTS))
        .filter_map(|recipient| {
            let original = original_of(bounce, recipient, originals)?;
            let address = one_line(&recipient.address, ADDRESS_BYTES);
            let mut key = Sha256::new();
            key.update(&notification);
            key.update(address.to_ascii_lowercase().as_bytes());
            let bounce = NewBounce {
                key: key.finalize().to_vec(),
                log: original.log,
                recipient: (original.recipient(&address))
                    .map_or_else(|| address.clone(), str::to_owned),
                bounce_type: recipient.bounce_type,
                status: recipient.status.clone().filter(|status| is_status(status)),
                diagnostic: (recipient.diagnostic.as_deref())
                    .map(|text| one_line(text, DIAGNOSTIC_BYTES)),
            };
            Some(Found { bounce, original })
        })
        .collect();
    found.into_iter()
}

/// The message that a bounce is about: the one with the Message-ID that is the most certain, or else with the log id.
/// Of several with the same Message-ID: the one whose log id is named, or that was sent to the recipient, or the
/// latest.
fn original_of<'a>(
    bounce: &Bounce,
    recipient: &BouncedRecipient,
    originals: &'a [Original],
) -> Option<&'a Original> {
    let named: Vec<LogId> = log_ids(bounce).collect();
    let by_message_id = bounce.message_ids.iter().find_map(|id| {
        originals
            .iter()
            .filter(|original| original.message_id.as_ref() == Some(id))
            .max_by_key(|original| {
                let is_named = named.contains(&original.log);
                (
                    is_named,
                    original.recipient(&recipient.address).is_some(),
                    original.log,
                )
            })
    });
    by_message_id.or_else(|| {
        named
            .iter()
            .find_map(|log| originals.iter().find(|original| original.log == *log))
    })
}

/// A notification's deduplication key: its Message-ID, or a digest of its contents.
fn key_of(received: &Received, bounce: &Bounce) -> Vec<u8> {
    let mut digest = Sha256::new();
    let mut add = |part: &str| {
        digest.update(part.as_bytes());
        digest.update([0]);
    };
    if let Some(id) = &received.message_id {
        add(id);
    } else {
        add("");
        add(&received.from);
        add(&received.subject);
        bounce.message_ids.iter().for_each(|id| add(id));
        bounce.log_ids.iter().for_each(|id| add(id));
        for recipient in &bounce.recipients {
            add(&recipient.address);
            add(recipient.bounce_type.as_str());
            add(recipient.status.as_deref().unwrap_or_default());
            add(recipient.diagnostic.as_deref().unwrap_or_default());
        }
    }
    digest.finalize().to_vec()
}

/// Whether it has the form of RFC 3463.
fn is_status(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    text.len() <= STATUS_BYTES
        && parts.len() == 3
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Found<'_> {
    fn emission(&self, app: AppId, mailbox: &Mailbox, now: DateTime<Utc>) -> Emission {
        let (bounce, original) = (&self.bounce, self.original);
        let event = Event::EmailBounced {
            log_id: original.log,
            message_id: original.message_id.clone(),
            from_address: original.from_address.clone(),
            to_address: bounce.recipient.clone(),
            subject: original.subject.clone(),
            plugin: mailbox.plugin,
            bounce_type: bounce.bounce_type,
            status: bounce.status.clone(),
            diagnostic: bounce.diagnostic.clone(),
            bounced_at: iso8601(now),
            metadata: original.metadata.clone(),
        };
        Emission {
            app,
            event,
            log: Some(original.log),
        }
    }
}

impl Mailboxes {
    /// Marks the messages that had bounced before the log showed them as sent. Any number of replicas may call it.
    pub async fn mark_bounced(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let sent = bounced_messages::sent_meanwhile(&mut connection, BATCH).await?;
        bounced_messages::mark(&mut connection, &sent).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailgate_types::ids::uuid_at;
    use mailgate_types::metadata::Metadata;
    use proptest::prelude::*;

    fn original(id: &str, second: i64, to: &str) -> Original {
        let at = DateTime::from_timestamp(second, 0).unwrap_or_default();
        Original {
            log: LogId(uuid_at(at)),
            message_id: Some(id.to_owned()),
            from_address: "ada@example.com".to_owned(),
            to_address: to.to_owned(),
            cc_addresses: vec!["Cc@example.com".to_owned()],
            bcc_addresses: vec!["bcc@example.com".to_owned()],
            subject: "Hi".to_owned(),
            metadata: Metadata::default(),
        }
    }

    fn recipient(address: &str) -> BouncedRecipient {
        BouncedRecipient {
            address: address.to_owned(),
            bounce_type: BounceType::Permanent,
            status: Some("5.1.1".to_owned()),
            diagnostic: None,
        }
    }

    fn bounce(ids: &[&str], logs: &[LogId]) -> Bounce {
        Bounce {
            message_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            log_ids: logs.iter().map(ToString::to_string).collect(),
            recipients: vec![recipient("bob@example.com")],
        }
    }

    #[test]
    fn the_message_that_it_is_about() {
        let originals = [
            original("<a@x>", 3, "carol@example.com"),
            original("<a@x>", 2, "x@y.example, BOB@example.com"),
            original("<a@x>", 1, "bob@example.com"),
            original("<b@x>", 9, "bob@example.com"),
        ];
        let about = |ids: &[&str], logs: &[LogId], address: &str| {
            original_of(&bounce(ids, logs), &recipient(address), &originals)
                .and_then(|found| originals.iter().position(|original| original == found))
        };
        let logs = originals.each_ref().map(|original| original.log);
        // The most certain Message-ID first.
        assert_eq!(about(&["<z@x>", "<b@x>", "<a@x>"], &[], "x"), Some(3));
        // Of several: the recipient's, the latest, the one that is named.
        assert_eq!(about(&["<a@x>"], &[], "bob@example.com"), Some(1));
        assert_eq!(about(&["<a@x>"], &[], "forwarded@example.net"), Some(0));
        assert_eq!(about(&["<a@x>"], &[logs[2]], "carol@example.com"), Some(2));
        // By the log id alone, also within a Message-ID of our own.
        assert_eq!(about(&["<z@x>"], &[logs[3]], "x"), Some(3));
        assert_eq!(about(&[&format!("<{}@x>", logs[1])], &[], "x"), Some(1));
        assert_eq!(about(&["<z@x>"], &[], "bob@example.com"), None);
    }

    #[test]
    fn whom_it_was_sent_to() {
        let original = original("<a@x>", 1, "Bob@example.com, \"a,b\"@example.com");
        for (address, given) in [
            ("bob@EXAMPLE.com", Some("Bob@example.com")),
            ("\"bob\"@example.com", Some("Bob@example.com")),
            ("cc@example.com", Some("Cc@example.com")),
            ("BCC@example.com", Some("bcc@example.com")),
            ("other@example.com", None),
            ("", None),
        ] {
            assert_eq!(original.recipient(address), given, "{address}");
        }
    }

    #[test]
    fn notifications_without_an_id_differ_by_what_they_say() {
        let received = Received::default();
        let (one, mut other) = (bounce(&["<a@x>"], &[]), bounce(&["<a@x>"], &[]));
        assert_eq!(key_of(&received, &one), key_of(&received, &other));
        other.recipients[0].bounce_type = BounceType::Temporary;
        assert_ne!(key_of(&received, &one), key_of(&received, &other));
        let named = Received {
            message_id: Some("<n@x>".to_owned()),
            ..Received::default()
        };
        assert_eq!(key_of(&named, &one), key_of(&named, &other));
    }

    #[test]
    fn status_codes() {
        for (text, is_one) in [
            ("5.1.1", true),
            ("4.0.999", true),
            ("5.123.456", true),
            ("5.1", false),
            ("5.1.1.1", false),
            ("5..1", false),
            ("5.1.x", false),
            ("5.1.1 (no)", false),
            ("5.1234.567", false),
            ("", false),
        ] {
            assert_eq!(is_status(text), is_one, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_it_says_is_bounded(
            address in "(?s).{0,600}",
            status in "(?s).{0,20}",
            diagnostic in "(?s).{0,2000}",
            recipients in 0_usize..300,
        ) {
            let mut hostile = bounce(&["<a@x>"], &[]);
            let one = BouncedRecipient {
                address,
                bounce_type: BounceType::Temporary,
                status: Some(status),
                diagnostic: Some(diagnostic),
            };
            hostile.recipients = vec![one; recipients];
            let originals = [original("<a@x>", 1, "bob@example.com")];
            let found: Vec<_> = found(&Received::default(), &hostile, &originals).collect();
            prop_assert!(found.len() <= RECIPIENTS);
            for Found { bounce, .. } in found {
                prop_assert!(bounce.recipient.len() <= ADDRESS_BYTES);
                prop_assert!(bounce.diagnostic.is_some_and(|text| text.len() <= DIAGNOSTIC_BYTES));
                prop_assert!(bounce.status.is_none_or(|status| is_status(&status)));
                prop_assert!(!bounce.recipient.contains(char::is_control));
            }
        }
    }
}
