//! A private Postfix: submission with STARTTLS, and with implicit TLS and without SMTPUTF8, tokens checked by Dovecot,
//! every recipient delivered to a mailbox of Dovecot's. Nothing leaves the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::certificate::Certificate;
use super::process::{self, Household};
use crate::support::patience::PATIENCE;

/// Recipients that are refused, by the local part of their address.
const REFUSED_RECIPIENTS: &str = "\
/^tempfail@/ 451 4.3.0 Try again later
/^quota@/    452 4.2.2 The mailbox is full
/^permfail@/ 550 5.1.1 There is no such mailbox
/^limit@/    554 5.2.0 The sending limit is reached
";

/// Recipients that are accepted, and whose delivery fails then: for good, and for as long as it is tried.
const TRANSPORTS: &str = "\
/^bounced@/ refusing:
/^delayed@/ waiting:
";

/// Every mailbox may send as its own address only.
const SENDER_LOGINS: &str = "/^(.*)$/ $1\n";

pub struct Postfix<'a> {
    pub certificate: &'a Certificate,
    pub starttls_port: u16,
    pub tls_port: u16,
    /// The configuration of the Dovecot that takes the mail.
    pub dovecot_configuration: &'a Path,
    /// Where Dovecot checks tokens.
    pub sasl_port: u16,
}

impl Postfix<'_> {
    pub async fn start(&self, household: &Household) {
        let root = household.folder();
        let folder = root.join("postfix");
        let configuration = folder.join("configuration");
        for part in ["configuration", "queue", "data"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        process::give_to(&folder.join("data"), "postfix");
        fs::write(configuration.join("recipients"), REFUSED_RECIPIENTS).unwrap();
        fs::write(configuration.join("transports"), TRANSPORTS).unwrap();
        fs::write(configuration.join("senders"), SENDER_LOGINS).unwrap();
        fs::write(configuration.join("main.cf"), self.main(root)).unwrap();
        fs::write(configuration.join("master.cf"), self.master()).unwrap();

        // Makes the folders of the queue, with their owners.
        let check = run_postfix("postfix", &configuration, &["check"]).await;
        assert!(
            check.0,
            "postfix check failed: {}\n{}",
            check.1,
            household.logs()
        );
        let daemons = run_postfix("postconf", &configuration, &["-h", "daemon_directory"]).await;
        assert!(daemons.0, "postconf failed: {}", daemons.1);

        // It makes a session of its own, which its end ends.
        household.add(
            "postfix",
            Command::new(Path::new(daemons.1.trim()).join("master"))
                .arg("-c")
                .arg(&configuration)
                .arg("-s")
                // As the command `postfix` does: so that it logs to our file from the first line.
                .env("POSTLOG_SERVICE", "postlog")
                .env("POSTLOG_HOSTNAME", "localhost"),
        );
        household
            .wait_for_ports("Postfix", &[self.starttls_port, self.tls_port])
            .await;
    }

    fn main(&self, root: &Path) -> String {
        let root = root.display();
        let certificate = self.certificate.chain.display();
        let key = self.certificate.key.display();
        let sasl_port = self.sasl_port;
        format!(
            "
compatibility_level = 3.6
queue_directory = {root}/postfix/queue
data_directory = {root}/postfix/data
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
# Dovecot's own ways of delivery, LMTP and LDA, take no UTF-8 addresses in 2.3; storing does.
default_transport = dovecot
relay_transport = dovecot
dovecot_destination_recipient_limit = 1
transport_maps = pcre:{root}/postfix/configuration/transports

# A delay is told of after a second instead of hours.
delay_warning_time = 1s
queue_run_delay = 1s
minimal_backoff_time = 1s
maximal_backoff_time = 2s

message_size_limit = 62914560
smtputf8_enable = yes
# What was submitted is delivered, to the byte.
local_header_rewrite_clients =

smtpd_tls_cert_file = {certificate}
smtpd_tls_key_file = {key}
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:{sasl_port}
smtpd_sender_login_maps = pcre:{root}/postfix/configuration/senders
smtpd_client_restrictions = permit_sasl_authenticated, reject
smtpd_sender_restrictions = reject_sender_login_mismatch
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = check_recipient_access pcre:{root}/postfix/configuration/recipients

# The tests provoke errors on purpose and in bulk: none of them is slowed down.
smtpd_error_sleep_time = 0
smtpd_soft_error_limit = 1000
smtpd_hard_error_limit = 1000
smtpd_client_connection_count_limit = 0
in_flow_delay = 0
"
        )
    }

    fn master(&self) -> String {
        let doveadm = process::find("doveadm").unwrap().display().to_string();
        let dovecot = self.dovecot_configuration.display();
        let Self {
            starttls_port,
            tls_port,
            ..
        } = self;
        format!(
            "
127.0.0.1:{starttls_port} inet n - n - - smtpd
  -o smtpd_tls_security_level=encrypt
127.0.0.1:{tls_port} inet n - n - - smtpd
  -o smtpd_tls_wrappermode=yes
  -o smtputf8_enable=no
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
error     unix       - - n -     - error
retry     unix       - - n -     - error
dovecot   unix       - n n -     - pipe
  flags=DR user=mail argv={doveadm} -c {dovecot} save -u ${{recipient}}
refusing  unix       - n n -     - pipe
  user=mail argv=/bin/sh -c {{echo 5.1.1 There is no such mailbox any more; exit 67}}
waiting   unix       - n n -     - pipe
  user=mail argv=/bin/sh -c {{echo 4.4.1 The host is out to lunch; exit 75}}
anvil     unix       - - n -     1 anvil
scache    unix       - - n -     1 scache
showq     unix       n - n -     - showq
pickup    unix       n - n 60    1 pickup
postlog   unix-dgram n - n -     1 postlogd
"
        )
    }
}

async fn run_postfix(program: &str, configuration: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(process::find(program).unwrap());
    command.arg("-c").arg(configuration).args(arguments);
    let output = process::run(command, b"", PATIENCE).await;
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}
