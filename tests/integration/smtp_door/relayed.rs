//! What of a submission leaves the gateway: the client's own octets but for Bcc, behind one Received
//! header and the log id, to everybody in the envelope.

use super::{RECIPIENT, message};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

/// Cuts the gateway's two headers off, with their folded lines.
fn cut_own_headers(raw: &[u8]) -> (String, &[u8]) {
    let end = (1..raw.len())
        .filter(|at| raw[at - 1] == b'\n' && !matches!(raw[*at], b' ' | b'\t'))
        .nth(1)
        .expect("two headers end");
    (
        String::from_utf8_lossy(&raw[..end]).into_owned(),
        &raw[end..],
    )
}

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_submission_arrives_as_it_was_made() {
    let gateway = Gateway::start().await;
    bcc_goes_in_all_its_forms_and_its_recipients_get_the_message(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    a_message_arrives_octet_for_octet_behind_one_received_header(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    the_envelope_says_who_gets_it_whatever_the_headers_name(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    an_internationalized_message_arrives_as_it_is(&gateway).await;
}

async fn a_message_arrives_octet_for_octet_behind_one_received_header(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let mut content = b"Received: from elsewhere.example\r\n\tby another.example; long ago\r\n\
        DKIM-Signature: v=1;\ta=rsa-sha256;  b=abc==\r\n\
        from:   Ada <ada@sandbox.example>\r\n\
        X-Spaces: trailing  \r\nX-Tab:\tvalue\r\n\
        To: bob@example.com,\r\n  carol@example.com\r\nSubject:no space\r\n\
        X-Bcc: stays\r\nMessage-ID: <octets@client.example>\r\n\
        Date: Tue, 5 Mar 2024 10:00:00 +0100\r\nBcc-Note: stays\r\n\r\n\
        Bcc: body\r\n \r\n\t\r\ntrailing \r\n\r\n\r\n"
        .to_vec();
    content.extend(0x80..=0xff_u8);
    content.extend_from_slice(&[b'x'; 3_000]);
    client
        .command(&format!("MAIL FROM:<{MAILBOX}> BODY=8BITMIME"))
        .await;
    client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
    client.command("DATA").await;
    client.write(&content).await;
    client.write(b"\r\n.\r\n").await;
    let reply = client.reply().await;
    let log_id = reply.split(' ').nth(2).unwrap().to_owned();
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    content.extend_from_slice(b"\r\n");

    let arrived = gateway.arrived().await;
    let (received, rest) = cut_own_headers(&arrived[0]);
    assert_eq!(rest, content, "{}", String::from_utf8_lossy(rest));
    assert!(
        received.starts_with("Received: by localhost with ESMTPSA id "),
        "{received}"
    );
    assert!(received.contains(&log_id), "{log_id}: {received}");
    assert!(
        received.ends_with(&format!("\r\nX-Mailgate-Id: {log_id}\r\n")),
        "{received}"
    );
    for told in ["127.0.0.1", "::1", "client.example", " from "] {
        assert!(!received.contains(told), "{told}: {received}");
    }
}

async fn bcc_goes_in_all_its_forms_and_its_recipients_get_the_message(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let (before, after) = (
        format!(
            "From: {MAILBOX}\r\nMessage-ID: <hidden@client.example>\r\nDate: Tue, 5 Mar 2024 10:00:00 +0100\r\n"
        ),
        format!("To: {RECIPIENT}\r\nSubject: hidden\r\n"),
    );
    let nested = "\r\nBcc: body@example.com\r\n";
    for bcc in [
        "Bcc: hidden@example.com\r\n",
        "BCC: Hidden <hidden@example.com>\r\n",
        "bcc : hidden@example.com\r\n",
        "Bcc:\r\n hidden@example.com,\r\n\tother@example.com\r\n",
        "Bcc: hidden@example.com\r\nBcc: other@example.com\r\n",
        "Bcc: undisclosed:;\r\n",
        "Bcc: \r\n",
        "Bcc:\r\n",
        "Resent-Bcc: hidden@example.com\r\n",
    ] {
        for headers in [
            format!("{before}{bcc}{after}"),
            format!("{bcc}{before}{after}"),
            format!("{before}{after}{bcc}"),
        ] {
            client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
            client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
            client.command("RCPT TO:<hidden@example.com>").await;
            client.command("DATA").await;
            client
                .write(format!("{headers}{nested}.\r\n").as_bytes())
                .await;
            let reply = client.reply().await;
            assert!(reply.starts_with("250 2.0.0"), "{headers:?}: {reply}");
            let newest = gateway.sandbox.inbox.list(1).remove(0);
            assert_eq!(newest.envelope_to, [RECIPIENT, "hidden@example.com"]);
            let raw = gateway
                .sandbox
                .inbox
                .raw(&newest.id)
                .await
                .unwrap()
                .unwrap();
            let (_, rest) = cut_own_headers(&raw);
            assert_eq!(
                String::from_utf8_lossy(rest),
                format!("{before}{after}{nested}"),
                "{headers:?}"
            );
        }
    }
    // Only who asks for the log learns of them.
    let logged: Vec<Vec<String>> =
        sqlx::query_scalar("SELECT DISTINCT bcc_addresses FROM email_logs")
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap();
    assert_eq!(logged, [["hidden@example.com"]]);
}

async fn the_envelope_says_who_gets_it_whatever_the_headers_name(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
    client.command("RCPT TO:<carol@example.com>").await;
    client.command("RCPT TO:<dave@example.com>").await;
    client.command("DATA").await;
    client.write(&message("to others")).await;
    client.write(b"\r\n.\r\n").await;
    let reply = client.reply().await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let arrived = gateway.sandbox.inbox.list(2);
    assert_eq!(arrived.len(), 1);
    assert_eq!(
        arrived[0].envelope_to,
        ["carol@example.com", "dave@example.com"]
    );
}

async fn an_internationalized_message_arrives_as_it_is(gateway: &Gateway) {
    let mut client = SmtpClient::authenticated(gateway).await;
    let content = format!(
        "From: Adä <{MAILBOX}>\r\nTo: jörg@bücher.example\r\nSubject: Grüße\r\n\
         Message-ID: <adä@client.example>\r\nDate: Tue, 5 Mar 2024 10:00:00 +0100\r\n\r\nHallo Jörg.\r\n"
    );

    client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
    let reply = client.command("RCPT TO:<jörg@bücher.example>").await;
    assert!(reply.starts_with("553 5.6.7"), "{reply}");
    client.command("RSET").await;

    client
        .command(&format!("MAIL FROM:<{MAILBOX}> SMTPUTF8 BODY=8BITMIME"))
        .await;
    let reply = client.command("RCPT TO:<jörg@bücher.example>").await;
    assert!(reply.starts_with("250 2.1.5"), "{reply}");
    client.command("DATA").await;
    client.write(format!("{content}.\r\n").as_bytes()).await;
    let reply = client.reply().await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let arrived = gateway.sandbox.inbox.list(2);
    assert_eq!(arrived.len(), 1);
    assert_eq!(arrived[0].envelope_to, ["jörg@bücher.example"]);
    let raw = gateway.arrived().await;
    let (received, rest) = cut_own_headers(&raw[0]);
    assert_eq!(String::from_utf8_lossy(rest), content);
    assert!(received.contains(" with UTF8SMTPSA "), "{received}");
}
