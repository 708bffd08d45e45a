//! Needs attention: disconnected mailboxes, failing webhooks, waiting mail, and billing.

use crate::PortalState;
use crate::page::frame::{Frame, Section};
use crate::page::words::{Moment, Status, number};
use crate::webhooks::path_of;
use mailgate_types::ids::{AppId, SubscriberId};

/// Maximum number of mailboxes and of webhooks listed.
const MOST: i64 = 5;

/// Something that needs attention.
pub(crate) struct Item {
    pub(crate) status: Status,
    pub(crate) words: String,
    /// Since when, if known.
    pub(crate) since: Option<Moment>,
    /// The page for it, and the link text.
    pub(crate) path: String,
    pub(crate) action: &'static str,
}

/// All of it.
#[derive(Default)]
pub(crate) struct Attention {
    pub(crate) items: Vec<Item>,
    /// Parts that can't be shown at the moment.
    pub(crate) missing: Vec<&'static str>,
}

const fn bad(word: &'static str) -> Status {
    let class = "bad";
    Status { word, class }
}

impl Attention {
    /// Adds a part, or notes that it is missing.
    fn add<T>(
        &mut self,
        part: &'static str,
        read: Result<Vec<T>, sqlx::Error>,
        item: impl Fn(T) -> Item,
    ) {
        match read {
            Ok(found) => self.items.extend(found.into_iter().map(item)),
            Err(error) => {
                tracing::warn!(%error, part, "a part of the overview can't be shown");
                self.missing.push(part);
            }
        }
    }
}

/// For a subscriber, or for the selected app.
pub(crate) async fn attention(
    state: &PortalState,
    subscriber: SubscriberId,
    frame: &Frame,
) -> Attention {
    let mut attention = Attention::default();
    let inside = frame.inside.as_ref();
    if let Some(banner) = inside.and_then(|inside| inside.banner.as_ref()) {
        attention.items.push(Item {
            status: bad("Billing"),
            words: banner.sentence.plain(),
            since: None,
            path: Section::Billing.path().to_owned(),
            action: "Go to billing",
        });
    }
    let app: Option<AppId> = inside
        .and_then(|inside| inside.chosen_app())
        .map(|app| app.id);
    let (mailboxes, endpoints, usage) = tokio::join!(
        state.mailboxes.disconnected(subscriber, app, MOST),
        state.webhooks.failing(subscriber, app, MOST),
        state.queue.usage(subscriber),
    );
    attention.add("Disconnected mailboxes", mailboxes, |mailbox| Item {
        status: bad("Disconnected"),
        words: format!(
            "{} ({}): {}.",
            mailbox.email,
            mailbox.app_name,
            why(&mailbox.reason)
        ),
        since: Some(Moment::new(mailbox.at)),
        path: format!("/portal/mailboxes/{}", mailbox.id),
        action: "Reconnect mailbox",
    });
    attention.add("Failing webhooks", endpoints, |endpoint| Item {
        status: bad("Failing"),
        words: format!(
            "{} ({}): {} of {} deliveries failed in 24 h.",
            endpoint.url,
            endpoint.app_name,
            number(endpoint.failures),
            number(endpoint.attempts)
        ),
        since: None,
        path: format!("{}?success=false", path_of(endpoint.id, endpoint.app)),
        action: "View failures",
    });
    let waiting = usage.map(|usage| Vec::from_iter((usage.messages > 0).then_some(usage)));
    attention.add("Waiting messages", waiting, |usage| Item {
        status: Status {
            word: "Waiting",
            class: "busy",
        },
        words: match usage.messages {
            1 => "1 message waiting.".to_owned(),
            messages => format!(
                "{} messages waiting in all apps, including scheduled ones.",
                number(messages)
            ),
        },
        since: None,
        path: "/portal/messages?status=failed_temp".to_owned(),
        action: "View retrying messages",
    });
    attention
}

fn why(reason: &str) -> &'static str {
    match reason {
        "invalid_grant" => "access was withdrawn or has expired",
        "interaction_required" => "the owner must act at the provider",
        "consent_required" => "the owner must consent again",
        "login_required" => "the owner must sign in again",
        _ => "the owner must reconnect it",
    }
}
