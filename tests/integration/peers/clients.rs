//! Programs that submit mail, for trying the gateway's own SMTP door as its users would.

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::process;
use crate::support::patience::PATIENCE;

/// Longest that one submission may take.
const LIMIT: Duration = PATIENCE;

/// A program that submits mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Swaks,
    Curl,
    /// Python's standard library.
    Smtplib,
    Nodemailer,
    /// In chunks (BDAT), of which it waits for each reply.
    JavaMail,
}

impl Client {
    pub const ALL: [Self; 5] = [
        Self::Swaks,
        Self::Curl,
        Self::Smtplib,
        Self::Nodemailer,
        Self::JavaMail,
    ];
}

/// How the client shows its password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    Login,
    Plain,
}

impl fmt::Display for Mechanism {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Login => "LOGIN",
            Self::Plain => "PLAIN",
        })
    }
}

/// Where to submit. Without `implicit_tls` the client insists on STARTTLS; it checks the server's
/// certificate against `ca_file` either way.
#[derive(Debug, Clone, Copy)]
pub struct Door<'a> {
    pub host: &'a str,
    pub port: u16,
    pub implicit_tls: bool,
    pub ca_file: &'a Path,
}

/// What is submitted, and as whom.
#[derive(Debug, Clone, Copy)]
pub struct Submission<'a> {
    pub mechanism: Mechanism,
    pub username: &'a str,
    pub password: &'a str,
    pub from: &'a str,
    pub to: &'a [&'a str],
    /// Headers, an empty line, body; line ends of either kind.
    pub message: &'a str,
}

/// What became of it.
#[derive(Debug)]
pub struct ClientOutcome {
    /// The program says that the message was accepted.
    pub accepted: bool,
    /// All that it wrote, the SMTP dialogue among it.
    pub transcript: String,
}

/// Submits one message.
///
/// # Panics
///
/// When the program doesn't start, or takes longer than 30 seconds.
pub async fn send(client: Client, door: Door<'_>, submission: Submission<'_>) -> ClientOutcome {
    let message = submission
        .message
        .replace("\r\n", "\n")
        .replace('\n', "\r\n");
    // curl announces the size of a file, and not of its standard input.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(message.as_bytes()).unwrap();
    let command = match client {
        Client::Swaks => swaks(door, submission),
        Client::Curl => curl(door, submission, file.path()),
        Client::Smtplib => {
            let python = Command::new("python3");
            script(python, "smtplib_client.py", door, submission)
        }
        Client::Nodemailer => {
            let node = Command::new(super::node());
            script(node, "nodemailer_client.mjs", door, submission)
        }
        Client::JavaMail => script(java(), "JavaMailClient.java", door, submission),
    };
    let output = process::run(command, message.as_bytes(), LIMIT).await;
    let transcript = [output.stdout, output.stderr].concat();
    ClientOutcome {
        accepted: output.status.success(),
        transcript: String::from_utf8_lossy(&transcript).into_owned(),
    }
}

fn swaks(door: Door<'_>, submission: Submission<'_>) -> Command {
    let mut command = Command::new("swaks");
    command
        .args(["--server", door.host, "--port", &door.port.to_string()])
        .arg(if door.implicit_tls {
            "--tls-on-connect"
        } else {
            "--tls"
        })
        .arg("--tls-verify")
        .arg("--tls-ca-path")
        .arg(door.ca_file)
        .args(["--auth", &submission.mechanism.to_string()])
        .args(["--auth-user", submission.username])
        .args(["--auth-password", submission.password])
        .arg("--auth-hide-password")
        .args(["--from", submission.from])
        .args(["--to", &submission.to.join(",")])
        .args(["--data", "-"]);
    command
}

fn curl(door: Door<'_>, submission: Submission<'_>, message: &Path) -> Command {
    let Door { host, port, .. } = door;
    let scheme = if door.implicit_tls { "smtps" } else { "smtp" };
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--verbose", "--ssl-reqd"])
        .args(["--noproxy", "*"])
        .args(["--url", &format!("{scheme}://{host}:{port}")])
        .arg("--cacert")
        .arg(door.ca_file)
        .args(["--login-options", &format!("AUTH={}", submission.mechanism)])
        .arg("--user")
        .arg(format!("{}:{}", submission.username, submission.password))
        .args(["--mail-from", submission.from]);
    for recipient in submission.to {
        command.args(["--mail-rcpt", recipient]);
    }
    command.arg("--upload-file").arg(message);
    command
}

/// Java with `JavaMail`, from Debian's package.
fn java() -> Command {
    let mut java = Command::new("java");
    java.args([
        "-cp",
        "/usr/share/java/javax.mail.jar:/usr/share/java/javax.activation.jar",
    ]);
    java
}

/// One of the programs in `tests/peers`, which all take the same arguments.
fn script(mut command: Command, name: &str, door: Door<'_>, submission: Submission<'_>) -> Command {
    command
        .arg(super::sources().join(name))
        .args([door.host, &door.port.to_string()])
        .arg(if door.implicit_tls {
            "implicit"
        } else {
            "starttls"
        })
        .arg(door.ca_file)
        .args([&submission.mechanism.to_string(), submission.from])
        .args(submission.to)
        .env("SMTP_USERNAME", submission.username)
        .env("SMTP_PASSWORD", submission.password);
    command
}
