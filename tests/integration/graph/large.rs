//! Messages too large for one request: a draft that is put together.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{submit, try_again};
use crate::support::gateway::Gateway;
use crate::support::graph_stand_in::{ADDRESS, Call, Fault, GraphStandIn, READ_WRITE};

/// Bytes in no order.
fn bytes(count: usize, mut state: u32) -> Vec<u8> {
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(count)
    .collect()
}

fn part(headers: &str, content: &[u8]) -> String {
    let encoded = STANDARD.encode(content);
    let mut part = format!("--m\r\n{headers}Content-Transfer-Encoding: base64\r\n\r\n");
    for line in encoded.as_bytes().chunks(76) {
        part.push_str(std::str::from_utf8(line).unwrap());
        part.push_str("\r\n");
    }
    part
}

/// A message with a file of 8 MB and one of 2 MB.
fn large() -> (String, [Vec<u8>; 2]) {
    let files = [bytes(8_000_001, 1), bytes(2_000_000, 2)];
    let content = format!(
        "From: {ADDRESS}\r\nTo: Bob <bob@example.com>\r\nBcc: own@example.com\r\n\
         Subject: =?utf-8?q?gro=C3=9F?=\r\nMessage-ID: <large@x.org>\r\n\
         In-Reply-To: <before@x.org>\r\nX-Campaign: one\r\n\
         List-Unsubscribe: <https://x.org/u>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n\
         MIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>see <img src=\"cid:p@x\"></p>\r\n\
         {}{}--m--\r\n",
        part(
            "Content-Type: application/zip\r\nContent-Disposition: attachment; filename=\"a b.zip\"\r\n",
            &files[0]
        ),
        part(
            "Content-Type: image/png; name=p.png\r\nContent-ID: <p@x>\r\nContent-Disposition: inline\r\n",
            &files[1]
        ),
    );
    (content, files)
}

const RECIPIENTS: [&str; 2] = ["bob@example.com", "eve@example.com"];

