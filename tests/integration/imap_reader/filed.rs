//! Copies of sent messages for mailboxes whose provider keeps none: in Dovecot, and at a server that misbehaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use serde_json::json;
use tempfile::TempDir;

use super::ADA;
use super::scripted::{GREETING, Server, obedient};
use crate::peers::Provider;
use crate::peers_end_to_end::{REDIRECT_URI, connect};
use crate::replies::reading;
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, StandIn};

const SETTING: &str = "PLUGINS__PLUGIN_B__APPEND_SENT_MAIL";

async fn wait(provider: &Provider, gateway: &Gateway, count: usize) -> Vec<String> {
    gateway
        .eventually("the copies", async |_| {
            provider.filed(ADA, "Sent").len() >= count
        })
        .await;
    provider.filed(ADA, "Sent")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_filed_to_the_byte_and_once() {
    let provider = Provider::start(REDIRECT_URI).await;
    let builder = reading(Gateway::builder(), &provider).set(SETTING, "yes");
    let gateway = builder.start().await;
    connect(&provider, &gateway, ADA).await;
    let fields = json!({ "to": "bob@provider.test", "bcc": ["eve@provider.test"], "subject": "Gr\u{fc}\u{df}e",
                         "body": "na\u{ef}ve\n.dots\n..\n\nFrom here\nlast", "plugin": "plugin_b" });
    let (status, answer) = gateway.send(fields).await;
    assert_eq!(status, 200, "{answer}");
    let filed = wait(&provider, &gateway, 1).await;
    let delivered = provider.wait_for_messages("bob@provider.test", 1).await;
    assert!(delivered[0].ends_with(filed[0].as_bytes()), "{}", filed[0]);
    let header = format!("X-Mailgate-Id: {}\r\n", answer["log_id"].as_str().unwrap());
    assert!(
        filed[0].contains(&header) && !filed[0].contains("eve@"),
        "{}",
        filed[0]
    );
    assert_eq!(provider.seen(ADA, "Sent").await, 1, "as one that was read");

    // Eight bits, and megabytes.
    for (number, body) in [
        "na\u{ef}ve\r\n..\r\n. \r\n\r\nend\r\n".to_owned(),
        "A line that goes on for a while, as lines do.\r\n".repeat(100_000),
    ]
    .iter()
    .enumerate()
    {
        let content =
            format!("From: {ADA}\r\nTo: carol@provider.test\r\nSubject: {number}\r\n\r\n{body}");
        let mut client = SmtpClient::authenticated(&gateway).await;
        let reply = client
            .submit("carol@provider.test", content.as_bytes())
            .await;
        assert!(reply.starts_with("250 2.0.0 "), "{reply}");
        let filed = wait(&provider, &gateway, number + 2).await;
        let delivered = provider
            .wait_for_messages("carol@provider.test", number + 1)
            .await;
        let copy = filed
            .iter()
            .find(|copy| copy.contains(&format!("\r\nSubject: {number}\r\n")));
        assert!(delivered[number].ends_with(copy.unwrap().as_bytes()));
    }
    gateway.stop().await;
    assert_eq!(provider.filed(ADA, "Sent").len(), 3);
}

/// A server whose sent mail is what it was given, or `there` from the beginning.
struct Sent {
    appends: Arc<AtomicUsize>,
    server: Server,
}

impl Sent {
    /// `go` is said to APPEND, and `end` to what it appended.
    async fn start(there: bool, go: &'static str, end: &'static str) -> Self {
        let appends = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&appends);
        // Octets of the literal that are still to come, and of the line end behind it.
        let mut left = 0_usize;
        let server = Server::start(GREETING, move |line| {
            if left > 0 {
                left = left.saturating_sub(line.len() + 2);
                if left > 0 {
                    return String::new();
                }
                counted.fetch_add(1, Ordering::Relaxed);
                return end.to_owned();
            }
            if let Some(size) = line.strip_prefix("APPEND \"Sent\" (\\Seen) {") {
                if go.starts_with('+') {
                    left = size.trim_end_matches('}').parse::<usize>().unwrap() + 2;
                }
                return go.to_owned();
            }
            if line.contains(" HEADER X-Mailgate-Id log_") {
                let is_there = there || counted.load(Ordering::Relaxed) > 0;
                let found = if is_there { " 3" } else { "" };
                return format!("* SEARCH{found}\r\n{{tag}} OK done\r\n");
            }
            if line == "LIST \"\" \"*\"" {
                return "* LIST (\\Sent) \"/\" Sent\r\n{tag} OK done\r\n".to_owned();
            }
            obedient(line)
        })
        .await;
        Self { appends, server }
    }

    /// How often a copy was looked for.
    fn sought(&self) -> usize {
        let said = self.server.said();
        said.iter()
            .filter(|line| line.contains(" HEADER X-Mailgate-Id "))
            .count()
    }

    fn said(&self, what: &str) -> usize {
        let said = self.server.said();
        said.iter().filter(|line| line.starts_with(what)).count()
    }

    async fn gateway(&self, stand_in: &StandIn, folder: &TempDir, file: &str) -> Gateway {
        let mut plugins = self.server.plugins(stand_in, folder.path());
        let plugin = plugins["plugin_b"].as_table_mut().unwrap();
        plugin.insert("keeps_sent_mail".to_owned(), "no".into());
        plugin.insert("append_sent_mail".to_owned(), file.into());
        let gateway = Gateway::builder().plugins(plugins).start().await;
        stand_in.connect(&gateway).await;
        gateway
    }
}

