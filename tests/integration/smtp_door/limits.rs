//! How much a client may say, how often it may err, and how long it may take.

use super::{RECIPIENT, message, subjects};
use crate::apps::authenticate;
use crate::support::gateway::{Gateway, MAILBOX, create_app};
use crate::support::smtp_client::SmtpClient;

const TOO_LARGE: &str = "552 5.3.4";

#[tokio::test(flavor = "multi_thread")]
async fn a_message_may_have_the_limit_and_not_an_octet_more() {
    const LIMIT: usize = 2_000;
    let gateway = Gateway::builder()
        .set("LIMITS__MESSAGE_BYTES", LIMIT)
        .start()
        .await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client.command("EHLO client.example").await;
    assert!(reply.contains("SIZE 2000"), "{reply}");
    for (size, expected) in [
        (LIMIT + 1, TOO_LARGE),
        (1 << 60, TOO_LARGE),
        (LIMIT, "250 2.1.0"),
    ] {
        let reply = client
            .command(&format!("MAIL FROM:<{MAILBOX}> SIZE={size}"))
            .await;
        assert!(reply.starts_with(expected), "{size}: {reply}");
    }
    client.command("RSET").await;
    let sized = |length: usize| {
        let mut content = message(&format!("{length}"));
        content.extend_from_slice(b"\r\n");
        content.resize(length - 2, b'x');
        content.extend_from_slice(b"\r\n");
        content
    };
    for (length, expected) in [
        (LIMIT + 1, TOO_LARGE),
        (LIMIT * 3, TOO_LARGE),
        (LIMIT, "250 2.0.0 log_"),
    ] {
        let content = sized(length);
        client.begin_data(RECIPIENT).await;
        client.write(&content).await;
        client.write(b".\r\n").await;
        let reply = client.reply().await;
        assert!(reply.starts_with(expected), "DATA {length}: {reply}");
        client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
        client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
        client
            .write(format!("BDAT {length} LAST\r\n").as_bytes())
            .await;
        client.write(&content).await;
        let reply = client.reply().await;
        assert!(reply.starts_with(expected), "BDAT {length}: {reply}");
    }
    assert_eq!(subjects(&gateway), ["2000", "2000"]);
    // Dots that stuffing adds don't count.
    let mut stuffed = message("stuffed");
    stuffed.extend_from_slice(b"\r\n");
    let lines = (LIMIT - stuffed.len()) / 3;
    stuffed.extend_from_slice(&b"..\r\n".repeat(lines));
    assert!(stuffed.len() > LIMIT);
    client.begin_data(RECIPIENT).await;
    client.write(&stuffed).await;
    client.write(b".\r\n").await;
    let reply = client.reply().await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recipients_over_the_limit_are_for_another_message() {
    let gateway = Gateway::builder()
        .set("LIMITS__RECIPIENTS", 2)
        .start()
        .await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
    for (recipient, expected) in [
        ("one@example.com", "250 2.1.5"),
        ("two@example.com", "250 2.1.5"),
        ("three@example.com", "452 4.5.3"),
        ("four@example.com", "452 4.5.3"),
    ] {
        let reply = client.command(&format!("RCPT TO:<{recipient}>")).await;
        assert!(reply.starts_with(expected), "{recipient}: {reply}");
    }
    client.command("DATA").await;
    client.write(&message("two")).await;
    client.write(b"\r\n.\r\n").await;
    let reply = client.reply().await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let arrived = gateway.sandbox.inbox.list(2);
    assert_eq!(arrived.len(), 1);
    assert_eq!(
        arrived[0].envelope_to,
        ["one@example.com", "two@example.com"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_megabyte_of_a_command_is_one_error() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let mut line = vec![b'x'; 1 << 20];
    line.extend_from_slice(b"\r\n");
    client.write(&line).await;
    let reply = client.reply().await;
    assert!(reply.starts_with("500 5.5.2"), "{reply}");
    let reply = client.submit(RECIPIENT, &message("still here")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    // The longest line is still one, the next longer isn't.
    let noop = |length: usize| format!("NOOP {}", "x".repeat(length - 7));
    let reply = client.command(&noop(2_048)).await;
    assert!(reply.starts_with("250 "), "{reply}");
    let reply = client.command(&noop(2_049)).await;
    assert!(reply.starts_with("500 5.5.2"), "{reply}");
    for bare in ["NOOP\nNOOP\r\n", "NOOP\rNOOP\r\n"] {
        client.write(bare.as_bytes()).await;
        let reply = client.reply().await;
        assert!(reply.starts_with("500 5.5.2"), "{bare:?}: {reply}");
    }
    assert!(client.command("NOOP").await.starts_with("250 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_errors_close_the_connection() {
    let gateway = Gateway::builder()
        .set("LIMITS__SMTP_ERRORS", 3)
        .start()
        .await;
    for encrypted in [false, true] {
        let mut client = if encrypted {
            SmtpClient::authenticated(&gateway).await
        } else {
            let mut client = SmtpClient::connect(gateway.starttls_address()).await;
            client.reply().await;
            client
        };
        for _ in 0..3 {
            let reply = client.command("XYZZY").await;
            assert!(reply.starts_with("500 5.5.1"), "{reply}");
        }
        let reply = client.reply().await;
        assert!(reply.starts_with("421 4.7.0"), "{reply}");
        assert_eq!(client.next_reply().await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_number_of_connections() {
    let gateway = Gateway::builder()
        .set("LIMITS__SMTP_CONNECTIONS_PER_ADDRESS", 2)
        .start()
        .await;
    let mut first = SmtpClient::connect(gateway.starttls_address()).await;
    first.reply().await;
    // Both ports count together.
    let second = SmtpClient::connect(gateway.tls_address()).await;
    let mut second = second.encrypt(&gateway.ca_file).await;
    second.reply().await;
    let mut third = SmtpClient::connect(gateway.starttls_address()).await;
    let reply = third.reply().await;
    assert!(reply.starts_with("421 4."), "{reply}");
    assert_eq!(third.next_reply().await, None);
    assert!(first.command("NOOP").await.starts_with("250 "));
    drop(second);
    gateway
        .eventually("a place is given back", async |gateway| {
            let mut client = SmtpClient::connect(gateway.starttls_address()).await;
            client
                .next_reply()
                .await
                .is_some_and(|reply| reply.starts_with("220 "))
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_has_its_number_of_connections() {
    let gateway = Gateway::builder()
        .set("LIMITS__SMTP_CONNECTIONS_PER_SUBSCRIBER", 2)
        .start()
        .await;
    let first = SmtpClient::authenticated(&gateway).await;
    let _second = SmtpClient::authenticated(&gateway).await;
    let own = &gateway.app;
    let (mut third, reply) = authenticate(&gateway, &own.slug, own.send_key.expose()).await;
    assert!(reply.starts_with("454 4.7.0 "), "{reply}");
    assert!(third.command("NOOP").await.starts_with("250 "));
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let (_client, reply) = authenticate(&gateway, &other.slug, other.send_key.expose()).await;
    assert!(reply.starts_with("235 "), "{reply}");
    drop(first);
    gateway
        .eventually("a place is given back", async |gateway| {
            let own = &gateway.app;
            let (_, reply) = authenticate(gateway, &own.slug, own.send_key.expose()).await;
            reply.starts_with("235 ")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_told_good_bye() {
    let gateway = Gateway::builder()
        .set("LIMITS__SMTP_COMMAND_SECONDS", 1)
        .set("LIMITS__SMTP_DATA_IDLE_SECONDS", 2)
        .start()
        .await;
    let mut silent = SmtpClient::connect(gateway.starttls_address()).await;
    silent.reply().await;
    let mut in_content = SmtpClient::authenticated(&gateway).await;
    in_content.begin_data(RECIPIENT).await;
    in_content.write(b"From: ").await;
    let mut between = SmtpClient::authenticated(&gateway).await;
    between.write(b"NO").await;
    for client in [&mut silent, &mut between] {
        let reply = client.reply().await;
        assert!(reply.starts_with("421 4.4.2"), "{reply}");
        assert_eq!(client.next_reply().await, None);
    }
    // A message has more time than a command: it is still being received.
    in_content.write(&message("slow")[b"From: ".len()..]).await;
    in_content.write(b"\r\n.\r\n").await;
    let reply = in_content.reply().await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    in_content.begin_data(RECIPIENT).await;
    let reply = in_content.reply().await;
    assert!(reply.starts_with("421 4.4.2"), "{reply}");
    assert_eq!(in_content.next_reply().await, None);
    assert_eq!(subjects(&gateway), ["slow"]);
}

/// Octets that come one by one don't prolong the time, by DATA or by BDAT.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_drop_by_drop_is_cut_off() {
    let gateway = Gateway::builder()
        .set("LIMITS__SMTP_DATA_IDLE_SECONDS", 1)
        .set("LIMITS__MINIMUM_BYTES_PER_SECOND", 1_000_000)
        .start()
        .await;
    let content = message("drops");
    for (start, drop) in [
        ("DATA\r\n", "F"),
        ("BDAT 1000000\r\n", "F"),
        ("", "BDAT 1\r\nxNOOP\r\n"),
    ] {
        let mut client = SmtpClient::authenticated(&gateway).await;
        client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
        client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
        client.write(start.as_bytes()).await;
        let farewell = loop {
            let patience = std::time::Duration::from_millis(20);
            match tokio::time::timeout(patience, client.next_reply()).await {
                Ok(Some(reply)) if reply.starts_with(['2', '3']) => {}
                Ok(farewell) => break farewell,
                // Once it has closed the connection, what it said may be lost with it.
                Err(_) if client.try_write(drop.as_bytes()).await.is_err() => break None,
                Err(_) => {}
            }
        };
        let is_late = farewell
            .as_ref()
            .is_none_or(|it| it.starts_with("421 4.4.2"));
        assert!(is_late, "{start:?}: {farewell:?}");
    }
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client.submit(RECIPIENT, &content).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    assert_eq!(subjects(&gateway), ["drops"]);
}
