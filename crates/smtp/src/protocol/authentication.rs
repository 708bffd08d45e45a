//! The SASL exchanges of AUTH (RFC 4954): the server's challenges and the client's responses. The session's driver
//! checks the credentials.

use std::fmt::{Debug, Formatter};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::reply::Reply;

/// The scope in XOAUTH2's error response: Google's, which clients know.
const BEARER_SCOPE: &str = "https://mail.google.com/";

/// An authentication mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// RFC 4616
    Plain,
    /// The de-facto LOGIN: user name and password, each prompted for.
    Login,
    /// Google's XOAUTH2: user name and OAuth 2 bearer token.
    Xoauth2,
}

impl Mechanism {
    /// The name in EHLO and AUTH.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Login => "LOGIN",
            Self::Xoauth2 => "XOAUTH2",
        }
    }
}

/// A client's credentials. Their `Debug` hides the secret.
pub enum Credentials {
    /// A user name and a password.
    Password {
        /// The mechanism that was used.
        mechanism: Mechanism,
        /// The name, as sent.
        username: String,
        /// The password; it may be empty.
        password: SecretString,
    },
    /// A user name and an OAuth 2 access token.
    Bearer {
        /// The name, as sent.
        username: String,
        /// The token.
        token: SecretString,
    },
}

impl Debug for Credentials {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Password {
                mechanism,
                username,
                ..
            } => formatter
                .debug_struct("Password")
                .field("mechanism", mechanism)
                .field("username", username)
                .field("password", &"[masked]")
                .finish(),
            Self::Bearer { username, .. } => formatter
                .debug_struct("Bearer")
                .field("username", username)
                .field("token", &"[masked]")
                .finish(),
        }
    }
}

/// An exchange that waits for the client's next response.
#[derive(Debug)]
pub(super) enum Exchange {
    Plain,
    LoginUsername,
    LoginPassword { username: String },
    Xoauth2,
}

/// The state of an exchange after a response.
#[derive(Debug)]
pub(super) enum Step {
    /// Send this challenge, and continue.
    Challenge(Reply, Exchange),
    /// The credentials are complete.
    Complete(Credentials),
    /// The response is malformed, or the client cancelled.
    Refused(Reply),
    /// The response is well-formed but fails: PLAIN with another authorization identity.
    Failed,
}

impl Exchange {
    pub(super) fn new(mechanism: Mechanism) -> Self {
        match mechanism {
            Mechanism::Plain => Self::Plain,
            Mechanism::Login => Self::LoginUsername,
            Mechanism::Xoauth2 => Self::Xoauth2,
        }
    }

    /// Whether responses may have the length of a token (RFC 4954 §4).
    pub(super) fn takes_tokens(&self) -> bool {
        matches!(self, Self::Xoauth2)
    }

    /// The server's first challenge, for a client that gave no initial response.
    pub(super) fn challenge(self) -> Step {
        let challenge = match self {
            Self::Plain | Self::Xoauth2 => String::new(),
            Self::LoginUsername => STANDARD.encode("Username:"),
            Self::LoginPassword { .. } => STANDARD.encode("Password:"),
        };
        Step::Challenge(Reply::new(334, "", &challenge), self)
    }

    /// Handles the client's initial response, where `=` stands for an empty one.
    pub(super) fn initial_response(self, response: &str) -> Step {
        self.answer(if response == "=" {
            b""
        } else {
            response.as_bytes()
        })
    }

    /// Handles the client's response to a challenge.
    pub(super) fn response(self, line: &[u8]) -> Step {
        if line == b"*" {
            return Step::Refused(Reply::new(501, "5.7.0", "Authentication cancelled"));
        }
        self.answer(line)
    }

    fn answer(self, base64: &[u8]) -> Step {
        let Ok(decoded) = STANDARD.decode(base64) else {
            return Step::Refused(Reply::new(501, "5.5.2", "Response isn't valid base64"));
        };
        let decoded = Zeroizing::new(decoded);
        let step = std::str::from_utf8(&decoded)
            .ok()
            .and_then(|text| match self {
                Self::Plain => plain(text),
                Self::LoginUsername | Self::LoginPassword { .. } if text.contains('\0') => None,
                Self::LoginUsername => Some(
                    Self::LoginPassword {
                        username: text.to_owned(),
                    }
                    .challenge(),
                ),
                Self::LoginPassword { username } => Some(Step::Complete(Credentials::Password {
                    mechanism: Mechanism::Login,
                    username,
                    password: SecretString::from(text),
                })),
                Self::Xoauth2 => xoauth2(text),
            });
        step.unwrap_or_else(|| {
            Step::Refused(Reply::new(
                501,
                "5.5.2",
                "Response doesn't fit the mechanism",
            ))
        })
    }
}

/// `[authzid] NUL authcid NUL password` (RFC 4616 §2).
fn plain(text: &str) -> Option<Step> {
    let mut parts = text.split('\0');
    let (authorization, username, password) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    if !authorization.is_empty() && authorization != username {
        return Some(Step::Failed);
    }
    Some(Step::Complete(Credentials::Password {
        mechanism: Mechanism::Plain,
        username: username.to_owned(),
        password: SecretString::from(password),
    }))
}

fn xoauth2(text: &str) -> Option<Step> {
    let (username, token) = xoauth2_login(text)?;
    Some(Step::Complete(Credentials::Bearer {
        username: username.to_owned(),
        token: SecretString::from(token),
    }))
}

/// The user name and the token of XOAUTH2's response, decoded: `user=NAME ^A auth=Bearer TOKEN ^A ^A`.
#[must_use]
pub fn xoauth2_login(text: &str) -> Option<(&str, &str)> {
    let fields = text.strip_suffix("\u{1}\u{1}")?;
    let (user, authorization) = fields.split_once('\u{1}')?;
    let username = user.strip_prefix("user=")?;
    let (scheme, token) = authorization.strip_prefix("auth=")?.split_once(' ')?;
    let printable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !scheme.eq_ignore_ascii_case("Bearer")
        || !printable
        || username.chars().any(char::is_control)
    {
        return None;
    }
    Some((username, token))
}

/// The challenge that carries XOAUTH2's error response; the client must answer it with a line of any content before it
/// gets the reply itself.
pub(super) fn bearer_refusal() -> Reply {
    Reply::new(334, "", &bearer_error())
}

/// XOAUTH2's error response, in base64.
#[must_use]
pub fn bearer_error() -> String {
    let json = format!(r#"{{"status":"401","schemes":"bearer","scope":"{BEARER_SCOPE}"}}"#);
    STANDARD.encode(json)
}

#[cfg(test)]
mod tests;