/// The message is sent whatever becomes of its copy, and nobody waits for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_there_or_not_wanted_is_not_made() {
    let (stand_in, folder) = (StandIn::start().await, TempDir::new().unwrap());
    for (there, file, expected) in [
        (true, "yes", 0),
        (false, "yes", 1),
        (false, "no", 0),
        (false, "", 0),
    ] {
        let sent = Sent::start(there, "+ go\r\n", "A6 OK done\r\n").await;
        let gateway = sent.gateway(&stand_in, &folder, file).await;
        // At once, and from the queue.
        stand_in
            .submission
            .once(Stage::Mail, Answer::reply("451 4.3.0 later"));
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{answer}");
        gateway.clock.advance(TimeDelta::hours(1));
        gateway
            .eventually("the second attempt", async |gateway| {
                gateway.spooled().await == 0
            })
            .await;
        if file == "yes" {
            let filed = async |_: &Gateway| sent.sought() == 1 && sent.said("APPEND") == expected;
            gateway.eventually("the copy", filed).await;
        }
        // What is under way ends before it does.
        gateway.stop().await;
        assert_eq!(sent.sought(), usize::from(file == "yes"));
        assert_eq!(
            sent.appends.load(Ordering::Relaxed),
            expected,
            "{there} {file}"
        );
    }
}

/// The first answer to the copy is lost: the second try finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_answer_was_lost_is_not_made_twice() {
    let (stand_in, folder) = (StandIn::start().await, TempDir::new().unwrap());
    let sent = Sent::start(false, "+ go\r\n", "* BYE\r\n").await;
    let gateway = sent.gateway(&stand_in, &folder, "yes").await;
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    gateway
        .eventually("the second try", async |_| sent.sought() == 2)
        .await;
    assert_eq!(sent.appends.load(Ordering::Relaxed), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_copy_loses_no_message() {
    let (stand_in, folder) = (StandIn::start().await, TempDir::new().unwrap());
    for (go, end) in [
        ("{tag} NO [OVERQUOTA] full\r\n", ""),
        ("{tag} NO [TRYCREATE] none\r\n", ""),
        ("{tag} OK without having asked\r\n", ""),
        ("{tag} BAD what?\r\n", ""),
        ("A9 OK of another\r\n", ""),
        ("* BYE\r\n", ""),
        ("\0\0\r\n", ""),
        ("+ go\r\n", "+ go on\r\n"),
        ("+ go\r\n", "A6 NO [OVERQUOTA] full\r\n"),
    ] {
        let sent = Sent::start(false, go, end).await;
        let gateway = sent.gateway(&stand_in, &folder, "yes").await;
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!((status, &answer["status"]), (200, &json!("sent")), "{go:?}");
        gateway
            .eventually("a try", async |_| sent.said("APPEND") > 0)
            .await;
        // A further try isn't waited for.
        gateway.stop().await;
        assert_eq!(sent.said("APPEND"), 1, "{go:?} {end:?}");
    }
    // Several at once from one mailbox each have their own copy.
    let sent = Sent::start(false, "{tag} NO full\r\n", "").await;
    let gateway = sent.gateway(&stand_in, &folder, "yes").await;
    let sends = (0..8).map(|_| stand_in::send(&gateway, "bob@example.com"));
    for (status, answer) in futures_util::future::join_all(sends).await {
        assert_eq!(status, 200, "{answer}");
    }
    gateway
        .eventually("a try of each", async |_| sent.said("APPEND") >= 8)
        .await;
    gateway.stop().await;
}

/// The check for replies finds out when it can be read again; no message costs a log-in and a refresh of the token.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_may_not_be_read_gets_no_copy() {
    // A server that has refused for a short while may take it all the same.
    for (minutes, tried) in [(61, 0), (59, 1)] {
        let (stand_in, folder) = (StandIn::start().await, TempDir::new().unwrap());
        let sent = Sent::start(false, "+ go\r\n", "A6 OK done\r\n").await;
        let gateway = sent.gateway(&stand_in, &folder, "yes").await;
        sqlx::query("UPDATE mailboxes SET reading_refused = 'no', reading_refused_at = $1")
            .bind(gateway.clock.now() - TimeDelta::minutes(minutes))
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
        let is_tried = async |_: &Gateway| sent.said("APPEND") == tried;
        gateway.eventually("a copy, or none", is_tried).await;
        gateway.stop().await;
        assert_eq!(sent.said("APPEND"), tried, "{minutes}");
    }
}
