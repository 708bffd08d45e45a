#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

#[test]
fn commands() {
    for (line, expected) in [
        ("EHLO client.example", r#"Ehlo("client.example")"#),
        ("ehlo [192.0.2.1]", r#"Ehlo("[192.0.2.1]")"#),
        ("EHLO [IPv6:2001:db8::1]", r#"Ehlo("[IPv6:2001:db8::1]")"#),
        ("HELO my_pc", r#"Helo("my_pc")"#),
        ("EHLO jörg-pc", r#"Ehlo("jörg-pc")"#),
        ("EHLO Ada's-Mac", r#"Ehlo("Ada's-Mac")"#),
        ("HELO Ada’s Mac (2)", r#"Helo("Ada’s Mac (2)")"#),
        ("StartTLS", "StartTls"),
        ("STARTTLS \t", "StartTls"),
        ("DATA  ", "Data"),
        ("rset", "Rset"),
        ("QUIT", "Quit"),
        ("NOOP", "Noop"),
        ("NOOP whatever you like", "Noop"),
        ("HELP", "Help"),
        ("HELP MAIL", "Help"),
        ("VRFY jane", "Vrfy"),
        ("EXPN list", "Expn"),
        ("BDAT 10", "Bdat { size: 10, last: false }"),
        ("bdat 0 last", "Bdat { size: 0, last: true }"),
        (
            "BDAT 18446744073709551615 LAST",
            "Bdat { size: 18446744073709551615, last: true }",
        ),
        (
            "auth login",
            r#"Auth { mechanism: "LOGIN", initial_response: None }"#,
        ),
        (
            "RCPT TO:<jane@example.com>",
            r#"Rcpt { forward_path: EmailAddress("jane@example.com") }"#,
        ),
        (
            "rcpt to: <a@b>",
            r#"Rcpt { forward_path: EmailAddress("a@b") }"#,
        ),
        (
            "RCPT  TO:<a@b> ",
            r#"Rcpt { forward_path: EmailAddress("a@b") }"#,
        ),
        (
            "RCPT TO:<@x,@y.example:a@b>",
            r#"Rcpt { forward_path: EmailAddress("a@b") }"#,
        ),
        (
            r#"RCPT TO:<"a>b \" c"@d>"#,
            r#"Rcpt { forward_path: EmailAddress("\"a>b \\\" c\"@d") }"#,
        ),
        (
            "RCPT TO:<用户@例子.广告>",
            r#"Rcpt { forward_path: EmailAddress("用户@例子.广告") }"#,
        ),
        (
            "MAIL FROM:<>",
            r#"Mail { reverse_path: "", parameters: MailParameters { size: None, body_8bit: false, smtputf8: false } }"#,
        ),
        (
            "mail from: <@x:a@b> size=5 BODY=8BITMIME SMTPUTF8 AUTH=<>",
            r#"Mail { reverse_path: "@x:a@b", parameters: MailParameters { size: Some(5), body_8bit: true, smtputf8: true } }"#,
        ),
    ] {
        let command = Command::parse(line.as_bytes());
        assert_eq!(format!("{:?}", command.unwrap()), expected, "{line}");
    }
}

// nodemailer/smtp-server#259, KumoCorp/kumomta#77, marlam/msmtp#51
#[test]
fn a_sender_may_be_any() {
    let long = "a".repeat(200);
    for sender in [
        "",
        " ",
        "a@b",
        " a@b ",
        "iloserver01.@example.com",
        "user..name@example.com",
        ".user@example.com",
        "root",
        "root@my_host.example.com",
        "root@localhost.",
        "root@",
        "@printer",
        "cron daemon",
        "Scanner, 2nd floor <root@host",
        "a@b@c",
        "a@[10.0.0.300]",
        "a:b",
        "@x,:y",
        "\"root@host",
        "user\\@host",
        "#@[]",
        "noreply@example.com;",
        &long,
        &format!("{long}@example.com"),
    ] {
        for parameters in ["", " SIZE=5 BODY=8BITMIME"] {
            let command = Command::parse(format!("MAIL FROM:<{sender}>{parameters}").as_bytes());
            let Ok(Command::Mail {
                reverse_path,
                parameters: read,
            }) = command
            else {
                panic!("{sender}: {command:?}");
            };
            assert_eq!(reverse_path, sender.trim());
            assert_eq!(read.body_8bit, !parameters.is_empty(), "{sender}");
        }
    }
    // cosullivan/SmtpServer#166 #219, ChangemakerStudios/Papercut-SMTP#183, blueimp/aws-smtp-relay#7
    for sender in ["a@b", "root", "scanner@x.example", "@printer", "a:b"] {
        for (before, parameters) in [("", ""), (" ", " SIZE=5"), ("  ", " BODY=8BITMIME  SIZE=5")] {
            let line = format!("MAIL FROM:{before}{sender}{parameters}");
            let Ok(Command::Mail { reverse_path, .. }) = Command::parse(line.as_bytes()) else {
                panic!("{line}");
            };
            assert_eq!(reverse_path, sender);
        }
    }
    let utf8 = "MAIL FROM:<\u{fc}ber@my_host>";
    let refused = Command::parse(utf8.as_bytes()).unwrap_err();
    assert_eq!((refused.code(), refused.enhanced()), (553, Some((5, 6, 7))));
    assert!(Command::parse(format!("{utf8} SMTPUTF8").as_bytes()).is_ok());
}

#[test]
fn refused_commands() {
    type Case = (&'static [u8], u16, (u8, u16, u16));
    let cases: &[Case] = &[
        (b"", 500, (5, 5, 2)),
        (b" NOOP", 500, (5, 5, 2)),
        (b"XYZZY", 500, (5, 5, 1)),
        (b"MAILFROM:<a@b>", 500, (5, 5, 1)),
        (b"DATAX", 500, (5, 5, 1)),
        (b"NOOP\0", 500, (5, 5, 2)),
        (b"NOOP a\0b", 500, (5, 5, 2)),
        (b"NOOP \x01", 500, (5, 5, 2)),
        (b"NOOP \x7f", 500, (5, 5, 2)),
        (b"MAIL\tFROM:<a@b>", 500, (5, 5, 2)),
        (b"NOOP \xff", 500, (5, 5, 2)),
        ("NOOP é".as_bytes(), 501, (5, 5, 2)),
        (b"EHLO", 501, (5, 5, 2)),
        (b"HELO", 501, (5, 5, 2)),
        (b"EHLO  ", 501, (5, 5, 2)),
        (b"EHLO j\xf6rg-pc", 500, (5, 5, 2)),
        (b"DATA x", 501, (5, 5, 2)),
        (b"STARTTLS x", 501, (5, 5, 2)),
        (b"RSET x", 501, (5, 5, 2)),
        (b"QUIT x", 501, (5, 5, 2)),
        (b"VRFY", 501, (5, 5, 2)),
        (b"EXPN", 501, (5, 5, 2)),
        (b"AUTH", 501, (5, 5, 2)),
        (b"AUTH PLAIN a b", 501, (5, 5, 2)),
        (b"BDAT", 501, (5, 5, 4)),
        (b"BDAT x", 501, (5, 5, 4)),
        (b"BDAT +1", 501, (5, 5, 4)),
        (b"BDAT 1 MORE", 501, (5, 5, 4)),
        (b"BDAT 1 LAST x", 501, (5, 5, 4)),
        (b"BDAT 99999999999999999999999", 501, (5, 5, 4)),
        (b"MAIL", 501, (5, 5, 2)),
        (b"MAIL FROM", 501, (5, 5, 2)),
        (b"MAIL FROM:", 501, (5, 5, 2)),
        (b"MAIL FROM:a@b>", 501, (5, 5, 2)),
        (b"MAIL FROM: ", 501, (5, 5, 2)),
        (b"MAIL FROM:a@b junk", 555, (5, 5, 4)),
        (b"MAIL FROM:<a@b", 501, (5, 5, 2)),
        (b"MAIL FROM:<a@b>x", 501, (5, 5, 2)),
        (b"MAIL FROM:<a@b>>", 501, (5, 5, 2)),
        (b"MAIL TO:<a@b>", 501, (5, 5, 2)),
        (b"MAIL FROM :<a@b>", 501, (5, 5, 2)),
        (b"MAIL FROM:<<a@b>>", 501, (5, 5, 2)),
        (
            b"MAIL FROM:<a@b> SIZE=99999999999999999999999",
            501,
            (5, 5, 4),
        ),
        (b"MAIL FROM:<a@b> SIZE=x", 501, (5, 5, 4)),
        (b"MAIL FROM:<a@b> BODY=BINARYMIME", 501, (5, 5, 4)),
        (b"MAIL FROM:<a@b> RET=HDRS", 555, (5, 5, 4)),
        (b"MAIL FROM:<a@b> junk", 555, (5, 5, 4)),
        (b"RCPT TO:<>", 501, (5, 1, 3)),
        (b"RCPT TO:<Postmaster>", 501, (5, 1, 3)),
        (b"RCPT TO:<@x:>", 501, (5, 1, 3)),
        (b"RCPT TO:<@x a@b>", 501, (5, 1, 3)),
        (b"RCPT TO:<x:a@b>", 501, (5, 1, 3)),
        (b"RCPT TO:<@-:a@b>", 501, (5, 1, 3)),
        (b"RCPT TO:a@b", 501, (5, 5, 2)),
        (b"RCPT TO:<a@b> junk", 555, (5, 5, 4)),
        (b"RCPT TO:<a@b> NOTIFY=NEVER", 555, (5, 5, 4)),
        (b"RCPT TO:<a@b>,<c@d>", 501, (5, 5, 2)),
        ("RCPT TÖ:<a@b>".as_bytes(), 501, (5, 5, 2)),
        ("RCPT TO€".as_bytes(), 501, (5, 5, 2)),
        (b"RCPT TO:<a@\xff>", 500, (5, 5, 2)),
    ];
    for (line, code, enhanced) in cases {
        let reply = Command::parse(line).unwrap_err();
        let line = String::from_utf8_lossy(line);
        assert_eq!(
            (reply.code(), reply.enhanced()),
            (*code, Some(*enhanced)),
            "{line}"
        );
    }
}

#[test]
fn an_initial_response_is_not_shown() {
    let command = Command::parse(b"AUTH PLAIN AGEAc2VjcmV0").unwrap();
    assert!(
        !format!("{command:?}").contains("AGEAc2VjcmV0"),
        "{command:?}"
    );
}

proptest! {
    #[test]
    fn never_panics(line in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Command::parse(&line);
    }

    #[test]
    fn never_panics_on_what_resembles_a_command(
        line in "(MAIL FROM:|RCPT TO:|BDAT |AUTH |EHLO )[<>@:,\"\\\\ a-c=0-9.é]{0,20}"
    ) {
        let _ = Command::parse(line.as_bytes());
    }
}
