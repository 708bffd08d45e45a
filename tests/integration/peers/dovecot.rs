//! A private Dovecot: it checks bearer tokens for itself and for Postfix, shows the mailboxes
//! by IMAP, and may take mail.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::certificate::Certificate;
use super::process::{self, Household, OwnProcessGroup as _};
use crate::support::patience::PATIENCE;

/// What PLAIN and LOGIN take for every mailbox, as large providers do with "app passwords". So the
/// server offers more than XOAUTH2, and programs that know only passwords can be tried against it.
pub const APP_PASSWORD: &str = "app-password-of-the-tests";

/// All that it knows.
pub const MECHANISMS: &str = "plain login xoauth2 oauthbearer";

pub struct Dovecot<'a> {
    /// With the user name and password of the resource server in it.
    pub introspection_url: &'a str,
    pub certificate: &'a Certificate,
    pub imaps_port: u16,
    /// Dovecot's authentication protocol, for Postfix.
    pub sasl_port: u16,
    /// Its own submission server, and the server that its mail goes on to, in clear.
    pub submission: Option<Submission>,
    /// What it offers.
    pub mechanisms: &'a str,
}

#[derive(Clone, Copy)]
pub struct Submission {
    /// With implicit TLS.
    pub port: u16,
    pub relay_port: u16,
}

/// Where the configuration is, which its programs for delivery read as well.
pub fn configuration_file(household: &Household) -> PathBuf {
    household.folder().join("dovecot/dovecot.conf")
}

/// Runs Dovecot's program for administrators, and gives what it says.
pub async fn doveadm(household: &Household, arguments: &[&str]) -> String {
    let mut command = Command::new(process::find("doveadm").unwrap());
    command
        .arg("-c")
        .arg(configuration_file(household))
        .args(arguments);
    let output = process::run(command, b"", PATIENCE).await;
    assert!(
        output.status.success(),
        "doveadm {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The folder of the mailbox `name` of `account`, in Maildir form.
pub fn maildir(household: &Household, account: &str, name: &str) -> PathBuf {
    let folder = household.folder().join("dovecot/mail").join(account);
    match name {
        "INBOX" => folder,
        name => folder.join(format!(".{name}")),
    }
}

impl Submission {
    fn configuration(self) -> String {
        let Self { port, relay_port } = self;
        let login = login_service("submission", port);
        format!(
            "
protocols = imap submission
submission_relay_host = 127.0.0.1
submission_relay_port = {relay_port}
{login}"
        )
    }
}

/// Where a protocol is spoken: with implicit TLS, at `port` alone.
fn login_service(protocol: &str, port: u16) -> String {
    format!(
        "
service {protocol}-login {{
  inet_listener {protocol} {{
    port = 0
  }}
  inet_listener {protocol}s {{
    address = 127.0.0.1
    port = {port}
    ssl = yes
  }}
}}
"
    )
}

impl Dovecot<'_> {
    pub async fn start(&self, household: &Household) {
        let program = process::find("dovecot").unwrap();
        let version = Command::new(&program).arg("--version").output().unwrap();
        let version = String::from_utf8_lossy(&version.stdout);
        assert!(
            version.starts_with("2.3."),
            "Dovecot is {version}, and the configuration here is for 2.3 (Debian 12)"
        );

        let folder = household.folder().join("dovecot");
        for part in ["run", "state", "mail"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        process::give_to(&folder.join("mail"), "mail");
        fs::write(folder.join("oauth2.conf"), self.oauth2()).unwrap();
        let file = configuration_file(household);
        fs::write(&file, self.configuration(household)).unwrap();

        household.add(
            "dovecot",
            Command::new(program)
                .args(["-F", "-c"])
                .arg(file)
                .process_group_of_its_own(),
        );
        household
            .wait_for_ports("Dovecot", &[self.imaps_port, self.sasl_port])
            .await;
        if let Some(submission) = self.submission {
            let ports = [submission.port];
            household
                .wait_for_ports("Dovecot's submission", &ports)
                .await;
        }
    }

    fn oauth2(&self) -> String {
        format!(
            "introspection_url = {}\n\
             introspection_mode = post\n\
             username_attribute = sub\n\
             active_attribute = active\n\
             active_value = true\n",
            self.introspection_url
        )
    }

    fn configuration(&self, household: &Household) -> String {
        let root = household.folder().display();
        let Self {
            imaps_port,
            sasl_port,
            mechanisms,
            ..
        } = self;
        let certificate = self.certificate.chain.display();
        let key = self.certificate.key.display();
        let instance = std::process::id();
        let submission = self.submission.map(Submission::configuration);
        let submission = submission.unwrap_or_default();
        let imap = login_service("imap", *imaps_port);
        format!(
            "
protocols = imap
base_dir = {root}/dovecot/run
state_dir = {root}/dovecot/state
instance_name = mailgate-peers-{instance}-{imaps_port}
log_path = {root}/dovecot.log
listen = 127.0.0.1

ssl = required
ssl_cert = <{certificate}
ssl_key = <{key}

auth_mechanisms = {mechanisms}
# All of them: addresses may be UTF-8.
auth_username_chars =
passdb {{
  driver = static
  mechanisms = plain login
  args = password={APP_PASSWORD}
}}
passdb {{
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = {root}/dovecot/oauth2.conf
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={root}/dovecot/mail/%u allow_all_users=yes
}}
mail_location = maildir:{root}/dovecot/mail/%u
first_valid_uid = 1
mail_fsync = never
namespace inbox {{
  inbox = yes
  mailbox Sent {{
    special_use = \\Sent
    auto = create
  }}
  mailbox Unwanted {{
    special_use = \\Junk
    auto = create
  }}
}}

# Failed log-ins are what half of the tests are about: no delays for them.
auth_failure_delay = 0
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}

service auth {{
  inet_listener {{
    address = 127.0.0.1
    port = {sasl_port}
  }}
  # For the program by which Postfix delivers.
  unix_listener auth-userdb {{
    mode = 0666
  }}
}}
service stats {{
  unix_listener stats-writer {{
    mode = 0666
  }}
}}
{imap}{submission}"
        )
    }
}
