//! Small messages: as a draft that is sent, or at once where no more was granted.

use mail_parser::MessageParser;

use super::{send, submit};
use crate::support::graph_stand_in::{ADDRESS, Call, GraphStandIn, READ_WRITE, SEND_ONLY};

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_sent_from_both_doors() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    let (status, answer) = send(&gateway).await;
    assert_eq!(
        (status, &answer["status"]),
        (200, &"sent".into()),
        "{answer}"
    );
    let content = format!(
        "From: {ADDRESS}\r\nTo: bob@example.com\r\nSubject: by SMTP\r\nMessage-ID: <m'1@x.org>\r\n\r\n..dot"
    );
    let reply = submit(&gateway, &["bob@example.com"], &content).await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    let sent = stand_in.sent();
    assert_eq!(sent.len(), 2);
    assert_eq!(answer["message_id"], sent[0].message_id);
    let text = String::from_utf8(sent[1].mime.clone()).unwrap();
    assert!(text.starts_with("Received: "), "{text}");
    assert!(text.ends_with("<m'1@x.org>\r\n\r\n.dot\r\n"), "{text}");
    assert_eq!(stand_in.count(Call::SendMail), 0);
    assert_eq!(stand_in.drafts(), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_drafts_it_is_sent_at_once() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(SEND_ONLY).await;
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.sent().len(), 1);
    assert_eq!(stand_in.count(Call::Create), 0);

    // What doesn't fit needs the drafts.
    let line = "a line of a message that is long\r\n";
    let content = format!("From: {ADDRESS}\r\n\r\n{}", line.repeat(100_000));
    let reply = submit(&gateway, &["bob@example.com"], &content).await;
    assert!(
        reply.starts_with("55") && reply.contains("Mail.ReadWrite"),
        "{reply}"
    );
    assert_eq!(stand_in.count(Call::SendMail), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recipients_of_the_envelope_alone_become_bcc() {
    for scope in [READ_WRITE, SEND_ONLY] {
        let (stand_in, gateway) = GraphStandIn::with_gateway(scope).await;
        let content = format!(
            "From: {ADDRESS}\r\nTo: bob@example.com\r\nBcc: own@example.com\r\nSubject: s\r\n\r\nx\r\n"
        );
        let recipients = ["bob@example.com", "eve@example.com"];
        let reply = submit(&gateway, &recipients, &content).await;
        assert!(reply.starts_with("250 "), "{reply}");
        let sent = stand_in.sent();
        let text = String::from_utf8(sent[0].mime.clone()).unwrap();
        assert!(text.starts_with("Bcc: eve@example.com\r\n"), "{text}");
        assert!(!text.contains("own@example.com"), "{text}");
        let parsed = MessageParser::new().parse_headers(&sent[0].mime).unwrap();
        assert_eq!(parsed.all_bcc().count(), 1);

        // Graph sends to all that the headers name, asked or not.
        let reply = submit(&gateway, &["eve@example.com"], &content).await;
        assert!(
            reply.starts_with("55") && reply.contains("bob@example.com"),
            "{reply}"
        );
        assert_eq!(stand_in.sent().len(), 1);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_id_that_exchange_gave_is_told() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    stand_in.rewrite_message_ids("<new@outlook.example>");
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["message_id"], "<new@outlook.example>");
    let stored: Vec<Option<String>> = sqlx::query_scalar("SELECT message_id FROM email_logs")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(stored, [Some("<new@outlook.example>".to_owned())]);
    gateway.stop().await;
}
