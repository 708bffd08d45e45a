//! The octets of DATA and BDAT: where a message ends, and what no message may hold.

use super::{RECIPIENT, message, subjects};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

const MALFORMED: &str = "550 5.6.11";

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn content_is_taken_to_its_end_and_no_further() {
    let gateway = Gateway::start().await;
    only_crlf_dot_crlf_ends_a_message(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    dots_at_line_starts_arrive_as_they_were_before_stuffing(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    a_message_may_come_one_octet_at_a_time(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    chunks_make_a_message(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    chunks_are_as_strict_as_data(&gateway).await;
}

/// Each of these is taken for the end of a message by some server, which makes what follows it a
/// message of its own.
async fn only_crlf_dot_crlf_ends_a_message(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let ends: [&[u8]; 14] = [
        b"\r\n.\r\r\n",
        b"\r\n.\n",
        b"\n.\r\n",
        b"\n.\n",
        b"\r.\r",
        b"\r\n.\r",
        b"\r.\r\n",
        b"\r\r\n.\r\r\n",
        b"\n\n.\r\n",
        b"\n",
        b"\r",
        b"\r\r\n",
        b"\n\r",
        b"\0",
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let mut content = message("smuggler");
        content.extend_from_slice(end);
        content.extend_from_slice(
            b"MAIL FROM:<ada@sandbox.example>\r\nRCPT TO:<eve@example.com>\r\nDATA\r\n",
        );
        content.extend_from_slice(&message("smuggled"));
        let reply = client.submit(RECIPIENT, &content).await;
        assert!(reply.starts_with(MALFORMED), "{number}: {reply}");
        let subject = format!("next {number}");
        let reply = client.submit(RECIPIENT, &message(&subject)).await;
        assert!(reply.starts_with("250 2.0.0"), "{number}: {reply}");
    }
    let expected: Vec<String> = (0..ends.len())
        .map(|number| format!("next {number}"))
        .collect();
    assert_eq!(subjects(gateway), expected);
}

async fn dots_at_line_starts_arrive_as_they_were_before_stuffing(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let lines = [
        ".X-Dotted: first line of all",
        &format!("From: {MAILBOX}"),
        "Subject: dots",
        "",
        ".",
        "..",
        "...",
        "a.",
        ".a",
        "",
        ".",
    ];
    let stuffed: Vec<String> = lines
        .iter()
        .map(|line| {
            if line.starts_with('.') {
                format!(".{line}")
            } else {
                (*line).to_owned()
            }
        })
        .collect();
    let reply = client
        .submit(RECIPIENT, stuffed.join("\r\n").as_bytes())
        .await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let arrived = gateway.arrived().await;
    let text = String::from_utf8_lossy(&arrived[0]);
    let expected = format!("{}\r\n", lines.join("\r\n"));
    assert!(text.ends_with(&expected), "{text}");
}

/// Each octet in a TLS record of its own.
async fn a_message_may_come_one_octet_at_a_time(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    client.begin_data(RECIPIENT).await;
    let mut content = message("drops");
    content.extend_from_slice(b"\r\n..dot\r\n.\r\n");
    for octet in content {
        client.write(&[octet]).await;
    }
    let reply = client.reply().await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let arrived = gateway.arrived().await;
    assert!(
        String::from_utf8_lossy(&arrived[0]).ends_with("It works.\r\n.dot\r\n"),
        "{arrived:?}"
    );
    for octet in *b"NOOP\r\n" {
        client.write(&[octet]).await;
    }
    assert!(client.reply().await.starts_with("250 2.0.0"));
}

async fn chunks_make_a_message(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let content = format!("From: {MAILBOX}\r\nSubject: chunks\r\n\r\n.\r\n..\r\nend\r\n");
    let content = content.as_bytes();
    let length = content.len();
    // Cuts in the middle of a line, between CR and LF, and nothing at all in the last chunk.
    let line_end = content.iter().position(|byte| *byte == b'\r').unwrap() + 1;
    for cuts in [
        vec![length],
        vec![length, length],
        vec![3, length],
        vec![line_end, length],
        vec![line_end, line_end + 1, length - 1, length],
    ] {
        client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
        client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
        let mut start = 0;
        for (number, cut) in cuts.iter().enumerate() {
            let last = if number + 1 == cuts.len() {
                " LAST"
            } else {
                ""
            };
            client
                .write(format!("BDAT {}{last}\r\n", cut - start).as_bytes())
                .await;
            client.write(&content[start..*cut]).await;
            start = *cut;
            let reply = client.reply().await;
            let expected = if last.is_empty() {
                "250 2.0.0 "
            } else {
                "250 2.0.0 log_"
            };
            assert!(reply.starts_with(expected), "{cuts:?}: {reply}");
        }
    }
    let arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), 5);
    for raw in arrived {
        assert!(raw.ends_with(content), "{}", String::from_utf8_lossy(&raw));
    }
}

async fn chunks_are_as_strict_as_data(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    for bad in [&b"a\nb\r\n"[..], b"a\rb\r\n", b"a\r", b"\0\r\n"] {
        client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
        client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
        let mut content = message("bare");
        content.extend_from_slice(b"\r\n");
        content.extend_from_slice(bad);
        client
            .write(format!("BDAT {} LAST\r\n", content.len()).as_bytes())
            .await;
        client.write(&content).await;
        let reply = client.reply().await;
        assert!(reply.starts_with(MALFORMED), "{bad:?}: {reply}");
    }
    // The octets of a chunk that is out of order are no commands.
    client.write(b"BDAT 6\r\nQUIT\r\n").await;
    let reply = client.reply().await;
    assert!(reply.starts_with("503 5.5.1"), "{reply}");
    let reply = client.submit(RECIPIENT, &message("next")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    assert_eq!(subjects(gateway), ["next"]);
}

/// Where that is set. Still nothing but CRLF.CRLF ends a message.
#[tokio::test(flavor = "multi_thread")]
async fn bare_newlines_become_crlf() {
    let gateway = Gateway::builder()
        .set("SMTP__BARE_NEWLINE", "normalize")
        .start()
        .await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let head = format!("From: {MAILBOX}\nSubject: bare\r\n\n");
    let smuggled = "MAIL FROM:<ada@sandbox.example>\r\nRCPT TO:<eve@example.com>\r\nDATA\r\nx";
    for (sent, arrives) in [
        (
            "a\nb\r\nc\n\nd".to_owned(),
            "a\r\nb\r\nc\r\n\r\nd".to_owned(),
        ),
        (
            "a\n..b\n.c\n...".to_owned(),
            "a\r\n.b\r\n.c\r\n..".to_owned(),
        ),
        (
            format!("a\n.\n{smuggled}\n.\r\nb"),
            format!("a\r\n.\r\n{smuggled}\r\n.\r\nb"),
        ),
        (
            format!("a\r\n.\n{smuggled}"),
            format!("a\r\n\r\n{smuggled}"),
        ),
    ] {
        let content = format!("{head}{sent}");
        let reply = client.submit(RECIPIENT, content.as_bytes()).await;
        assert!(reply.starts_with("250 2.0.0 log_"), "{sent:?}: {reply}");
        let arrived = gateway.arrived().await.pop().unwrap();
        let expected = format!(
            "{}{arrives}\r\n",
            head.replace('\r', "").replace('\n', "\r\n")
        );
        let arrived = String::from_utf8(arrived).unwrap();
        assert!(arrived.ends_with(&expected), "{sent:?}: {arrived:?}");
    }
    // Chunks have no dots to stuff.
    let content = format!("{head}a\n..b\n.\nc\r\n");
    client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
    client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
    for octet in content.as_bytes() {
        client.write(b"BDAT 1\r\n").await;
        client.write(&[*octet]).await;
        assert!(client.reply().await.starts_with("250 2.0.0 Chunk"));
    }
    let reply = client.command("BDAT 0 LAST").await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    let arrived = gateway.arrived().await.pop().unwrap();
    let expected = content.replace('\r', "").replace('\n', "\r\n");
    assert!(arrived.ends_with(expected.as_bytes()));
    assert_eq!(gateway.sandbox.inbox.count(), 5);
    for bad in ["a\rb", "a\r\r\nb", "\0", "\r\n.\r\r\nb"] {
        let reply = client
            .submit(RECIPIENT, format!("{head}{bad}").as_bytes())
            .await;
        assert!(reply.starts_with(MALFORMED), "{bad:?}: {reply}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 5);
    gateway.stop().await;
}
