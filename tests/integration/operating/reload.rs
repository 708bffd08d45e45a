//! SIGHUP to a real process.

use std::fs;

use serde_json::Value;

use super::request_log::lines;
use crate::command_line::process::{Invocation, certificates, http_client};
use crate::support::database;
use crate::support::patience;
use crate::support::smtp_client::SmtpClient;

/// The lines that say this.
fn said(lines: &[Value], message: &str) -> usize {
    let said = lines.iter().filter(|line| line["message"] == message);
    said.count()
}

const REREAD: &str = "SIGHUP: the settings were read again";

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_reads_again_what_can_be_and_names_the_rest() {
    let url = database::create().await;
    let ((_folder, files), (other_folder, other)) = (certificates(), certificates());
    let settings = other_folder.path().join("mailgate.toml");
    let write = |text: &str| fs::write(&settings, text).unwrap();
    write("[log]\nfilter = \"info\"\n");
    let mut serve = Invocation::serve(&url, &files)
        .argument("--config")
        .argument(&settings)
        .set("LIMITS__SMTP_CONNECTIONS", "100")
        .start();
    let addresses = serve.ready().await;
    let hang_up = async |message: &'static str| {
        let before = said(&lines(&serve), message);
        serve.signal("HUP").await;
        patience::until(message, async || said(&lines(&serve), message) > before).await;
    };
    let ask = async || {
        let url = format!("http://{}/healthz", addresses.http);
        http_client().get(url).send().await.unwrap();
    };
    let debugged = || {
        let lines = lines(&serve);
        lines.iter().filter(|line| line["level"] == "DEBUG").count()
    };

    hang_up(REREAD).await;
    ask().await;
    assert_eq!(debugged(), 0);
    write(
        "[log]\nfilter = \"info,mailgate=debug\"\n[sending]\ndata_seconds = 5\n[portal]\nenabled = false\n",
    );
    let next = "these settings have changed, and take effect at the next start";
    hang_up(next).await;
    let last = lines(&serve);
    let line = last.iter().rfind(|line| line["message"] == next).unwrap();
    assert_eq!(line["settings"], "portal.enabled, sending.data_seconds");
    ask().await;
    patience::until("a line at debug", async || debugged() > 0).await;
    // What isn't in force yet is told again; what is, isn't.
    hang_up(next).await;
    write("[log]\nfilter = \"info,mailgate=debug\"\n[sending]\nno_such_thing = 5\n");
    hang_up("SIGHUP: the settings can't be used; those before stay in force").await;
    fs::remove_file(&settings).unwrap();
    hang_up("SIGHUP: the settings can't be used; those before stay in force").await;

    // At once, and not within a minute.
    fs::copy(&other.certificate, &files.certificate).unwrap();
    hang_up("the changed certificate can't be used; the former one is kept").await;
    fs::copy(&other.key, &files.key).unwrap();
    hang_up("the certificate has changed; new connections see it").await;
    let mut client = SmtpClient::connect(addresses.starttls).await;
    client.reply().await;
    client.command("EHLO client.example").await;
    assert!(client.command("STARTTLS").await.starts_with("220 "));
    let mut client = client.encrypt(&other.ca).await;
    assert!(
        client
            .command("EHLO client.example")
            .await
            .starts_with("250")
    );
    serve.terminate().await;
}

#[tokio::test]
async fn a_hangup_during_the_start_and_the_end_kills_nobody() {
    let url = database::create_empty().await;
    let (_folder, files) = certificates();
    let mut serve = Invocation::serve(&url, &files)
        .set("SHUTDOWN__ANNOUNCE_SECONDS", "1")
        .start();
    let first = serve.logged("mailgate starts").await;
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    assert!(first["commit"].is_string(), "{first}");
    assert_eq!(lines(&serve)[0], first, "it is the first line");
    serve.signal("HUP").await;
    serve.ready().await;
    serve.logged(REREAD).await;
    serve.signal("TERM").await;
    serve.logged("finishing the work in progress").await;
    serve.signal("HUP").await;
    let status = serve.end(crate::command_line::process::END).await;
    assert_eq!(status.code(), Some(0), "{}", serve.stderr());
}
