//! Reading a mailbox back over IMAP, with Python's imaplib and a token of its own.

use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Provider;
use super::process;

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
