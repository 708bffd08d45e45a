//! What a look into the sent mail proves, at a provider that files all that it is given, and whose sent mail is
//! empty.

use std::net::SocketAddr;

use mailgate_sandbox::certificates;
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

/// A submission server and a server of sent mail, with one authority for both.
struct Provider {
    stand_in: StandIn,
    _sent_mail: Server,
    plugins: Table,
    _folder: TempDir,
}

impl Provider {
    async fn start() -> Self {
        let stand_in = StandIn::start().await;
        let sent_mail = Server::start(GREETING, |line| match line {
            "LIST \"\" \"*\"" => "* LIST (\\Sent) \"/\" Sent\r\n{tag} OK done\r\n".to_owned(),
            _ => obedient(line),
        })
        .await;
        let mut plugins = stand_in.plugins();
        let plugin = plugins["plugin_b"].as_table_mut().unwrap();
        let folder = TempDir::new().unwrap();
        let authorities = folder.path().join("authorities.pem");
        let mut both = std::fs::read(plugin["ca_file"].as_str().unwrap()).unwrap();
        both.extend(std::fs::read(sent_mail.ca_file()).unwrap());
        std::fs::write(&authorities, both).unwrap();
        for (name, value) in [
            ("ca_file", authorities.display().to_string()),
            ("imap_host", "localhost".to_owned()),
            ("keeps_sent_mail", "yes".to_owned()),
        ] {
            plugin.insert(name.to_owned(), value.into());
        }
        plugin.insert("imap_port".to_owned(), i64::from(sent_mail.port()).into());
        Self {
            stand_in,
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

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_before_the_submission_the_key_is_free_and_the_repeat_is_sent_once() {
    let provider = Provider::start().await;
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
        .eventually("what is known of it", async |gateway| {
            !gateway.logged().await.is_empty()
        })
        .await;
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
