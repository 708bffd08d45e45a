//! Many commands in one packet, and transactions that begin anew.

use super::{RECIPIENT, message, subjects};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

fn envelope(recipient: &str) -> String {
    format!("MAIL FROM:<{MAILBOX}>\r\nRCPT TO:<{recipient}>\r\nDATA\r\n")
}

async fn expect(client: &mut SmtpClient, replies: &[&str]) {
    for expected in replies {
        let reply = client.reply().await;
        assert!(reply.starts_with(expected), "{expected}: {reply}");
    }
}

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn commands_come_many_at_once() {
    let gateway = Gateway::start().await;
    envelopes_and_messages_come_in_one_packet(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    a_whole_session_under_tls_comes_in_one_packet(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    data_behind_refused_recipients_is_refused(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    rset_and_ehlo_forget_the_transaction_and_not_the_log_in(&gateway).await;
}

async fn envelopes_and_messages_come_in_one_packet(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let taken = ["250 2.1.0", "250 2.1.5", "354 "];
    client.write(envelope(RECIPIENT).as_bytes()).await;
    expect(&mut client, &taken).await;
    // The end of a message and the next one's envelope.
    for number in 0..3 {
        let mut packet = message(&format!("{number}"));
        packet.extend_from_slice(b"\r\n.\r\n");
        packet.extend_from_slice(envelope(RECIPIENT).as_bytes());
        client.write(&packet).await;
        expect(&mut client, &["250 2.0.0 log_"]).await;
        expect(&mut client, &taken).await;
    }
    let mut packet = message("3");
    packet.extend_from_slice(b"\r\n.\r\n");
    // Whole messages without waiting for the 354, and the farewell.
    for number in 4..7 {
        packet.extend_from_slice(envelope(RECIPIENT).as_bytes());
        packet.extend_from_slice(&message(&format!("{number}")));
        packet.extend_from_slice(b"\r\n.\r\n");
    }
    packet.extend_from_slice(b"QUIT\r\n");
    client.write(&packet).await;
    expect(&mut client, &["250 2.0.0 log_"]).await;
    for _ in 4..7 {
        expect(&mut client, &taken).await;
        expect(&mut client, &["250 2.0.0 log_"]).await;
    }
    expect(&mut client, &["221 2.0.0"]).await;
    assert_eq!(client.next_reply().await, None);
    let expected: Vec<String> = (0..7).map(|number| number.to_string()).collect();
    assert_eq!(subjects(gateway), expected);
}

async fn a_whole_session_under_tls_comes_in_one_packet(gateway: &Gateway) {
    let mut client = SmtpClient::encrypted(gateway).await;
    let response = super::plain(&gateway.app.slug, gateway.app.send_key.expose());
    let mut packet = format!("AUTH PLAIN {response}\r\n{}", envelope(RECIPIENT)).into_bytes();
    packet.extend_from_slice(&message("eager"));
    packet.extend_from_slice(b"\r\n.\r\nNOOP\r\n");
    client.write(&packet).await;
    expect(
        &mut client,
        &[
            "235 ",
            "250 2.1.0",
            "250 2.1.5",
            "354 ",
            "250 2.0.0 log_",
            "250 2.0.0",
        ],
    )
    .await;
    assert_eq!(subjects(gateway), ["eager"]);
}

/// The client can't know yet that nobody is left to send to.
async fn data_behind_refused_recipients_is_refused(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    client.write(envelope("no address").as_bytes()).await;
    expect(&mut client, &["250 2.1.0", "501 5.1.3", "554 5.5.1"]).await;
    client.command("RSET").await;
    let reply = client.submit(RECIPIENT, &message("next")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    assert_eq!(subjects(gateway), ["next"]);
}

async fn rset_and_ehlo_forget_the_transaction_and_not_the_log_in(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    for command in ["RSET", "EHLO client.example"] {
        client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
        client.command("RCPT TO:<forgotten@example.com>").await;
        let reply = client.command(command).await;
        assert!(reply.starts_with("250"), "{command}: {reply}");
        let reply = client.command("DATA").await;
        assert!(reply.starts_with("503 5.5.1"), "{command}: {reply}");
        let reply = client.submit(RECIPIENT, &message(command)).await;
        assert!(reply.starts_with("250 2.0.0"), "{command}: {reply}");
        let arrived = gateway.sandbox.inbox.list(1);
        assert_eq!(arrived[0].envelope_to, [RECIPIENT], "{command}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 2);
}
