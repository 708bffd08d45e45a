#![expect(clippy::panic, reason = "tests")]

use secrecy::ExposeSecret;

use super::*;

/// The result of one response, in short.
fn outcome(step: Step) -> String {
    match step {
        Step::Challenge(reply, _) => format!("challenge {}", reply.lines().concat()),
        Step::Complete(Credentials::Password {
            mechanism,
            username,
            password,
        }) => format!(
            "{} {username}:{}",
            mechanism.name(),
            password.expose_secret()
        ),
        Step::Complete(Credentials::Bearer { username, token }) => {
            format!("bearer {username}:{}", token.expose_secret())
        }
        Step::Refused(reply) => format!("{}", reply.code()),
        Step::Failed => "failed".to_owned(),
    }
}

#[test]
fn answers() {
    for (mechanism, answer, expected) in [
        (Mechanism::Plain, "\0app\0key", "PLAIN app:key"),
        (Mechanism::Plain, "app\0app\0key", "PLAIN app:key"),
        (Mechanism::Plain, "other\0app\0key", "failed"),
        (Mechanism::Plain, "\0app\0", "PLAIN app:"),
        (Mechanism::Plain, "\0é\0ü", "PLAIN é:ü"),
        (Mechanism::Plain, "app\0key", "501"),
        (Mechanism::Plain, "\0app\0key\0", "501"),
        (Mechanism::Plain, "", "501"),
        (Mechanism::Login, "app", "challenge UGFzc3dvcmQ6"),
        (Mechanism::Login, "", "challenge UGFzc3dvcmQ6"),
        (Mechanism::Login, "a\0b", "501"),
        (
            Mechanism::Xoauth2,
            "user=a@b\u{1}auth=Bearer t.o-k\u{1}\u{1}",
            "bearer a@b:t.o-k",
        ),
        (
            Mechanism::Xoauth2,
            "user=a@b\u{1}auth=bearer t\u{1}\u{1}",
            "bearer a@b:t",
        ),
        (
            Mechanism::Xoauth2,
            "user=a@b\u{1}auth=Basic t\u{1}\u{1}",
            "501",
        ),
        (
            Mechanism::Xoauth2,
            "user=a@b\u{1}auth=Bearer \u{1}\u{1}",
            "501",
        ),
        (Mechanism::Xoauth2, "user=a@b\u{1}auth=Bearer t\u{1}", "501"),
        (Mechanism::Xoauth2, "auth=Bearer t\u{1}\u{1}", "501"),
        (
            Mechanism::Xoauth2,
            "user=a\0b\u{1}auth=Bearer t\u{1}\u{1}",
            "501",
        ),
        (
            Mechanism::Xoauth2,
            "user=a\u{1}auth=Bearer t\u{1}x\u{1}\u{1}",
            "501",
        ),
    ] {
        let base64 = STANDARD.encode(answer);
        assert_eq!(
            outcome(Exchange::new(mechanism).response(base64.as_bytes())),
            expected,
            "{answer:?}"
        );
        let initial = if base64.is_empty() { "=" } else { &base64 };
        assert_eq!(
            outcome(Exchange::new(mechanism).initial_response(initial)),
            expected,
            "{answer:?}"
        );
    }
    for line in ["*", "!", "AGE", "AGE=x", "AGE= ", "/w==", "="] {
        for mechanism in [Mechanism::Plain, Mechanism::Login, Mechanism::Xoauth2] {
            assert_eq!(
                outcome(Exchange::new(mechanism).response(line.as_bytes())),
                "501",
                "{line}"
            );
        }
    }
}

#[test]
fn login_asks_twice() {
    let Step::Challenge(first, exchange) = Exchange::new(Mechanism::Login).challenge() else {
        panic!("no first challenge");
    };
    assert_eq!(first, Reply::new(334, "", "VXNlcm5hbWU6"));
    let Step::Challenge(second, exchange) = exchange.response(b"YXBw") else {
        panic!("no second challenge");
    };
    assert_eq!(second, Reply::new(334, "", "UGFzc3dvcmQ6"));
    assert_eq!(outcome(exchange.response(b"a2V5")), "LOGIN app:key");
}

#[test]
fn the_refusal_of_a_token_is_json() {
    let refusal = bearer_refusal();
    let decoded = STANDARD
        .decode(refusal.lines().concat())
        .unwrap_or_default();
    let json: serde_json::Value = serde_json::from_slice(&decoded).unwrap_or_default();
    assert_eq!(
        (refusal.code(), &json["status"], &json["schemes"]),
        (334, &"401".into(), &"bearer".into())
    );
}

#[test]
fn secrets_are_not_shown() {
    let step = Exchange::new(Mechanism::Plain).initial_response("AGFwcABzZWNyZXQ=");
    assert!(format!("{step:?}").contains("app"));
    let secret = Exchange::new(Mechanism::Xoauth2)
        .initial_response(&STANDARD.encode("user=a@b\u{1}auth=Bearer secret\u{1}\u{1}"));
    for shown in [format!("{step:?}"), format!("{secret:?}")] {
        assert!(
            shown.contains("[masked]") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
