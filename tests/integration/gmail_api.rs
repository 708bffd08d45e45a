//! Gmail's REST interface, by a stand-in of it: what goes out to it, what its failures come to, and
//! how mailboxes are read.

mod emulated;
mod faults;
mod interrupted;
mod reading;
mod sending;

use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::ADDRESS;

/// A message from the stand-in's mailbox by SMTP; answers the reply to it.
async fn submit(gateway: &Gateway, recipients: &[&str], content: &[u8]) -> String {
    let mut client = SmtpClient::authenticated(gateway).await;
    let mut commands = vec![(format!("MAIL FROM:<{ADDRESS}>"), "250 ")];
    commands
        .extend((recipients.iter()).map(|recipient| (format!("RCPT TO:<{recipient}>"), "250 ")));
    commands.push(("DATA".to_owned(), "354 "));
    for (command, code) in commands {
        let reply = client.command(&command).await;
        assert!(reply.starts_with(code), "{command}: {reply}");
    }
    client.write(content).await;
    client.write(b"\r\n.\r\n").await;
    client.reply().await
}

/// A message of about `bytes` bytes, in lines.
fn large(bytes: usize) -> Vec<u8> {
    let line = format!("{}\r\n", "0123456789".repeat(7));
    let mut content =
        format!("From: {ADDRESS}\r\nTo: bob@example.com\r\nSubject: large\r\n\r\n").into_bytes();
    content.extend_from_slice(line.repeat(bytes / line.len()).as_bytes());
    content.extend_from_slice(b"end");
    content
}
