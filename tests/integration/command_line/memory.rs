//! What one large message costs: a message is held once.

use std::fs;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use super::process::{Invocation, http_client, text};
use super::serve::{authenticated, replica};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

/// 25 MiB: `limits.message_bytes`.
const LARGEST: usize = 26_214_400;

/// A message of exactly this many bytes, its last CRLF included. No line begins with a dot.
fn message(bytes: usize) -> Vec<u8> {
    let mut message =
        b"From: ada@sandbox.example\r\nTo: bob@example.com\r\nSubject: Large\r\n\r\n".to_vec();
    let mut line = 0_u64;
    while message.len() + 200 < bytes {
        // No two lines are alike, so that none can be missing, doubled or moved.
        message.extend(format!("{line:076}\r\n").bytes());
        line += 1;
    }
    let last = bytes - message.len() - 2;
    message.extend(std::iter::repeat_n(b'x', last));
    message.extend(b"\r\n");
    assert_eq!(message.len(), bytes);
    message
}

/// Submits a message whose MAIL names no size; answers the reply to it.
async fn submit(client: &mut SmtpClient, message: &[u8]) -> String {
    client.begin_data("bob@example.com").await;
    client.write(message).await;
    client.write(b".\r\n").await;
    client.reply().await
}

/// Warms the process up, and submits the largest message; answers by how much its memory grew at most.
async fn growth(client: &mut SmtpClient, pid: u32, message: &[u8]) -> usize {
    for _ in 0..5 {
        let reply = submit(client, &self::message(10_000)).await;
        assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    }
    // proc_pid_clear_refs(5): 5 sets the peak to what is in use now.
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    let before = peak(pid);
    let begun = Instant::now();
    let reply = submit(client, message).await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    let grown = peak(pid) - before;
    println!(
        "a message of {:.1} MiB: {:.1} MiB before, {:.1} MiB more at the peak, {:.1} s",
        mebibytes(message.len()),
        mebibytes(before),
        mebibytes(grown),
        begun.elapsed().as_secs_f64()
    );
    grown
}

/// `VmHWM`, in bytes.
fn peak(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<usize>().unwrap() * 1_024
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn body(message: &[u8]) -> &[u8] {
    let end = message.windows(4).position(|four| four == b"\r\n\r\n");
    &message[end.unwrap() + 4..]
}

#[tokio::test]
async fn the_largest_message_is_held_once_and_one_byte_more_is_refused() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway).start();
    let addresses = serve.ready().await;
    let mut client = authenticated(&gateway, addresses.starttls).await;
    let largest = message(LARGEST);
    let grown = growth(&mut client, serve.pid(), &largest).await;
    let newest = gateway.sandbox.inbox.list(1)[0].id.clone();
    let arrived = gateway.sandbox.inbox.raw(&newest).await.unwrap().unwrap();
    assert!(body(&arrived) == body(&largest), "byte for byte");
    assert!(
        grown < 2 * LARGEST,
        "{:.1} MiB for a message of {:.1} MiB",
        mebibytes(grown),
        mebibytes(LARGEST)
    );

    let announced = format!("MAIL FROM:<{MAILBOX}> SIZE={}", LARGEST + 1);
    let reply = client.command(&announced).await;
    assert!(reply.starts_with("552 5.3.4 "), "{reply}");
    let reply = submit(&mut client, &message(LARGEST + 1)).await;
    assert!(reply.starts_with("552 5.3.4 "), "{reply}");
    // The session goes on, and what was refused went nowhere.
    let reply = submit(&mut client, &message(1_000)).await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    assert_eq!(gateway.sandbox.inbox.count(), 5 + 1 + 1);
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test]
async fn the_largest_message_through_dev() {
    let folder = TempDir::new().unwrap();
    let mut dev = Invocation::dev(folder.path())
        .argument("--ephemeral")
        .start();
    let dev_json = dev.announced(folder.path()).await;
    let port = dev_json["smtp"]["tls_port"].as_u64().unwrap();
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    let client = SmtpClient::connect(address).await;
    let mut client = client.encrypt(text(&dev_json, "/ca_file").as_ref()).await;
    client.reply().await;
    client.command("EHLO client.example").await;
    let (app_id, send_key) = (
        text(&dev_json, "/app/app_id"),
        text(&dev_json, "/app/send_key"),
    );
    let plain = STANDARD.encode(format!("\0{app_id}\0{send_key}"));
    let reply = client.command(&format!("AUTH PLAIN {plain}")).await;
    assert!(reply.starts_with("235 "), "{reply}");
    let largest = message(LARGEST);
    let grown = growth(&mut client, dev.pid(), &largest).await;
    assert!(
        grown < 2 * LARGEST,
        "{:.1} MiB, the sandbox's part included",
        mebibytes(grown)
    );
    let url = text(&dev_json, "/sandbox_url");
    let http = http_client();
    let messages: serde_json::Value = http
        .get(format!("{url}/messages"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let id = text(&messages, "/0/id");
    let raw = http
        .get(format!("{url}/messages/{id}/raw"))
        .send()
        .await
        .unwrap();
    assert!(
        body(&raw.bytes().await.unwrap()) == body(&largest),
        "byte for byte"
    );
    dev.terminate().await;
}
