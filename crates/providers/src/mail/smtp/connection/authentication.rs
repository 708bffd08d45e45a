//! Authenticates to a server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::super::reply::Reply;
use super::{Connection, StageError};
use crate::mail::bearer::{Exchange, Login};

/// Longest command line without its CRLF (RFC 5321 §4.5.3.1.4), which AUTH doesn't extend (RFC 4954 §4).
const COMMAND_LINE: usize = 510;

/// A user's credential.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Credential<'a> {
    /// An OAuth access token, by XOAUTH2, or OAUTHBEARER if the server offers only that.
    Token(&'a SecretString),
    /// A password, by PLAIN (RFC 4616), or LOGIN if the server supports nothing else.
    Password(&'a SecretString),
}

impl Connection {
    /// Authenticates with the mechanism for the credential.
    pub(crate) async fn authenticate(
        &mut self,
        username: &str,
        credential: Credential<'_>,
    ) -> Result<(), StageError> {
        let reply = match credential {
            Credential::Token(token) => self.show_token(username, token).await?,
            Credential::Password(password) if self.extensions.plain => {
                let response = format!("\0{username}\0{}", password.expose_secret());
                let response = Zeroizing::new(STANDARD.encode(Zeroizing::new(response).as_bytes()));
                self.ask(&format!("AUTH PLAIN {}", response.as_str()))
                    .await?
            }
            Credential::Password(password) if self.extensions.login => {
                self.log_in(username, password).await?
            }
            Credential::Password(_) => return Err(StageError::NoMechanism(self.host.clone())),
        };
        if reply.code == 235 {
            Ok(())
        } else {
            Err(StageError::Refused(reply))
        }
    }

    /// Presents an access token, with the command or when prompted. The server rejects it with a 334 that explains the
    /// error; the final reply follows only after a response to it.
    async fn show_token(
        &mut self,
        username: &str,
        access_token: &SecretString,
    ) -> Result<Reply, StageError> {
        let login = Login {
            username,
            access_token,
            host: &self.host,
            port: self.port,
        };
        let mut exchange = Exchange::new(self.extensions.bearer, login)?;
        let command = exchange.command("AUTH", COMMAND_LINE);
        let mut reply = self.ask(&command).await?;
        while reply.code == 334
            && let Some(answer) = exchange.answer(&reply.lines.concat())
        {
            reply = self.ask(answer).await?;
        }
        Ok(reply)
    }

    /// LOGIN: user name and password, each when prompted.
    async fn log_in(
        &mut self,
        username: &str,
        password: &SecretString,
    ) -> Result<Reply, StageError> {
        let mut reply = self.ask("AUTH LOGIN").await?;
        for answer in [username, password.expose_secret()] {
            if reply.code != 334 {
                return Ok(reply);
            }
            let answer = Zeroizing::new(STANDARD.encode(answer));
            reply = self.ask(&answer).await?;
        }
        Ok(reply)
    }
}
