//! Authenticates with an access token.

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{Connection, ImapError};
use crate::mail::bearer::{Exchange, Login, Mechanism};

/// Longest command line that every server takes (RFC 2683 §3.2.1.5).
const COMMAND_LINE: usize = 1_000;

impl Connection {
    /// Presents an access token, with the command (RFC 4959) or when prompted. The server rejects it with a
    /// continuation that explains the error; the final status follows only after a response to it.
    pub(in crate::mail::imap) async fn authenticate(
        &mut self,
        username: &str,
        access_token: &SecretString,
    ) -> Result<(), ImapError> {
        let longest = if self.can("SASL-IR").await? {
            COMMAND_LINE
        } else {
            0
        };
        let offered = &self.capabilities;
        let mechanism = Mechanism::among(|name| {
            offered
                .iter()
                .any(|it| it.strip_prefix("AUTH=") == Some(name))
        });
        let login = Login {
            username,
            access_token,
            host: &self.server.host,
            port: self.server.port,
        };
        let mut exchange = Exchange::new(mechanism, login)?;
        let command = exchange.command("AUTHENTICATE", longest);
        // The capabilities may change after login.
        self.capabilities.clear();
        let answer = |challenge: &str| {
            let answer = exchange.answer(challenge)?;
            Some(Zeroizing::new(answer.as_bytes().to_vec()))
        };
        self.converse(command.as_bytes(), answer, |_| {}).await
    }
}
