//! The settings of the relay for the gateway's own mail.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::plugins::usual_port;
use super::reader::Reader;
use super::{Endpoint, SubmissionTls};
use mailgate_types::named_address::NamedAddress;

/// A submission server for the gateway's own mail.
#[derive(Debug, Clone)]
pub struct RelaySettings {
    /// The server.
    pub server: Endpoint,
    /// How the connection is encrypted.
    pub tls: SubmissionTls,
    /// User name and password; `None`: no authentication.
    pub credential: Option<(String, SecretString)>,
    /// The sender.
    pub from: NamedAddress,
    /// Further root certificates (PEM).
    pub ca_file: Option<PathBuf>,
    /// The timeout for TCP and TLS.
    pub connect: Duration,
    /// The timeout for each reply.
    pub command: Duration,
    /// The timeout for the message and its reply.
    pub data: Duration,
}

/// `None` without a host: the gateway sends no mail of its own.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<RelaySettings> {
    let host = reader.text("relay.host");
    let tls = reader.choice(
        "relay.tls",
        &[
            ("starttls", SubmissionTls::StartTls),
            ("implicit", SubmissionTls::Implicit),
            ("none", SubmissionTls::Clear),
        ],
    );
    let port = reader.number("relay.port", 0, u16::MAX);
    let [username, password] =
        ["username", "password"].map(|name| reader.text(&format!("relay.{name}")));
    let from = reader.text("relay.from");
    let ca_file = reader.path("relay.ca_file");
    let [connect, command, data] = ["connect", "command", "data"]
        .map(|stage| reader.seconds(&format!("sending.{stage}_seconds")));
    if host.is_empty() {
        return None;
    }
    if tls == Some(SubmissionTls::Clear) && !is_this_machine(&host) {
        let text = "must be starttls or implicit: none is for a relay on this machine (localhost, 127.0.0.1, ::1)";
        reader.problem("relay.tls", text);
    }
    // Both are sent in one NUL-separated string (RFC 4616).
    for (name, value) in [("username", &username), ("password", &password)] {
        if value.contains('\0') {
            reader.problem(&format!("relay.{name}"), "must not hold a NUL");
        }
    }
    if username.is_empty() != password.is_empty() {
        let missing = if username.is_empty() {
            "username"
        } else {
            "password"
        };
        let text = "is required: relay.username and relay.password go together";
        reader.problem(&format!("relay.{missing}"), text);
    }
    let from = match from.as_str() {
        "" => {
            let text = "is required with relay.host: an address, such as Mailgate <billing@gateway.example>";
            reader.problem("relay.from", text);
            None
        }
        from => NamedAddress::parse(from)
            .map_err(|error| reader.problem("relay.from", error.to_string()))
            .ok(),
    };
    let tls = tls?;
    Some(RelaySettings {
        server: Endpoint {
            host,
            port: if port == 0 { usual_port(tls) } else { port },
        },
        tls,
        credential: (!username.is_empty()).then(|| (username, SecretString::from(password))),
        from: from?,
        ca_file,
        connect,
        command,
        data,
    })
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
