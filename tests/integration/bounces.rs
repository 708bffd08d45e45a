//! What a bounce does: events, the log, counters, and recipients that mail doesn't reach.

mod kept;
mod suppressed;
mod told;

use mailgate_storage::bounces::NewBounce;
use mailgate_storage::{bounced_messages, suppressions};
use mailgate_types::bounce_type::BounceType;
use mailgate_types::clock::Clock as _;
use mailgate_types::ids::LogId;
use serde_json::Value;

use crate::support::caller::text;
use crate::support::gateway::Gateway;

/// The log id in an answer.
fn log_id(answer: &Value) -> LogId {
    text(answer, "log_id").parse().unwrap()
}

/// Stores that a message has bounced, as what reads mailboxes does.
async fn bounce(gateway: &Gateway, log: LogId, recipient: &str, bounce_type: BounceType) {
    let mut database = gateway.database().await;
    let bounces = [NewBounce {
        key: format!("{log} {recipient} {}", bounce_type.as_str()).into_bytes(),
        log,
        recipient: recipient.to_owned(),
        bounce_type,
        status: Some("5.1.1".to_owned()),
        diagnostic: None,
    }];
    let (credential, now) = (gateway.mailbox.credential, gateway.clock.now());
    let fresh = mailgate_storage::bounces::insert(&mut database, credential, &bounces, now, 100);
    assert_eq!(fresh.await.unwrap().len(), 1);
    if bounce_type == BounceType::Permanent {
        let noted = [(recipient.to_owned(), log)];
        suppressions::note(&mut database, gateway.app.id, &noted, now)
            .await
            .unwrap();
        bounced_messages::mark(&mut database, &[log]).await.unwrap();
    }
}
