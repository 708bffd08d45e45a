//! DATA and BDAT, and the memory they take.

use super::super::transaction::Chunks;
use super::*;
use crate::protocol::data::patience;

/// Octets of memory held for the message in progress; lines stay in the driver's buffer.
fn capacity(session: &Session) -> usize {
    let data = match &session.state {
        State::Data(receiver) => receiver.capacity(),
        _ => 0,
    };
    let chunks = match session
        .transaction
        .as_ref()
        .map(|transaction| &transaction.chunks)
    {
        Some(Chunks::Some(receiver)) => receiver.capacity(),
        _ => 0,
    };
    data + chunks
}

#[test]
fn a_message() {
    check_transaction(
        "DATA\r\nSubject: x\r\n\r\n..\r\nhi\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<c@x>\r\nDATA\r\n.\r\nQUIT\r\n",
        &[
            "354",
            "[c: <a@x> to b@x: \"Subject: x\\r\\n\\r\\n.\\r\\nhi\\r\\n\"]",
            "250 2.0.9",
            "250 2.1.0",
            "[to c@x]",
            "250 2.1.5",
            "354",
            "[c: <> to c@x: \"\"]",
            "250 2.0.9",
            "221 2.0.0",
            "[close]",
        ],
    );
    // 8-bit octets pass without BODY=8BITMIME.
    check_transaction(
        "DATA\r\né\r\n.\r\n",
        &["354", "[c: <a@x> to b@x: \"é\\r\\n\"]", "250 2.0.9"],
    );
    check_authenticated(
        "MAIL FROM:<é@x> BODY=8BITMIME SMTPUTF8 SIZE=100\r\nRCPT TO:<ü@x>\r\nRCPT TO:<c@x>\r\nDATA\r\n.\r\n",
        &[
            "250 2.1.0",
            "[to ü@x]",
            "250 2.1.5",
            "[to c@x]",
            "250 2.1.5",
            "354",
            "[c: <é@x> to ü@x,c@x utf8 8bit: \"\"]",
            "250 2.0.9",
        ],
    );
}

#[test]
fn refused_content() {
    let large = format!("{}\r\n", "x".repeat(60)).repeat(2);
    check_transaction(
        &format!("DATA\r\n{large}.\r\nNOOP\r\n"),
        &["354", "552 5.3.4", "250 2.0.0"],
    );
    for content in [
        "a\nb\r\n",
        "a\rb\r\n",
        "a\0b\r\n",
        "\r\n.\r\r\nQUIT\r\n",
        "\n.\nQUIT\r\n",
        "a\n.\r\nQUIT\r\n",
        "\r\n.\nQUIT\r\n",
    ] {
        check_transaction(
            &format!("DATA\r\n{content}.\r\nNOOP\r\n"),
            &["354", "550 5.6.11", "250 2.0.0"],
        );
        let size = content.len();
        check_transaction(
            &format!("BDAT {size} LAST\r\n{content}MAIL FROM:<>\r\n"),
            &["550 5.6.11", "250 2.1.0"],
        );
    }
    check_transaction(
        &format!("BDAT {} LAST\r\n{large}MAIL FROM:<>\r\n", large.len()),
        &["552 5.3.4", "250 2.1.0"],
    );
}

#[test]
fn chunks() {
    check_transaction(
        "BDAT 5\r\na\r\n.\rBDAT 0\r\nBDAT 4 LAST\r\n\n..bNOOP\r\n",
        &[
            "250 2.0.0",
            "250 2.0.0",
            "[c: <a@x> to b@x: \"a\\r\\n.\\r\\n..b\"]",
            "250 2.0.9",
            "250 2.0.0",
        ],
    );
    check_transaction(
        "BDAT 0 LAST\r\nNOOP\r\n",
        &["[c: <a@x> to b@x: \"\"]", "250 2.0.9", "250 2.0.0"],
    );
    check_transaction(
        "BDAT 1\r\naDATA\r\nRCPT TO:<c@x>\r\nMAIL FROM:<>\r\nRSET\r\nMAIL FROM:<>\r\n",
        &[
            "250 2.0.0",
            "503 5.5.1",
            "503 5.5.1",
            "503 5.5.1",
            "250 2.0.0",
            "250 2.1.0",
        ],
    );
    // After a refused chunk only RSET helps, and no octet of a chunk becomes a command.
    check_transaction(
        "BDAT 3\r\na\nbBDAT 6 LAST\r\nQUIT\r\nDATA\r\nMAIL FROM:<>\r\nRSET\r\nMAIL FROM:<>\r\n",
        &[
            "550 5.6.11",
            "503 5.5.1",
            "503 5.5.1",
            "503 5.5.1",
            "250 2.0.0",
            "250 2.1.0",
        ],
    );
    check_transaction(
        &format!("BDAT 101\r\n{}RSET\r\n", "x".repeat(101)),
        &["552 5.3.4", "250 2.0.0"],
    );
    check_authenticated("BDAT 6\r\nQUIT\r\nNOOP\r\n", &["503 5.5.1", "250 2.0.0"]);
    // Without a size, commands can't be told from content.
    check_transaction("BDAT x\r\nRSET\r\n", &["501 5.5.4", "[close]"]);
    check_transaction(
        "BDAT 99999999999999999999999\r\nRSET\r\n",
        &["501 5.5.4", "[close]"],
    );
}

