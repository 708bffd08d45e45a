//! Messages within a message.

use super::*;

#[test]
fn messages_within_messages_as_deep_as_they_come() {
    for level in [
        "Content-Type: message/rfc822\r\n\r\n",
        "content-type : Message/Global\r\n\r\n",
        "Content-Type:\r\n message/rfc822; x=y\r\n\r\n",
        " Content-Type: message/rfc822\r\n\r\n",
        "Content-Type: (;) message/rfc822\r\n\r\n",
        "Content-Type: multipart/digest; boundary=x#\r\n\r\n--x#\r\n\r\n",
    ] {
        let mut deep = "From: a@x.org\r\n".to_owned();
        for number in 0..60_000 {
            deep.push_str(&level.replace('#', &number.to_string()));
        }
        let encoded = STANDARD.encode(&deep);
        for mime in [
            deep.clone(),
            format!(
                "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n{deep}\r\n--m--\r\n"
            ),
            format!(
                "From: a@x.org\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n{encoded}"
            ),
            format!(
                "From: a@x.org\r\nContent-Type: multipart/digest; boundary=m\r\n\r\n\
                 --m\r\nContent-Transfer-Encoding: base64\r\n\r\n{encoded}\r\n--m--\r\n"
            ),
            // The line isn't in any header that is recognized as one.
            format!("From: a@x.org\r\nContent-Type: text/plain\r\n\r\n{deep}"),
        ] {
            if let Ok(draft) = convert(mime.as_bytes(), &["b@x.org".to_owned()]) {
                let count = draft.attachments.len();
                assert!(count < 3, "{level:?}: {count} files");
                let files = draft.attachments.iter().map(|file| file.content.len());
                let text = draft.fields["body"]["content"].as_str().unwrap().len();
                let all: usize = files.sum::<usize>() + text;
                assert!(all > 1_000_000, "{level:?}: {all} octets are left");
            }
        }
    }
}

#[test]
fn a_message_with_one_within_it_is_one_file_and_what_follows_another() {
    let inner = "Content-Type: message/rfc822\r\nX-A: b\r\n\r\nSubject: innermost\r\n\r\ntext";
    let digested = "Subject: digested\r\n\r\n--not-a-delimiter\r\n";
    let encoded = STANDARD.encode(inner);
    let mime = format!(
        "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=\"m m\"\r\n\r\n\
         --m m\r\nContent-Type: text/plain; name=message.txt\r\n\r\nhello\r\n\
         --m m\r\nContent-Type: multipart/mixed; boundary=n\r\n\r\n\
         --n\r\nContent-Type: message/rfc822\r\nContent-Disposition: attachment; filename=first.eml\r\n\r\n{inner}\r\n\
         --n--\r\n\
         --m m\r\nContent-Type: Multipart/Digest; boundary=d\r\n\r\n--d\r\n\r\n{digested}\r\n--d--\r\n\
         --m m\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n{encoded}\r\n\
         --m m\r\nContent-Type: application/pdf; name=x.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC\r\n\
         --m m--\r\n"
    );
    let draft = converted(&mime, &["b@x.org"]);
    let typed: Vec<_> = draft
        .attachments
        .iter()
        .map(|file| (&*file.name, &*file.content_type, &*file.content))
        .collect();
    let message = "message/rfc822";
    assert_eq!(
        typed,
        [
            ("first.eml", message, inner.as_bytes()),
            ("message-2.eml", message, digested.as_bytes()),
            ("message-3.eml", message, inner.as_bytes()),
            ("x.pdf", "application/pdf", b"\x00\x01\x02"),
        ]
    );
    assert_eq!(draft.fields["body"]["content"], "hello");
    // With a transfer encoding, which isn't allowed (RFC 2046 §5.2.1), and with a name that is already in use.
    let (first, second) = encoded.split_at(40);
    let mime = format!(
        "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: text/x-file; name=mailgate-enclosed-0\r\n\
         Content-Disposition: attachment; filename=mailgate-enclosed-0\r\n\r\nanother\r\n\
         --m\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: \"base64\"\r\n\r\n{first}!\r\n{second}\r\n\
         --m\r\nContent-Type: message/rfc822\r\nContent-Type-Hint: x\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nSubject: =3D=\r\n\r\nx==\r\n\
         --m--\r\n"
    );
    let draft = converted(&mime, &["b@x.org"]);
    let found: Vec<&[u8]> = files(&draft).into_iter().map(|file| file.1).collect();
    let second: &[u8] = b"Subject: =\r\nx=";
    assert_eq!(found, [&b"another"[..], inner.as_bytes(), second]);
    let whole =
        format!("From: a@x.org\r\nSubject: outer\r\nContent-Type: message/rfc822\r\n\r\n{inner}");
    let draft = converted(&whole, &["b@x.org"]);
    assert_eq!(draft.fields["subject"], "outer");
    assert_eq!(*draft.attachments[0].content, *inner.as_bytes());
}
