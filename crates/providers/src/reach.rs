//! Checks that the configured servers can be reached, without signing in: for `mailgate check`.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{DATE, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use rustls::pki_types::ServerName;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::mail::smtp::connection::{Connection, Endpoint as Submission};
use super::{proxy, tls};
use mailgate_settings::{Endpoint, SubmissionTls};

/// Longest greeting that is read, in bytes.
const GREETING: usize = 1_024;

/// The approximate size of a response that is read, in bytes.
const TEXT: usize = 64 * 1_024;

/// Why a server can't be reached, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreached(String);

impl Unreached {
    fn by(error: &dyn std::error::Error) -> Self {
        // The reason is in the last of the sources.
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self(text)
    }

    fn late(limit: Duration) -> Self {
        Self(format!("no answer within {} s", limit.as_secs()))
    }
}

/// An HTTP server's answer.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// The status, whatever it is.
    pub status: u16,
    /// Its clock (RFC 9110 §6.6.1), to the second.
    pub date: Option<DateTime<Utc>>,
}

/// Requests this URL without credentials. Any status counts as reachable.
///
/// # Errors
///
/// [`Unreached`]
pub async fn http(
    url: &str,
    ca_file: Option<&Path>,
    limit: Duration,
) -> Result<Answered, Unreached> {
    let answer = get(url, ca_file, HeaderMap::new(), limit).await?;
    let date = answer.headers().get(DATE);
    let date = date.and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
    Ok(Answered {
        status: answer.status().as_u16(),
        date: date.map(|date| date.to_utc()),
    })
}

/// The beginning of an HTTP server's answer, with its status, to a request with these fields.
///
/// # Errors
///
/// [`Unreached`]
pub async fn text(
    url: &str,
    fields: HeaderMap,
    limit: Duration,
) -> Result<(u16, String), Unreached> {
    let mut answer = get(url, None, fields, limit).await?;
    let mut text = Vec::new();
    while text.len() < TEXT {
        let piece = answer.chunk().await;
        match piece.map_err(|error| Unreached::by(&error.without_url()))? {
            Some(piece) => text.extend_from_slice(&piece),
            None => break,
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok((answer.status().as_u16(), text))
}

async fn get(
    url: &str,
    ca_file: Option<&Path>,
    fields: HeaderMap,
    limit: Duration,
) -> Result<Response, Unreached> {
    let tls = tls::client(ca_file).map_err(|error| Unreached::by(&error))?;
    let client = proxy::by_environment(Client::builder(), url)
        .tls_backend_preconfigured(tls.as_ref().clone())
        .redirect(Policy::none())
        .timeout(limit)
        .user_agent(concat!("mailgate/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Unreached::by(&error))?;
    let asked = client.get(url).headers(fields).send().await;
    // The URL may contain an operator's secrets.
    asked.map_err(|error| Unreached::by(&error.without_url()))
}

/// Connects to a submission server up to its answer to EHLO, under TLS where the settings say so.
///
/// # Errors
///
/// [`Unreached`]
pub async fn submission(
    server: &Endpoint,
    encryption: SubmissionTls,
    hello: &str,
    ca_file: Option<&Path>,
    limit: Duration,
) -> Result<(), Unreached> {
    let tls = tls::client(ca_file).map_err(|error| Unreached::by(&error))?;
    let endpoint = Submission {
        host: server.host.clone(),
        port: server.port,
        tls: encryption,
        hello: hello.to_owned(),
        connect: limit,
        command: limit,
        data: limit,
    };
    let connector = TlsConnector::from(tls);
    match timeout(limit, Connection::open(&endpoint, &connector)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Unreached(error.to_string())),
        Err(_) => Err(Unreached::late(limit)),
    }
}

/// Connects to an IMAP server by TLS up to its greeting (RFC 9051 §7.1).
///
/// # Errors
///
/// [`Unreached`]
pub async fn imap(
    server: &Endpoint,
    ca_file: Option<&Path>,
    limit: Duration,
) -> Result<(), Unreached> {
    let tls = tls::client(ca_file).map_err(|error| Unreached::by(&error))?;
    let greeting = async {
        let name = ServerName::try_from(server.host.clone());
        let name = name.map_err(|error| Unreached::by(&error))?;
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await;
        let stream = stream.map_err(|error| Unreached::by(&error))?;
        let stream = TlsConnector::from(tls).connect(name, stream).await;
        let mut stream = stream.map_err(|error| Unreached::by(&error))?;
        let mut greeting = Vec::new();
        while !greeting.contains(&b'\n') && greeting.len() < GREETING {
            let read = stream.read_buf(&mut greeting).await;
            if read.map_err(|error| Unreached::by(&error))? == 0 {
                break;
            }
        }
        if greeting.starts_with(b"* OK") || greeting.starts_with(b"* PREAUTH") {
            Ok(())
        } else {
            Err(Unreached("the server is not an IMAP server".to_owned()))
        }
    };
    timeout(limit, greeting)
        .await
        .unwrap_or_else(|_| Err(Unreached::late(limit)))
}