#[tokio::test(flavor = "multi_thread")]
async fn files_arrive_byte_for_byte() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    let (content, files) = large();
    let reply = submit(&gateway, &RECIPIENTS, &content).await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    let sent = stand_in.sent();
    assert_eq!(sent.len(), 1);
    let (fields, kept) = (&sent[0].fields, &sent[0].files);
    assert_eq!(sent[0].message_id, "<large@x.org>");
    assert_eq!(fields["subject"], "groß");
    assert_eq!(fields["body"]["contentType"], "html");
    assert_eq!(
        fields["toRecipients"][0]["emailAddress"]["address"],
        "bob@example.com"
    );
    let bcc = fields["bccRecipients"].as_array().unwrap();
    assert_eq!(bcc.len(), 1, "{fields}");
    assert_eq!(bcc[0]["emailAddress"]["address"], "eve@example.com");
    assert!(!fields.to_string().contains("own@example.com"));
    let headers = fields["internetMessageHeaders"].as_array().unwrap();
    let names: Vec<&str> = (headers.iter())
        .filter_map(|header| header["name"].as_str())
        .collect();
    assert_eq!(names[..2], ["X-Mailgate-Id", "X-Campaign"]);
    let thread = &fields["singleValueExtendedProperties"][0];
    assert_eq!(
        (&thread["id"], &thread["value"]),
        (&"String 0x1042".into(), &"<before@x.org>".into())
    );
    let properties = fields["singleValueExtendedProperties"].as_array().unwrap();
    for (name, value) in [
        ("List-Unsubscribe", "<https://x.org/u>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    ] {
        let id = format!("String {{00020386-0000-0000-C000-000000000046}} Name {name}");
        assert!(
            properties.contains(&json!({ "id": id, "value": value })),
            "{fields}"
        );
    }
    assert_eq!(kept.len(), 2);
    assert!(kept[0].content == files[0] && kept[1].content == files[1]);
    assert_eq!((kept[0].pieces, kept[1].pieces), (3, 0));
    assert_eq!(kept[0].fields["name"], "a b.zip");
    assert_eq!(kept[0].fields["contentType"], "application/zip");
    assert_eq!(kept[1].fields["contentId"], "p@x");
    assert_eq!(kept[1].fields["isInline"], true);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_25_mb_goes_in_as_many_pieces_as_it_takes() {
    let builder = Gateway::builder().set("LIMITS__MESSAGE_BYTES", 40_000_000);
    let (stand_in, gateway) = GraphStandIn::with(READ_WRITE, builder).await;
    let file = bytes(24_000_000, 3);
    let content = format!(
        "From: {ADDRESS}\r\nTo: bob@example.com\r\nSubject: s\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: text/plain\r\n\r\nsee below\r\n{}--m--\r\n",
        part("Content-Type: application/zip; name=a.zip\r\n", &file),
    );
    assert!(content.len() > 30_000_000);
    let reply = submit(&gateway, &["bob@example.com"], &content).await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    let sent = stand_in.sent();
    assert!(sent[0].files[0].content == file);
    assert_eq!(sent[0].files[0].pieces, 7);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_would_be_lost_refuses_the_message() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    let content = format!("Keywords: a\r\nKeywords: b\r\n{}", large().0);
    let reply = submit(&gateway, &RECIPIENTS, &content).await;
    assert!(
        reply.starts_with("55") && reply.contains("its header Keywords would be lost"),
        "{reply}"
    );
    assert_eq!(stand_in.count(Call::Create), 0);
    gateway.stop().await;
}

/// Whole it is sent as it is, signature and all; in pieces the signature would be a loose file.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_signed_goes_whole_or_not_at_all() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    let signed = |text: &str| {
        format!(
            "From: {ADDRESS}\r\nTo: {}\r\nSubject: x\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/signed; protocol=\"application/pgp-signature\"; micalg=pgp-sha256; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/plain\r\n\r\n{text}\r\n\
             --b\r\nContent-Type: application/pgp-signature\r\n\r\nx\r\n--b--\r\n",
            RECIPIENTS.join(", ")
        )
    };
    let reply = submit(&gateway, &RECIPIENTS, &signed("Hello")).await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    let large = signed(&"A line of text that is signed.\r\n".repeat(110_000));
    let reply = submit(&gateway, &RECIPIENTS, &large).await;
    assert!(
        reply.starts_with("554 5.6.3 ") && reply.contains("its multipart/signed would not arrive"),
        "{reply}"
    );
    assert_eq!(stand_in.count(Call::Create), 1);
    let logged = gateway.logged().await;
    assert_eq!(logged.len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_does_not_come_together_is_removed_and_made_anew() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    let (content, files) = large();
    for (number, (call, fault)) in (1..).zip([
        (Call::Session, Fault::error(500, "ErrorInternalServerError")),
        (Call::Upload, Fault::error(401, "")),
        (Call::Upload, Fault::answer(204, "")),
        (Call::Attach, Fault::error(504, "UnknownError").done()),
    ]) {
        stand_in.once(call, fault);
        let reply = submit(&gateway, &RECIPIENTS, &content).await;
        assert!(reply.contains("queued"), "{call:?}: {reply}");
        assert_eq!(stand_in.drafts(), 0, "{call:?}");
        assert_eq!(stand_in.count(Call::Send), number - 1);
        try_again(&gateway).await;
        let sent = stand_in.sent();
        assert_eq!(sent.len(), number);
        assert!(sent[number - 1].files[0].content == files[0]);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_uploaded_in_clear_to_elsewhere() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    stand_in.say_upload_url("http://192.0.2.1/upload/session-1");
    let reply = submit(&gateway, &RECIPIENTS, &large().0).await;
    assert!(reply.contains("queued"), "{reply}");
    let (_, error) = gateway.logged().await.remove(0);
    assert!(error.unwrap().contains("isn't https"));
    assert_eq!((stand_in.drafts(), stand_in.count(Call::Upload)), (0, 0));
    gateway.stop().await;
}
