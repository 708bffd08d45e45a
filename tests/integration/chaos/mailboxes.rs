//! Mailboxes with sent mail, in which mail clients save copies of their own; end users whose mailboxes are disconnected meanwhile, so that the billed quantity has something to follow; and what
//! has arrived at the provider made of Postfix and Dovecot.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use mailgate_types::ids::CredentialId;
use mailgate_types::plugin::Plugin;
use memchr::memmem;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toml::Table;

use crate::command_line::process::http_client_trusting;
use crate::crash::clients::Account;
use crate::crash::provider::Arrival;
use crate::peers::Provider;
use crate::peers::process::give_to;
use crate::peers_end_to_end::{self, Encryption};
use crate::support::gateway::Gateway;

/// Mailboxes that nobody sends from.
const OTHERS: usize = 20;

/// A pause before the next one is disconnected, and before one is asked for again.
const PAUSE: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_secs(1);

/// Settings of the provider made of Postfix and Dovecot, whose sent mail is looked into.
pub fn plugins(provider: &Provider) -> Table {
    let mut plugins = peers_end_to_end::plugins(provider, Encryption::Implicit);
    let plugin = plugins["plugin_b"].as_table_mut().unwrap();
    plugin.insert("imap_host".to_owned(), provider.smtp_host.clone().into());
    let port = i64::from(provider.imaps_port);
    plugin.insert("imap_port".to_owned(), port.into());
    plugins
}

/// Makes the folder in which a mail client saves what it sends, as Dovecot does once it is asked for it.
pub fn sent_folder(provider: &Provider, account: &str) -> PathBuf {
    let account = provider.folder().join("dovecot/mail").join(account);
    let sent = account.join(".Sent");
    let parts = ["cur", "new", "tmp"].map(|part| sent.join(part));
    for folder in [&account, &sent].into_iter().chain(&parts) {
        fs::create_dir_all(folder).unwrap();
        give_to(folder, "mail");
    }
    sent.join("cur")
}

/// Connects them, each of an end user of its own.
pub async fn connect_others(gateway: &Gateway) -> Vec<CredentialId> {
    let mut database = gateway.database().await;
    sqlx::query("UPDATE apps SET multiuser = true")
        .execute(&mut database)
        .await
        .unwrap();
    let mut others = Vec::new();
    for number in 0..OTHERS {
        let (user, address) = (
            format!("user-{number}"),
            format!("user-{number}@sandbox.example"),
        );
        let connected = gateway.connect(Some(&user), Plugin::A, &address).await;
        others.push(connected.credential);
    }
    // The clients name no user.
    sqlx::query("UPDATE apps SET multiuser = false")
        .execute(&mut database)
        .await
        .unwrap();
    others
}

/// Disconnects one after the other until `stop`; how many it were.
pub fn disconnect(
    account: Account,
    others: Vec<CredentialId>,
    stop: CancellationToken,
) -> JoinHandle<usize> {
    tokio::spawn(async move {
        let http = http_client_trusting(&account.ca_file);
        let mut disconnected = 0;
        for credential in others {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = stop.cancelled() => return disconnected,
            }
            let url = format!(
                "{}/apps/{}/credentials/{credential}",
                account.base_url, account.pushable_key
            );
            loop {
                let request = http
                    .delete(&url)
                    .header("x-api-secret", &account.api_secret);
                let status = request.send().await.map(|answer| answer.status().as_u16());
                // The one before may have been heard, and its answer lost.
                if matches!(status, Ok(200..300 | 404)) {
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
            disconnected += 1;
        }
        disconnected
    })
}

/// What Dovecot has stored, by marker.
pub fn arrived(provider: &Provider) -> HashMap<String, Vec<Arrival>> {
    let mut arrived = HashMap::<String, Vec<Arrival>>::new();
    let accounts = fs::read_dir(provider.folder().join("dovecot/mail"));
    for account in accounts.into_iter().flatten() {
        for part in ["new", "cur"] {
            let files = fs::read_dir(account.as_ref().unwrap().path().join(part));
            for file in files.into_iter().flatten() {
                let file = file.unwrap();
                let at = file.metadata().unwrap().modified().unwrap();
                let raw = fs::read(file.path()).unwrap();
                let text = String::from_utf8_lossy(&raw);
                let header = |name: &str| {
                    let line = text.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim_matches(['<', '>']).to_owned()
                };
                let marker = header("Subject: ");
                let arrival = Arrival {
                    mailbox: header("Return-Path: "),
                    recipients: vec![header("Delivered-To: ")],
                    markers: memmem::find_iter(&raw, marker.as_bytes()).count(),
                    at: at.into(),
                    log_id: None,
                };
                arrived.entry(marker).or_default().push(arrival);
            }
        }
    }
    arrived
}
