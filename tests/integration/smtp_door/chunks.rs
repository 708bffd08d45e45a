//! BDAT: whatever a message's chunks and packets are, what arrives is what was sent.

use super::{RECIPIENT, message};
use crate::peers::clients::{self, Client, Door, Mechanism, Submission};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

/// The largest message.
const LIMIT: usize = 25 * 1024 * 1024;

/// What stands in the body of each: headers of its own, for whoever takes a fragment for the whole.
const DECOY: &str = "From: ada@sandbox.example\r\nSubject: decoy\r\n\r\n";

fn large(length: usize) -> Vec<u8> {
    let mut content = message("large");
    content.extend_from_slice(b"\r\n");
    let mut number = 0;
    while content.len() < length {
        number += 1;
        let line = format!("{DECOY}.{number} is a line that has a dot\r\n");
        content.extend_from_slice(line.as_bytes());
    }
    content.truncate(length - 2);
    if content.last() == Some(&b'\r') {
        content.pop();
        content.push(b'x');
    }
    content.extend_from_slice(b"\r\n");
    content
}

async fn begin(client: &mut SmtpClient) {
    client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
    client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
}

fn chunk(octets: &[u8], is_last: bool) -> Vec<u8> {
    let last = if is_last { " LAST" } else { "" };
    let command = format!("BDAT {}{last}\r\n", octets.len());
    [command.as_bytes(), octets].concat()
}

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_250_means_that_the_bytes_are_identical() {
    let gateway = Gateway::start().await;
    chunks_of_any_size_make_the_message(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    a_reset_ends_a_message_between_its_chunks(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    javamail_sends_in_chunks(&gateway).await;
    gateway.stop().await;
}

async fn chunks_of_any_size_make_the_message(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    for (length, chunks, lock_step) in [
        (300_067, vec![300_000, 67], true),
        (300_067, vec![300_000, 67], false),
        (300_000, vec![300_000, 0], true),
        (800_000, vec![8_192], true),
        (800_000, vec![8_192], false),
        (1_000_000, vec![1, 262_143, 262_145], true),
        (LIMIT, vec![LIMIT - 67], true),
        (LIMIT, vec![700_001], false),
    ] {
        let content = large(length);
        begin(&mut client).await;
        let mut rest = content.as_slice();
        let mut parts = Vec::new();
        for size in chunks.iter().cycle() {
            let (octets, behind) = rest.split_at((*size).min(rest.len()));
            let is_last = behind.is_empty() && (octets.is_empty() || !chunks.contains(&0));
            parts.push(chunk(octets, is_last));
            rest = behind;
            if is_last {
                break;
            }
        }
        let count = parts.len();
        let mut replies = Vec::new();
        if lock_step {
            for part in parts {
                client.write(&part).await;
                replies.push(client.reply().await);
            }
        } else {
            client.write(&parts.concat()).await;
            for _ in 0..count {
                replies.push(client.reply().await);
            }
        }
        let last = replies.pop().unwrap();
        assert!(
            last.starts_with("250 2.0.0 log_"),
            "{length} {chunks:?}: {last}"
        );
        assert!(
            replies
                .iter()
                .all(|reply| reply == "250 2.0.0 Chunk received")
        );
        let arrived = gateway.arrived().await.pop().unwrap();
        assert!(
            arrived.ends_with(&content),
            "{length} {chunks:?}: it was changed"
        );
        gateway.sandbox.inbox.clear().await.unwrap();
    }
}

/// What had been taken of it is no part of the next one.
async fn a_reset_ends_a_message_between_its_chunks(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    for end in ["RSET", "EHLO client.example"] {
        begin(&mut client).await;
        client.write(&chunk(&large(300_000), false)).await;
        assert_eq!(client.reply().await, "250 2.0.0 Chunk received");
        assert!(client.command("NOOP").await.starts_with("250 "));
        assert!(client.command(end).await.starts_with("250"));
        begin(&mut client).await;
        let content = large(300_001);
        client.write(&chunk(&content, true)).await;
        let reply = client.reply().await;
        assert!(reply.starts_with("250 2.0.0 log_"), "{end}: {reply}");
        let arrived = gateway.arrived().await.pop().unwrap();
        let text = String::from_utf8(arrived[..arrived.len() - content.len()].to_vec()).unwrap();
        assert!(arrived.ends_with(&content), "{end}");
        assert!(!text.contains("decoy"), "{end}: {text}");
    }
}

async fn javamail_sends_in_chunks(gateway: &Gateway) {
    // JavaMail itself doubles the dot at the beginning of a line, by BDAT too.
    let content = String::from_utf8(large(600_000)).unwrap();
    let content = content.replace("\r\n.", "\r\n-");
    let door = Door {
        host: "localhost",
        port: gateway.starttls_address().port(),
        implicit_tls: false,
        ca_file: &gateway.ca_file,
    };
    let submission = Submission {
        mechanism: Mechanism::Plain,
        username: &gateway.app.slug,
        password: gateway.app.send_key.expose(),
        from: MAILBOX,
        to: &[RECIPIENT],
        message: &content,
    };
    let outcome = clients::send(Client::JavaMail, door, submission).await;
    assert!(outcome.accepted, "{}", outcome.transcript);
    let chunks = outcome.transcript.matches("BDAT 8192").count();
    assert!(chunks > 50, "{chunks} chunks: {}", outcome.transcript);
    let arrived = gateway.arrived().await.pop().unwrap();
    assert!(arrived.ends_with(content.as_bytes()), "it was changed");
}
