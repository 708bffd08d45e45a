//! SASL mechanisms that present an access token, for any protocol: XOAUTH2, or OAUTHBEARER (RFC 7628).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

/// The longest response in base64, in octets, that every server must accept (RFC 4954 §4).
const LONGEST_RESPONSE: usize = 12_288;

/// A mechanism that presents an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mechanism {
    /// Google's and Microsoft's.
    #[default]
    Xoauth2,
    /// RFC 7628.
    OauthBearer,
}

/// The token, its user, and the server it is presented to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Login<'a> {
    pub(super) username: &'a str,
    pub(super) access_token: &'a SecretString,
    pub(super) host: &'a str,
    pub(super) port: u16,
}

/// The response can't be sent to any server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unspeakable {
    #[error(
        "the provider's access token is too long: {0} octets of base64, where servers accept {LONGEST_RESPONSE}"
    )]
    TooLong(usize),
    #[error("the user name or the provider's access token contains a control character")]
    Control,
}

impl Mechanism {
    /// The mechanism for a server that `offers` some. If it offers neither, XOAUTH2 is tried, and the server's reply
    /// says what is wrong.
    pub(super) fn among(offers: impl Fn(&str) -> bool) -> Self {
        let has = |it: Self| offers(it.name());
        if !has(Self::Xoauth2) && has(Self::OauthBearer) {
            Self::OauthBearer
        } else {
            Self::Xoauth2
        }
    }

    /// Its registered name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Xoauth2 => "XOAUTH2",
            Self::OauthBearer => "OAUTHBEARER",
        }
    }

    /// The response to an error challenge, so that the final reply follows (RFC 7628 §3.2.3).
    fn farewell(self) -> &'static str {
        match self {
            Self::Xoauth2 => "",
            Self::OauthBearer => "AQ==",
        }
    }

    fn response(self, login: Login<'_>) -> Result<Zeroizing<String>, Unspeakable> {
        let Login {
            username,
            access_token,
            host,
            port,
        } = login;
        let token = access_token.expose_secret();
        if [username, token, host]
            .iter()
            .any(|text| text.contains(char::is_control))
        {
            return Err(Unspeakable::Control);
        }
        let response = Zeroizing::new(match self {
            Self::Xoauth2 => format!("user={username}\x01auth=Bearer {token}\x01\x01"),
            Self::OauthBearer => {
                // A saslname (RFC 5801 §4).
                let username = username.replace('=', "=3D").replace(',', "=2C");
                format!(
                    "n,a={username},\x01host={host}\x01port={port}\x01auth=Bearer {token}\x01\x01"
                )
            }
        });
        let response = Zeroizing::new(STANDARD.encode(response.as_bytes()));
        if response.len() > LONGEST_RESPONSE {
            return Err(Unspeakable::TooLong(response.len()));
        }
        Ok(response)
    }
}

/// The client's side of one authentication.
pub(super) struct Exchange {
    mechanism: Mechanism,
    response: Zeroizing<String>,
    state: State,
}

/// How far an exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The token hasn't been sent yet.
    Unshown,
    /// It was sent with the command.
    WithCommand,
    /// It was sent in response to a challenge.
    Shown,
    /// Nothing is left to send.
    Over,
}

impl Exchange {
    /// Prepares the response.
    pub(super) fn new(mechanism: Mechanism, login: Login<'_>) -> Result<Self, Unspeakable> {
        Ok(Self {
            mechanism,
            response: mechanism.response(login)?,
            state: State::Unshown,
        })
    }

    /// The command `verb` with the mechanism, and with the response if the line then has at most `longest` octets.
    pub(super) fn command(&mut self, verb: &str, longest: usize) -> Zeroizing<String> {
        let bare = format!("{verb} {}", self.mechanism.name());
        if bare.len() + 1 + self.response.len() > longest {
            return Zeroizing::new(bare);
        }
        self.state = State::WithCommand;
        Zeroizing::new(format!("{bare} {}", self.response.as_str()))
    }

    /// The response to the server's `challenge` (base64); `None` if there is nothing left to send.
    pub(super) fn answer(&mut self, challenge: &str) -> Option<&str> {
        let challenge = challenge.trim();
        let is_prompt = match self.state {
            // Some servers send text where the challenge should be empty.
            State::Unshown => !is_explanation(challenge),
            // It ignored the response sent with the command.
            State::WithCommand => challenge.is_empty(),
            State::Shown => false,
            State::Over => return None,
        };
        if is_prompt {
            self.state = State::Shown;
            Some(&self.response)
        } else {
            self.state = State::Over;
            Some(self.mechanism.farewell())
        }
    }
}

