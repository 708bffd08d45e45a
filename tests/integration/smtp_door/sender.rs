//! The From header chooses the mailbox, or none.

use mailgate_types::plugin::Plugin;

use super::RECIPIENT;
use crate::support::gateway::{Gateway, MAILBOX, connect, create_app};
use crate::support::smtp_client::SmtpClient;

const NOT_AUTHORIZED: &str = "550 5.7.1 From address not authorized";

fn from(header: &str) -> Vec<u8> {
    format!("{header}To: {RECIPIENT}\r\nSubject: Hello\r\n\r\nIt works.").into_bytes()
}

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn the_from_header_finds_its_mailbox_or_none() {
    let gateway = Gateway::start().await;
    a_from_header_that_matches_no_mailbox_is_refused(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    an_empty_message_has_no_from_and_the_session_goes_on(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    every_way_to_write_the_one_address_is_the_mailbox(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    the_from_header_picks_among_mailboxes_and_the_envelope_does_not(&gateway).await;
}

async fn a_from_header_that_matches_no_mailbox_is_refused(gateway: &Gateway) {
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let (daemon, sandbox) = (&gateway.daemon, &gateway.sandbox);
    connect(
        daemon,
        sandbox,
        other.id,
        None,
        Plugin::A,
        "eve@sandbox.example",
    )
    .await;
    gateway
        .connect(None, Plugin::B, "gone@sandbox.example")
        .await;
    sqlx::query(
        "UPDATE mailboxes SET status = 'disconnected' WHERE email = 'gone@sandbox.example'",
    )
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    let mut client = SmtpClient::authenticated(gateway).await;
    for headers in [
        "From: bob@sandbox.example\r\n".to_owned(),
        "From: eve@sandbox.example\r\n".to_owned(),
        "From: gone@sandbox.example\r\n".to_owned(),
        format!("From: {MAILBOX}.evil.example\r\n"),
        format!("From: x{MAILBOX}\r\n"),
        format!("From: {MAILBOX}\r\nFrom: eve@sandbox.example\r\n"),
        format!("From: eve@sandbox.example\r\nFROM : {MAILBOX}\r\n"),
        format!("From: {MAILBOX}\r\nFrom: {MAILBOX}\r\n"),
        format!("From: {MAILBOX}, eve@sandbox.example\r\n"),
        format!("From: {MAILBOX},\r\n eve@sandbox.example\r\n"),
        format!("From: \"{MAILBOX}\" <eve@sandbox.example>\r\n"),
        format!("From: \"eve@sandbox.example\" <{MAILBOX}>\r\n"),
        format!("From: {MAILBOX} <eve@sandbox.example>\r\n"),
        format!("From: eve@sandbox.example ({MAILBOX})\r\n"),
        format!("From: <{MAILBOX}> <eve@sandbox.example>\r\n"),
    ] {
        let reply = client.submit(RECIPIENT, &from(&headers)).await;
        assert!(reply.starts_with(NOT_AUTHORIZED), "{headers:?}: {reply}");
    }
    for (headers, expected) in [
        (String::new(), "has no From header"),
        (format!("X-From: {MAILBOX}\r\n"), "has no From header"),
        (format!("Sender: {MAILBOX}\r\n"), "has no From header"),
        (
            format!("\r\nFrom: {MAILBOX}\r\n"),
            "an empty line ends the headers",
        ),
        ("From:\r\n".to_owned(), "is empty"),
        ("From: nobody\r\n".to_owned(), "has no address"),
        (
            format!("From: Lovelace, Ada <{MAILBOX}>\r\n"),
            "must be in quotes",
        ),
        (
            format!("From: [JIRA] Ada <{MAILBOX}>\r\n"),
            "must be in quotes",
        ),
        (format!("From: Ada <{MAILBOX}\r\n"), "isn't one address"),
    ] {
        let reply = client.submit(RECIPIENT, &from(&headers)).await;
        assert!(reply.starts_with("550 5.7.1 The "), "{headers:?}: {reply}");
        assert!(reply.contains(expected), "{headers:?}: {reply}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    assert_eq!(gateway.logged().await, []);
    let reply = client
        .submit(RECIPIENT, &from(&format!("From: {MAILBOX}\r\n")))
        .await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
}

async fn an_empty_message_has_no_from_and_the_session_goes_on(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    for content in ["", "\r\n", "\r\n\r\n"] {
        client.begin_data(RECIPIENT).await;
        client.write(format!("{content}.\r\n").as_bytes()).await;
        let reply = client.reply().await;
        let refused = reply.starts_with("550 5.7.1 The message has no From header");
        assert!(refused, "{content:?}: {reply}");
    }
    let reply = client
        .submit(RECIPIENT, &from(&format!("From: {MAILBOX}\r\n")))
        .await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    assert_eq!(gateway.sandbox.inbox.count(), 1);
}

async fn every_way_to_write_the_one_address_is_the_mailbox(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let headers = [
        "From: ada@sandbox.example\r\n",
        "From: <ada@sandbox.example>\r\n",
        "From: Ada Lovelace <ada@sandbox.example>\r\n",
        "From: \"Lovelace, Ada\" <ada@sandbox.example>\r\n",
        "From: \"ada@sandbox.example\" <ada@sandbox.example>\r\n",
        "From: =?utf-8?q?Ad=C3=A4?= <ada@sandbox.example>\r\n",
        "From: Ada <ADA@Sandbox.EXAMPLE>\r\n",
        "FROM:ada@sandbox.example\r\n",
        "from : ada@sandbox.example\r\n",
        "From: Ada\r\n Lovelace\r\n\t<ada@sandbox.example>\r\n",
        "From:\r\n ada@sandbox.example\r\n",
        "From: ada@sandbox.example (Ada)\r\n",
    ];
    for header in headers {
        let reply = client.submit(RECIPIENT, &from(header)).await;
        assert!(reply.starts_with("250 2.0.0"), "{header:?}: {reply}");
    }
    let arrived = gateway.arrived().await;
    for (header, raw) in headers.iter().zip(&arrived) {
        let text = String::from_utf8_lossy(raw);
        assert!(text.contains(header), "{header:?} changed: {text}");
    }
    for arrived in gateway.sandbox.inbox.list(usize::MAX) {
        assert_eq!(arrived.mailbox, MAILBOX);
        assert_eq!(arrived.envelope_from, MAILBOX);
    }
    assert_eq!(arrived.len(), headers.len());
}

async fn the_from_header_picks_among_mailboxes_and_the_envelope_does_not(gateway: &Gateway) {
    gateway
        .connect(None, Plugin::B, "grace@sandbox.example")
        .await;
    let mut client = SmtpClient::authenticated(gateway).await;
    for (envelope, header, plugin) in [
        (MAILBOX, "grace@sandbox.example", "plugin_b"),
        ("grace@sandbox.example", MAILBOX, "plugin_a"),
        ("stranger@example.com", "grace@sandbox.example", "plugin_b"),
        ("", MAILBOX, "plugin_a"),
    ] {
        client.command(&format!("MAIL FROM:<{envelope}>")).await;
        client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
        client.command("DATA").await;
        client.write(&from(&format!("From: {header}\r\n"))).await;
        client.write(b"\r\n.\r\n").await;
        let reply = client.reply().await;
        assert!(
            reply.starts_with("250 2.0.0 log_") && reply.ends_with(&format!(" via {plugin}")),
            "{envelope} {header}: {reply}"
        );
        let arrived = gateway.sandbox.inbox.list(1);
        assert_eq!(arrived[0].mailbox, header);
        assert_eq!(arrived[0].envelope_from, header);
    }
}
