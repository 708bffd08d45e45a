//! What a look into the sent mail proves, at a provider that files all that it is given: at first its sent mail is
//! empty.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use mailgate_sandbox::certificates;
use mailgate_types::ids::LogId;
use serde_json::{Value, json};
use tempfile::TempDir;
use toml::Table;

use super::held_line::HeldLine;
use crate::command_line::process::{Invocation, http_client};
use crate::command_line::serve::with_plugins;
use crate::imap_reader::scripted::{GREETING, Server, obedient};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::StandIn;
use crate::support::stand_in::submission::{Answer, Stage};

/// A mail client's own copy, which is among the sent mail whatever becomes of the message.
const COPIED: &str = "<copied@client.example>";

/// A submission server and a server of sent mail, with one authority for both.
struct Provider {
    stand_in: StandIn,
    /// The id of a message that is among the sent mail under any Message-ID.
    filed: Arc<Mutex<Option<LogId>>>,
    _sent_mail: Server,
    plugins: Table,
    _folder: TempDir,
}

impl Provider {
    async fn start() -> Self {
        let stand_in = StandIn::start().await;
        let filed: Arc<Mutex<Option<LogId>>> = Arc::default();
        let known = Arc::clone(&filed);
        let sent_mail = Server::start(GREETING, move |line| {
            let id = *known.lock().unwrap();
            let is_filed = line.contains(COPIED) || id.is_some();
            if line == "LIST \"\" \"*\"" {
                "* LIST (\\Sent) \"/\" Sent\r\n{tag} OK done\r\n".to_owned()
            } else if line.starts_with("UID SEARCH") && is_filed {
                "* SEARCH 3\r\n{tag} OK done\r\n".to_owned()
            } else if line.starts_with("UID FETCH") {
                let header = id.map_or_else(String::new, |id| format!("X-Mailgate-Id: {id}\r\n"));
                let length = header.len() + 2;
                format!(
                    "* 3 FETCH (UID 3 BODY[HEADER.FIELDS (X-Mailgate-Id)] {{{length}}}\r\n{header}\r\n)\r\n\
                     {{tag}} OK done\r\n"
                )
            } else {
                obedient(line)
            }
        })
        .await;
        let folder = TempDir::new().unwrap();
        let plugins = sent_mail.plugins(&stand_in, folder.path());
        Self {
            stand_in,
            filed,
            _sent_mail: sent_mail,
            plugins,
            _folder: folder,
        }
    }