/// Whether a challenge explains an error, which is a JSON object (RFC 7628 §3.2.2).
fn is_explanation(challenge: &str) -> bool {
    let decoded = STANDARD.decode(challenge).unwrap_or_default();
    decoded.trim_ascii_start().starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(mechanism: Mechanism, username: &str, token: &str) -> Result<String, Unspeakable> {
        let access_token = SecretString::from(token);
        let response = mechanism.response(Login {
            username,
            access_token: &access_token,
            host: "server.example.com",
            port: 587,
        })?;
        let octets = STANDARD.decode(response.as_bytes()).unwrap_or_default();
        Ok(String::from_utf8(octets).unwrap_or_default())
    }

    fn exchange(token: &str) -> Result<Exchange, Unspeakable> {
        let access_token = SecretString::from(token);
        let login = Login {
            username: "ada@x.test",
            access_token: &access_token,
            host: "localhost",
            port: 1,
        };
        Exchange::new(Mechanism::Xoauth2, login)
    }

    #[test]
    fn responses_are_those_of_the_documents() {
        use Mechanism::{OauthBearer, Xoauth2};
        for (mechanism, username, token, expected) in [
            // Google: developers.google.com/workspace/gmail/imap/xoauth2-protocol
            (
                Xoauth2,
                "someuser@example.com",
                "ya29.vF9dft4qmTc2",
                "user=someuser@example.com\u{1}auth=Bearer ya29.vF9dft4qmTc2\u{1}\u{1}",
            ),
            // RFC 7628 §4.1.
            (
                OauthBearer,
                "user@example.com",
                "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==",
                "n,a=user@example.com,\u{1}host=server.example.com\u{1}port=587\u{1}\
                 auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\u{1}\u{1}",
            ),
            (
                OauthBearer,
                "a=b,c@x.test",
                "t",
                "n,a=a=3Db=2Cc@x.test,\u{1}host=server.example.com\u{1}port=587\u{1}auth=Bearer t\u{1}\u{1}",
            ),
            (
                Xoauth2,
                "a=b@x.test",
                "t",
                "user=a=b@x.test\u{1}auth=Bearer t\u{1}\u{1}",
            ),
        ] {
            assert_eq!(decoded(mechanism, username, token).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_no_server_takes_is_not_said() {
        for (username, token) in [
            ("a@x.test", "t\u{1}auth=Bearer u"),
            ("a\u{1}@x.test", "t"),
            ("a@x.test", "t\r\nQUIT"),
            ("a@x.test", "t\0"),
            ("a@x.test", "t\u{7f}"),
        ] {
            for mechanism in [Mechanism::Xoauth2, Mechanism::OauthBearer] {
                let refused = decoded(mechanism, username, token);
                assert_eq!(refused, Err(Unspeakable::Control), "{token:?}");
            }
        }
        // 12,288 octets of base64 encode 9,216 of the response.
        let fits = 9_216 - "user=a@x.test\u{1}auth=Bearer \u{1}\u{1}".len();
        for (length, expected) in [
            (fits, None),
            (fits + 1, Some(12_292)),
            (100_000, Some(133_372)),
        ] {
            let refused = decoded(Mechanism::Xoauth2, "a@x.test", &"t".repeat(length)).err();
            assert_eq!(refused, expected.map(Unspeakable::TooLong), "{length}");
        }
    }

    #[test]
    fn the_mechanism_is_one_that_is_offered() {
        for (offered, expected) in [
            (&["PLAIN", "XOAUTH2", "OAUTHBEARER"][..], "XOAUTH2"),
            (&["OAUTHBEARER", "PLAIN"], "OAUTHBEARER"),
            (&["XOAUTH2"], "XOAUTH2"),
            (&["PLAIN", "LOGIN"], "XOAUTH2"),
            (&[], "XOAUTH2"),
        ] {
            let mechanism = Mechanism::among(|name| offered.contains(&name));
            assert_eq!(mechanism.name(), expected, "{offered:?}");
        }
    }

    /// PHPMailer#3169, angus-mail#155 and #201, MailKit#1343.
    #[test]
    fn long_tokens_wait_to_be_asked_for() -> Result<(), Unspeakable> {
        let json = STANDARD.encode(r#"{"status":"401","schemes":"bearer"}"#);
        let json = json.as_str();
        // Challenges and their responses: the token, the dummy response, or nothing.
        for (length, challenges, expected) in [
            (200, &[][..], &[][..]),
            (200, &[json], &["farewell"]),
            (200, &[""], &["token"]),
            (200, &[" "], &["token"]),
            (200, &["", json], &["token", "farewell"]),
            (200, &["", "", ""], &["token", "farewell", "nothing"]),
            (200, &[json, json], &["farewell", "nothing"]),
            (200, &["bm8="], &["farewell"]),
            (700, &[""], &["token"]),
            (700, &["", json], &["token", "farewell"]),
            (700, &["Go on"], &["token"]),
            (700, &["bm8=", json], &["token", "farewell"]),
            (700, &["", ""], &["token", "farewell"]),
            (8_000, &["", json, json], &["token", "farewell", "nothing"]),
            (8_000, &[json], &["farewell"]),
            (8_000, &[json, ""], &["farewell", "nothing"]),
        ] {
            let mut exchange = exchange(&"t".repeat(length))?;
            let response = exchange.response.to_string();
            let command = exchange.command("AUTH", 510).to_string();
            if length == 200 {
                assert_eq!(command, format!("AUTH XOAUTH2 {response}"));
            } else {
                assert_eq!(command, "AUTH XOAUTH2", "{length}");
            }
            for (challenge, expected) in challenges.iter().zip(expected) {
                let answer = match exchange.answer(challenge) {
                    Some("") => "farewell",
                    Some(answer) if answer == response => "token",
                    Some(_) => "something else",
                    None => "nothing",
                };
                assert_eq!(answer, *expected, "{length}, {challenges:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_command_has_its_longest_line() -> Result<(), Unspeakable> {
        for (length, is_bare) in [(341, false), (342, false), (343, true)] {
            let mut exchange = exchange(&"t".repeat(length))?;
            let command = exchange.command("AUTH", 510);
            assert!(command.len() <= 510);
            assert_eq!(command.as_str() == "AUTH XOAUTH2", is_bare, "{length}");
        }
        Ok(())
    }
}
