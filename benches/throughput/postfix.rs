//! What the gateway is held against: Postfix, with Dovecot to check passwords, relaying to a server
//! that takes everything. Private instances in a folder of their own; nothing leaves the machine.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mailgate_sandbox::certificates::CertificateFiles;
use tokio::process::Command;

use super::Outcome;
use super::child::{self, Server};
use super::load::SmtpServer;
use super::usage;

const USER: &str = "bench";
const PASSWORD: &str = "password-of-the-bench";

/// Longest that both may take to answer.
const START: Duration = Duration::from_secs(15);

/// Both, running.
pub struct Postfix {
    server: Server,
    passwords: Server,
    /// Its submission service.
    pub smtp: SmtpServer,
}

impl Postfix {
    /// Starts both in a folder that anybody may enter.
    pub async fn start(folder: &Path, files: &CertificateFiles, relay: u16) -> Outcome<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let socket = folder.join("auth");
        let passwords = dovecot(folder, &socket)?;
        let server = postfix(folder, files, &socket, port, relay).await?;
        let mut both = Self {
            server,
            passwords,
            smtp: SmtpServer {
                port,
                ca: files.ca.clone(),
                user: USER.to_owned(),
                password: PASSWORD.to_owned(),
            },
        };
        let deadline = Instant::now() + START;
        while !socket.exists()
            || tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_err()
        {
            both.server.check()?;
            both.passwords.check()?;
            if Instant::now() > deadline {
                return Err("Postfix or Dovecot does not answer".into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(both)
    }

    /// CPU time of all their processes.
    pub fn used(&self) -> Outcome<Duration> {
        Ok(usage::tree(self.server.pid()?)? + usage::tree(self.passwords.pid()?)?)
    }

    pub async fn stop(self) -> Outcome<()> {
        self.server.stop().await?;
        self.passwords.stop().await
    }
}

fn dovecot(folder: &Path, socket: &Path) -> Outcome<Server> {
    let root = folder.display();
    let socket = socket.display();
    let instance = std::process::id();
    let run = folder.join("dovecot");
    fs::create_dir_all(&run)?;
    fs::write(
        folder.join("users"),
        format!("{USER}:{{PLAIN}}{PASSWORD}\n"),
    )?;
    let file = folder.join("dovecot.conf");
    fs::write(
        &file,
        format!(
            "
protocols =
base_dir = {root}/dovecot
state_dir = {root}/dovecot
instance_name = mailgate-bench-{instance}
log_path = {root}/dovecot.log
ssl = no
auth_mechanisms = plain
passdb {{
  driver = passwd-file
  args = {root}/users
}}
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service auth {{
  unix_listener {socket} {{
    mode = 0666
  }}
}}
"
        ),
    )?;
    let mut command = child::command("TERM", find("dovecot")?);
    command.args(["-F", "-c"]).arg(&file).process_group(0);
    Server::start("dovecot", folder, command)
}

async fn postfix(
    folder: &Path,
    files: &CertificateFiles,
    socket: &Path,
    port: u16,
    relay: u16,
) -> Outcome<Server> {
    let root = folder.display();
    let configuration = folder.join("postfix");
    for part in ["postfix", "queue", "data"] {
        fs::create_dir_all(folder.join(part))?;
    }
    fs::write(
        configuration.join("main.cf"),
        format!(
            "
compatibility_level = 3.6
queue_directory = {root}/queue
data_directory = {root}/data
maillog_file = {root}/postfix.log
maillog_file_prefixes = {root}
myhostname = localhost
mydestination =
mynetworks =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
alias_maps =
alias_database =
local_recipient_maps =
smtp_dns_support_level = disabled
relayhost = [127.0.0.1]:{relay}
default_transport = smtp
default_process_limit = 200
default_destination_concurrency_limit = 64
smtpd_tls_cert_file = {certificate}
smtpd_tls_key_file = {key}
smtpd_tls_security_level = encrypt
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = {socket}
smtpd_client_restrictions = permit_sasl_authenticated, reject
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = permit_sasl_authenticated, reject
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
smtpd_client_message_rate_limit = 0
smtpd_client_recipient_rate_limit = 0
smtpd_client_auth_rate_limit = 0
smtpd_client_new_tls_session_rate_limit = 0
in_flow_delay = 0
",
            certificate = files.certificate.display(),
            key = files.key.display(),
            socket = socket.display(),
        ),
    )?;
    fs::write(
        configuration.join("master.cf"),
        format!(
            "
127.0.0.1:{port} inet n - n - - smtpd
cleanup   unix       n - n -     0 cleanup
qmgr      unix       n - n 300   1 qmgr
tlsmgr    unix       - - n 1000? 1 tlsmgr
rewrite   unix       - - n -     - trivial-rewrite
bounce    unix       - - n -     0 bounce
defer     unix       - - n -     0 bounce
trace     unix       - - n -     0 bounce
verify    unix       - - n -     1 verify
flush     unix       n - n 1000? 0 flush
proxymap  unix       - - n -     - proxymap
smtp      unix       - - n -     - smtp
error     unix       - - n -     - error
retry     unix       - - n -     - error
anvil     unix       - - n -     1 anvil
scache    unix       - - n -     1 scache
showq     unix       n - n -     - showq
pickup    unix       n - n 60    1 pickup
postlog   unix-dgram n - n -     1 postlogd
"
        ),
    )?;
    run(Command::new("chown")
        .arg("postfix")
        .arg(folder.join("data")))
    .await?;
    // Makes the folders of the queue, with their owners.
    run(Command::new(find("postfix")?)
        .arg("-c")
        .arg(&configuration)
        .arg("check"))
    .await?;
    let daemons = run(Command::new(find("postconf")?)
        .arg("-c")
        .arg(&configuration)
        .args(["-h", "daemon_directory"]))
    .await?;
    let mut command = child::command("TERM", Path::new(daemons.trim()).join("master"));
    command
        .arg("-c")
        .arg(&configuration)
        .arg("-s")
        .env("POSTLOG_SERVICE", "postlog")
        .env("POSTLOG_HOSTNAME", "localhost");
    Server::start("postfix", folder, command)
}

/// Runs a program to its end; answers what it said.
async fn run(command: &mut Command) -> Outcome<String> {
    let output = command.output().await?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{command:?}: {}\n{said}", output.status).into())
    }
}

/// Where a program is: in PATH, or among the administrator's programs.
fn find(program: &str) -> Outcome<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| format!("{program} is missing; `make bench` installs it").into())
}