    async fn gateway(&self) -> Gateway {
        let gateway = Gateway::builder()
            .plugins(self.plugins.clone())
            .start()
            .await;
        self.stand_in.connect(&gateway).await;
        gateway
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn that_a_malformed_message_id_is_not_found_proves_nothing() {
    let provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let submission = &provider.stand_in.submission;
    let address = crate::support::stand_in::ADDRESS;
    for (header, expected) in [
        ("Message-ID: abc\r\n", "554 "),
        ("Message-ID: <abc>\r\n", "554 "),
        ("Message-ID: <a@b>\r\nMessage-ID: <c@d>\r\n", "554 "),
        // One that is not found was not sent; the gateway's own likewise.
        ("Message-ID: <well@formed.example>\r\n", "250 "),
        ("", "250 "),
    ] {
        submission.once(Stage::Content, Answer::Close);
        let mut client = SmtpClient::authenticated(&gateway).await;
        let content = format!("From: {address}\r\n{header}Subject: x\r\n\r\nx\r\n");
        let reply = client.submit("bob@example.com", content.as_bytes()).await;
        assert!(reply.starts_with(expected), "{header:?}: {reply}");
        let says = if expected == "554 " {
            "may have arrived"
        } else {
            "queued"
        };
        assert!(reply.contains(says), "{header:?}: {reply}");
    }
    assert_eq!(gateway.spooled().await, 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_clients_own_copy_proves_nothing() {
    let provider = Provider::start().await;
    let gateway = provider.gateway().await;
    (provider.stand_in.submission).once(Stage::Content, Answer::Close);
    let mut client = SmtpClient::authenticated(&gateway).await;
    let address = crate::support::stand_in::ADDRESS;
    let content = format!("From: {address}\r\nMessage-ID: {COPIED}\r\nSubject: x\r\n\r\nx\r\n");
    let reply = client.submit("bob@example.com", content.as_bytes()).await;
    assert!(reply.starts_with("554 "), "{reply}");
    assert!(reply.contains("may have arrived"), "{reply}");
    assert_eq!(gateway.logged().await[0].0, "failed_perm");
    gateway.stop().await;
}

/// The message that waits, if it does: its attempts, and whether it may have arrived.
async fn waiting(gateway: &Gateway) -> Option<(i32, bool)> {
    let waiting = "SELECT attempts, outcome_unknown FROM spool WHERE state = 'deferred'";
    sqlx::query_as(waiting)
        .fetch_optional(&mut gateway.database().await)
        .await
        .unwrap()
}

/// A gateway whose connection broke behind the end of a message that is missing from the sent mail.
async fn cut_off(provider: &Provider) -> Gateway {
    let gateway = provider.gateway().await;
    (provider.stand_in.submission).once(Stage::Content, Answer::Close);
    let (status, answer) = crate::support::stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!((status, &answer["status"]), (202, &json!("failed_temp")));
    assert_eq!(waiting(&gateway).await, Some((1, true)));
    gateway
}

/// The gateway has looked for its message, and waits for the provider.
async fn looked_in_vain(gateway: &Gateway) {
    gateway
        .eventually("what it waits for", async |gateway| {
            let (_, why) = gateway.logged().await.remove(0);
            why.is_some_and(|why| why.contains("may still be sending"))
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_again_once_its_provider_must_have_finished_with_it() {
    let provider = Provider::start().await;
    let gateway = cut_off(&provider).await;
    gateway.clock.advance(TimeDelta::minutes(2));
    looked_in_vain(&gateway).await;
    // That was no attempt.
    assert_eq!(waiting(&gateway).await, Some((1, true)));
    assert_eq!(provider.stand_in.submission.messages().len(), 1);
    gateway.clock.advance(TimeDelta::minutes(5));
    gateway
        .eventually("the end", async |gateway| gateway.spooled().await == 0)
        .await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(provider.stand_in.submission.messages().len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_arrives_late_is_not_sent_again() {
    let provider = Provider::start().await;
    let gateway = cut_off(&provider).await;
    gateway.clock.advance(TimeDelta::minutes(2));
    looked_in_vain(&gateway).await;
    *provider.filed.lock().unwrap() = Some(gateway.log_id().await);
    gateway.clock.advance(TimeDelta::minutes(5));
    gateway
        .eventually("the end", async |gateway| gateway.spooled().await == 0)
        .await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(provider.stand_in.submission.messages().len(), 1);
    gateway.stop().await;
}

/// Whatever ends a message that may have arrived, and that nobody can look for any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_arrived_is_never_called_unsent() {
    for (end, expected) in [
        ("app", "The app was deleted"),
        ("mailbox", "no longer connected"),
        ("subscription", "subscription"),
    ] {
        let provider = Provider::start().await;
        let gateway = cut_off(&provider).await;
        let statement = match end {
            // What deletes an app deletes what waits for it, but not what is tried at the moment.
            "app" => "UPDATE spool SET app_id = gen_random_uuid()",
            "mailbox" => {
                "UPDATE mailboxes SET status = 'disconnected', disconnect_reason = 'user_request',
                     disconnected_at = now(), refresh_token_sealed = NULL, access_token_sealed = NULL,
                     access_token_expires_at = NULL
                 WHERE plugin = 'plugin_b'"
            },
            _ => "UPDATE subscribers SET subscription_status = 'canceled'",
        };
        sqlx::raw_sql(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        gateway.clock.advance(TimeDelta::minutes(2));
        gateway
            .eventually("the end", async |gateway| gateway.spooled().await == 0)
            .await;
        let (status, error) = gateway.logged().await.remove(0);
        let error = error.unwrap();
        assert_eq!(status, "failed_perm", "{end}: {error}");
        assert!(error.contains(expected), "{end}: {error}");
        assert!(error.contains("may have arrived"), "{end}: {error}");
        gateway.stop().await;
    }
}

/// The message of a key, at a child or here.
async fn send(gateway: &Gateway, http: SocketAddr) -> Result<(u16, Value), reqwest::Error> {
    let request = http_client()
        .post(format!("http://{http}/send"))
        .header("x-send-key", gateway.app.send_key.expose())
        .header("idempotency-key", "order 17")
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": "bob@example.com",
            "subject": "Hello",
            "body": "It works.",
            "plugin": "plugin_b",
        }));
    let response = request.send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

/// A gateway that was killed while it submitted the message of a key; this one has taken it over, and found nothing.
async fn taken_over(provider: &Provider) -> Gateway {
    let gateway = provider.gateway().await;
    let submission = SocketAddr::from(([127, 0, 0, 1], provider.stand_in.submission.port()));
    let line = HeldLine::start(submission).await;
    let folder = gateway.ca_file.parent().unwrap();
    let files = certificates::ensure(folder, &[], chrono::Utc::now()).unwrap();
    let child = Invocation::serve(&gateway.database_url, &files);
    let child = with_plugins(child, gateway.sandbox.plugins(&gateway.ca_file));
    let mut child = with_plugins(child, provider.plugins.clone())
        .set("PLUGINS__PLUGIN_B__SMTP_PORT", line.port())
        .start();
    let http = child.ready().await.http;
    let calling = send(&gateway, http);
    let killing = async {
        line.waited_at().await;
        child.signal("KILL").await;
    };
    let (told, ()) = tokio::join!(calling, killing);
    assert!(told.is_err(), "{told:?}");
    gateway
        .eventually("the first look", async |gateway| {
            let looked =
                "SELECT count(*) FROM spool WHERE left_by IS NOT NULL AND gateway_id IS NULL";
            let looked = sqlx::query_scalar::<_, i64>(looked);
            looked
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap()
                == 1
        })
        .await;
    // A provider may take its time: that it is missing proves nothing yet.
    assert_eq!(gateway.logged().await, []);
    gateway
}

/// The gateway looks again now; with `late`, as if it were that late.
async fn look_again(gateway: &Gateway, late: bool) {
    let later = if late { "10 minutes" } else { "0" };
    let again = format!(
        "UPDATE spool SET lease_until = now() - interval '1 second', left_by = left_by - interval '{later}'"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(again))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway
        .eventually("what is known of it", async |gateway| {
            !gateway.logged().await.is_empty()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_before_the_submission_the_key_is_free_and_the_repeat_is_sent_once() {
    let provider = Provider::start().await;
    let gateway = taken_over(&provider).await;
    look_again(&gateway, true).await;
    let (status, error) = gateway.logged().await.remove(0);
    assert_eq!(status, "failed_perm");
    assert!(error.unwrap().contains("before the message was sent"));
    let here = gateway.daemon.http_address;
    let (status, answer) = send(&gateway, here).await.unwrap();
    assert_eq!(
        (status, &answer["status"]),
        (200, &json!("sent")),
        "{answer}"
    );
    let (status, again) = send(&gateway, here).await.unwrap();
    assert_eq!((status, &again["log_id"]), (200, &answer["log_id"]));
    assert_eq!(provider.stand_in.submission.messages().len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_a_message_that_its_provider_files_late_was_sent() {
    let provider = Provider::start().await;
    let gateway = taken_over(&provider).await;
    let id = sqlx::query_scalar("SELECT id FROM spool");
    let id = id.fetch_one(&mut gateway.database().await).await.unwrap();
    *provider.filed.lock().unwrap() = Some(LogId(id));
    look_again(&gateway, false).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    // And its key stands for it.
    let (status, answer) = send(&gateway, gateway.daemon.http_address).await.unwrap();
    assert_eq!((status, &answer["log_id"]), (200, &json!(LogId(id))));
    assert!(provider.stand_in.submission.messages().is_empty());
    gateway.stop().await;
}
