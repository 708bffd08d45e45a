//! The body, and the files beside it.

use serde_json::json;

use super::*;

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x01\x02";

#[test]
fn html_before_text_and_files_beside_it() {
    let csv = b"name;gr\xf6\xdfe\r\n=3;4\r\n";
    let mime = format!(
        "From: a@x.org\r\nTo: b@x.org\r\nSubject: s\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: multipart/related; boundary=r\r\n\r\n\
         --r\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
         --a\r\nContent-Type: text/plain\r\n\r\nplain\r\n\
         --a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>rich <img src=\"cid:pic@x\"></p>\r\n\
         --a--\r\n\
         --r\r\nContent-Type: image/png; name=\"pic.png\"\r\nContent-ID: <pic@x>\r\n\
         Content-Disposition: inline\r\nContent-Transfer-Encoding: base64\r\n\r\n{picture}\r\n\
         --r--\r\n\
         --m\r\nContent-Type: text/csv; charset=iso-8859-1\r\n\
         Content-Disposition: attachment; filename*=utf-8''gr%C3%B6%C3%9Fen.csv\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{csv}\r\n\
         --m\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=\"a/b\\\"c.txt\"\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\r\n=3D one =\r\nline\r\nnext\r\n\
         --m\r\nContent-Type: message/rfc822\r\n\r\n\
         From: z@x.org\r\nSubject: inner\r\n\r\ninner text\r\n\
         --m\r\nContent-Type: application/pdf\r\nContent-ID: <file@x>\r\n\
         Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC\r\n\
         --m--\r\n",
        picture = STANDARD.encode(PICTURE),
        csv = STANDARD.encode(csv),
    );
    let draft = converted(&mime, &["b@x.org"]);
    let body = &draft.fields["body"];
    assert_eq!(body["contentType"], "html");
    let html = body["content"].as_str().unwrap();
    assert!(
        html.contains("<p>rich") && !html.contains("plain"),
        "{html}"
    );
    let files: Vec<_> = draft
        .attachments
        .iter()
        .map(|file| {
            let id = file.content_id.as_deref().unwrap_or_default();
            (
                &*file.name,
                &*file.content_type,
                id,
                file.is_inline,
                &*file.content,
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            ("pic.png", "image/png", "pic@x", true, PICTURE),
            ("größen.csv", "text/csv", "", false, &csv[..]),
            ("a/b\"c.txt", "text/plain", "", false, b"= one line\r\nnext"),
            (
                "message-4.eml",
                "message/rfc822",
                "",
                false,
                b"From: z@x.org\r\nSubject: inner\r\n\r\ninner text"
            ),
            (
                "attachment-5",
                "application/pdf",
                "file@x",
                false,
                b"\x00\x01\x02"
            ),
        ]
    );
}

#[test]
fn a_message_that_is_one_file() {
    let draft = converted(
        "From: a@x.org\r\nContent-Type: application/pdf; name=x.pdf\r\n\
         Content-Transfer-Encoding: base64\r\n\r\nAAEC\r\n",
        &["b@x.org"],
    );
    assert_eq!(
        draft.fields["body"],
        json!({"contentType": "text", "content": ""})
    );
    assert_eq!(
        draft.fields["bccRecipients"][0]["emailAddress"]["address"],
        "b@x.org"
    );
    assert_eq!(&*draft.attachments[0].content, b"\x00\x01\x02");
    assert_eq!(draft.attachments[0].name, "x.pdf");
}