#[test]
fn endless_content_closes() {
    let endless = "x".repeat(patience(100) + 10);
    let start = format!(
        "EHLO c\r\n{}MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\n",
        auth_plain("good")
    );
    for (client, replies) in [
        (
            format!("{start}DATA\r\n{endless}"),
            vec!["354", "552 5.3.4", "[close]"],
        ),
        (
            format!("{start}BDAT 18446744073709551615\r\n{endless}"),
            vec!["552 5.3.4", "[close]"],
        ),
        (
            format!("BDAT 18446744073709551615\r\n{endless}"),
            vec!["552 5.3.4", "[close]"],
        ),
    ] {
        let whole = run(session(Encryption::Tls), &[client.as_bytes()]);
        assert!(
            short(&whole).ends_with(&replies.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "{whole}"
        );
        let pieces: Vec<&[u8]> = client.as_bytes().chunks(999).collect();
        assert_eq!(run(session(Encryption::Tls), &pieces), whole);
    }
}

#[test]
fn a_command_line_of_a_megabyte_takes_no_memory() {
    let mut session = session(Encryption::Clear);
    let (mut input, mut output) = (BytesMut::with_capacity(4096), Vec::new());
    for _ in 0..1024 {
        input.extend_from_slice(&[b'A'; 1024]);
        assert!(session.advance(&mut input, &mut output).is_none());
        assert_eq!(capacity(&session), 0);
        assert!(
            input.capacity() <= 8192,
            "the buffer grew to {}",
            input.capacity()
        );
        assert!(output.is_empty());
    }
    input.extend_from_slice(b"\r\nNOOP\r\n");
    assert!(session.advance(&mut input, &mut output).is_none());
    assert_eq!(output, b"500 5.5.2 Line too long\r\n250 2.0.0 OK\r\n");
}

/// A session in the middle of DATA, with a message of 500,000 octets declared.
fn receiving() -> (Session, BytesMut, Vec<u8>) {
    let settings = SessionSettings {
        maximum_message: 1_000_000,
        ..settings()
    };
    let mut session = Session::new(Arc::new(settings), Encryption::Tls);
    session.authenticated = true;
    let (mut input, mut output) = (BytesMut::with_capacity(8192), Vec::new());
    input.extend_from_slice(b"MAIL FROM:<a@x> SIZE=500000\r\nRCPT TO:<b@x>\r\nDATA\r\n");
    assert!(matches!(
        session.advance(&mut input, &mut output),
        Some(Event::Recipient(_))
    ));
    session.answer_recipient(Ok(()), &mut output);
    assert!(!session.is_receiving_content());
    assert!(session.advance(&mut input, &mut output).is_none());
    assert!(session.is_receiving_content());
    (session, input, output)
}

#[test]
fn content_taken_in_pieces_is_held_no_longer() {
    let (mut session, mut input, mut output) = receiving();
    let line = [[b'x'; 998].as_slice(), b"\r\n"].concat();
    let (mut taken, mut pieces) = (Vec::new(), 0);
    for _ in 0..500 {
        input.extend_from_slice(&line);
        assert!(session.advance(&mut input, &mut output).is_none());
        assert!(capacity(&session) <= 384 * 1024);
        assert!(input.capacity() <= 16_384);
        if let Some(piece) = session.take_content(100_000) {
            assert_eq!((piece.transaction, piece.octets.len()), (1, 100_000));
            taken.extend(piece.octets);
            pieces += 1;
        }
    }
    input.extend_from_slice(b".\r\n");
    let Some(Event::Message {
        content,
        transaction,
        ..
    }) = session.advance(&mut input, &mut output)
    else {
        panic!("no message");
    };
    assert_eq!((pieces, transaction), (5, 1));
    taken.extend(content);
    assert!(taken == line.repeat(500));
    assert!(session.take_content(1).is_none());
}

#[test]
fn pieces_of_a_refused_message_are_of_another_transaction() {
    let (mut session, mut input, mut output) = receiving();
    input.extend_from_slice(&b"x\r\n".repeat(10));
    assert!(session.advance(&mut input, &mut output).is_none());
    assert_eq!(
        session.take_content(1).map(|piece| piece.transaction),
        Some(1)
    );
    // Its end, and the whole next one, in one go.
    input.extend_from_slice(b"bare\nline\r\n.\r\nMAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\n");
    assert!(matches!(
        session.advance(&mut input, &mut output),
        Some(Event::Recipient(_))
    ));
    session.answer_recipient(Ok(()), &mut output);
    input.extend_from_slice(b"DATA\r\nsecond\r\n.\r\n");
    let Some(Event::Message {
        content,
        transaction,
        ..
    }) = session.advance(&mut input, &mut output)
    else {
        panic!("no message");
    };
    assert_eq!((content.as_slice(), transaction), (&b"second\r\n"[..], 2));
}
