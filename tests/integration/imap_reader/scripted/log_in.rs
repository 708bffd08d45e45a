//! Greetings and log-ins that fail, and lines that no server should say.

use super::{Answer, GREETING, IMPATIENCE, PATIENCE, Server, TOO_LONG, obedient};

/// For a failure with these words.
fn patience(expected: &str) -> u32 {
    if expected == TOO_LONG {
        IMPATIENCE
    } else {
        PATIENCE
    }
}

#[tokio::test]
async fn greetings_that_are_none() {
    for (greeting, expected) in [
        ("* BYE [UNAVAILABLE] come back later\r\n", "come back later"),
        ("* PREAUTH you are somebody\r\n", "isn't an IMAP response"),
        ("HTTP/1.1 400 Bad Request\r\n", "isn't an IMAP response"),
        ("220 mail.example ESMTP\r\n", "isn't an IMAP response"),
        ("", TOO_LONG),
        ("* OK half a line", TOO_LONG),
    ] {
        let server = Server::start(greeting, obedient).await;
        let (kind, words) = server.failure(patience(expected)).await;
        assert_eq!(kind, "unavailable", "{greeting}");
        assert!(words.contains(expected), "{greeting}: {words}");
        // Nobody was shown the token.
        assert!(server.said().is_empty(), "{:?}", server.said());
    }
}

#[tokio::test]
async fn refused_log_ins() {
    let answers: [(&str, &str, Answer); 6] = [
        ("unavailable", "UNAVAILABLE later", |_| {
            "{tag} NO [UNAVAILABLE] later\r\n".to_owned()
        }),
        ("unavailable", "too busy", |_| {
            "* BYE too busy\r\n".to_owned()
        }),
        ("unexplained", "what?", |_| "{tag} BAD what?\r\n".to_owned()),
        ("unavailable", TOO_LONG, |_| String::new()),
        ("forbidden", "switched off", |_| {
            "{tag} NO [AUTHORIZATIONFAILED] switched off\r\n".to_owned()
        }),
        ("unexplained", "AUTHENTICATE failed.", |_| {
            "{tag} NO AUTHENTICATE failed.\r\n".to_owned()
        }),
    ];
    for (kind, expected, answer) in answers {
        let server = Server::start(GREETING, answer).await;
        let failure = server.failure(patience(expected)).await;
        assert_eq!(failure.0, kind, "{expected}");
        assert!(failure.1.contains(expected), "{expected}: {}", failure.1);
        assert_eq!(server.said().len(), 1);
    }
}

#[tokio::test]
async fn a_refusal_is_explained_before_it_is_said() {
    // With the initial response at once, and without.
    let server = Server::start(GREETING, |line| match line {
        "" => "{command} NO [AUTHENTICATIONFAILED] no\r\n".to_owned(),
        _ => "+ eyJzdGF0dXMiOiI0MDAifQ==\r\n".to_owned(),
    });
    let server = server.await;
    assert_eq!(server.failure(PATIENCE).await.0, "token refused");
    let said = server.said();
    assert!(
        said[0].starts_with("AUTHENTICATE XOAUTH2 dXNlcj1"),
        "{said:?}"
    );
    assert_eq!(said[1..], [""]);

    let server = Server::start("* OK [CAPABILITY IMAP4rev1] hi\r\n", |line| match line {
        "" => "{command} NO [AUTHENTICATIONFAILED] no\r\n".to_owned(),
        "AUTHENTICATE XOAUTH2" => "+ \r\n".to_owned(),
        _ => "+ eyJzdGF0dXMiOiI0MDAifQ==\r\n".to_owned(),
    });
    let server = server.await;
    assert_eq!(server.failure(PATIENCE).await.0, "token refused");
    let said = server.said();
    assert_eq!(said[0], "AUTHENTICATE XOAUTH2");
    assert!(said[1].starts_with("dXNlcj1"), "{said:?}");
    assert_eq!(said[2..], [""]);

    // One that asks for ever is not answered for ever.
    let server = Server::start(GREETING, |_| "+ more\r\n".to_owned()).await;
    assert_eq!(server.failure(PATIENCE).await.0, "unavailable");
    assert_eq!(server.said().len(), 2);
}

#[tokio::test]
async fn what_no_server_should_say_hurts_nobody() {
    let answers: [(&str, Answer); 7] = [
        ("isn't an IMAP response", |_| {
            "* OK ".to_owned() + &"x".repeat(5_000_000)
        }),
        ("isn't an IMAP response", |_| {
            "* SEARCH ".to_owned() + &"1 ".repeat(2_500_000)
        }),
        ("isn't an IMAP response", |_| {
            "* 1 FETCH (BODY[] {4294967295}\r\n".to_owned()
        }),
        ("isn't an IMAP response", |_| {
            format!("* 1 FETCH (BODYSTRUCTURE {}\r\n", "(".repeat(1_000_000))
        }),
        ("isn't an IMAP response", |_| "A99 OK done\r\n".to_owned()),
        (TOO_LONG, |_| "* OK still here\r\n".repeat(100_000)),
        (TOO_LONG, |_| "* 1 FETCH (BODY[] {60000000}\r\nx".to_owned()),
    ];
    for (expected, answer) in answers {
        let server = Server::start(GREETING, answer).await;
        let (kind, words) = server.failure(patience(expected)).await;
        assert_eq!(kind, "unavailable", "{words}");
        assert!(words.contains(expected), "{words}");
    }
}
