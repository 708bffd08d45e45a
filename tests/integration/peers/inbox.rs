//! Reading a mailbox back over IMAP, with Python's imaplib and a token of its own; and putting
//! messages into one without the way through Postfix.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::process;
use super::{Provider, dovecot};

/// The messages in the inbox, after waiting for `count` of them for at most `patience`.
pub async fn read(
    provider: &Provider,
    account: &str,
    count: usize,
    patience: Duration,
) -> Vec<Vec<u8>> {
    let token = provider.grant(account).await.access_token;
    let mut command = Command::new("python3");
    command
        .arg(super::sources().join("imap_client.py"))
        .arg(&provider.smtp_host)
        .arg(provider.imaps_port.to_string())
        .arg(&provider.ca_file)
        .arg(account)
        .arg(count.to_string())
        .arg(patience.as_secs().to_string());
    let limit = patience + Duration::from_secs(30);
    let output = process::run(command, token.as_bytes(), limit).await;
    assert!(
        output.status.success(),
        "reading the inbox of {account} failed: {}\n{}",
        String::from_utf8_lossy(&output.stderr),
        provider.household.logs(),
    );
    let messages: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    messages
        .iter()
        .map(|message| STANDARD.decode(message).unwrap())
        .collect()
}

/// Puts messages into a mailbox at once, as if they had come at `time`, the first one first.
pub fn put(provider: &Provider, account: &str, name: &str, messages: &[String], time: SystemTime) {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let folder = dovecot::maildir(&provider.household, account, name);
    for part in ["", "tmp", "cur", "new"] {
        fs::create_dir_all(folder.join(part)).unwrap();
        process::give_to(&folder.join(part), "mail");
    }
    // Dovecot numbers them by the names of the files.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap().as_secs();
    for message in messages {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{now}.M{number:06}.tests");
        let written = folder.join("tmp").join(&unique);
        fs::write(&written, message).unwrap();
        let file = fs::File::options().write(true).open(&written).unwrap();
        file.set_modified(time).unwrap();
        fs::rename(written, folder.join("new").join(unique)).unwrap();
    }
}
