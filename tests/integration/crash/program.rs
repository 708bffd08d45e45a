//! `mailgate serve` as a child process that is killed and started again at the same addresses.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use super::provider::UnsteadyLine;
use crate::command_line::process::{Invocation, Running, START};
use crate::command_line::serve;
use crate::support::gateway::Gateway;

/// How often it is asked whether it answers.
const POLL: Duration = Duration::from_millis(5);

/// What fails four times waits to the end of the test.
const PATIENT: &str = "1,1,2,900";

/// What fails four times has failed.
const IMPATIENT: &str = "1,1,2";

/// The child, and where it is reached.
pub struct Program {
    invocation: Invocation,
    running: Running,
    log: PathBuf,
    pub http: SocketAddr,
    pub tls: SocketAddr,
}

impl Program {
    /// Starts it on the database at `url`, which is that of `gateway`, and waits until it answers.
    pub async fn start(gateway: &Gateway, url: &str, line: &UnsteadyLine, seed: u64) -> Self {
        let [http, starttls, tls] = free_addresses();
        let invocation = serve::replica(gateway)
            .set("DATABASE__URL", url)
            .set("HTTP__LISTEN", http.to_string())
            .set("SMTP__STARTTLS_LISTEN", starttls.to_string())
            .set("SMTP__TLS_LISTEN", tls.to_string())
            .set("PLUGINS__PLUGIN_B__SMTP_PORT", line.port().to_string())
            .set("LIMITS__REQUESTS_PER_SECOND", "100000")
            .set("LIMITS__REQUESTS_BURST", "100000")
            .set("SENDING__RETRY_SECONDS", PATIENT);
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{seed}.log"));
        drop(std::fs::remove_file(&log));
        let mut program = Self {
            running: invocation.clone().start(),
            invocation,
            log,
            http,
            tls,
        };
        program.answers().await;
        program
    }

    /// What all its lives have logged.
    pub fn log(&self) -> &Path {
        &self.log
    }

    pub fn forget_log(&self) {
        std::fs::remove_file(&self.log).unwrap();
    }

    /// From its next life on, the fourth failure is the end.
    pub fn set_impatient(&mut self) {
        let invocation = self.invocation.clone();
        self.invocation = invocation.set("SENDING__RETRY_SECONDS", IMPATIENT);
    }

    /// SIGKILL.
    pub async fn kill(&mut self) {
        self.running.signal("KILL").await;
        self.running.end(START).await;
        self.keep_log();
    }

    /// Starts it again, and waits until it answers.
    pub async fn restart(&mut self) {
        self.running = self.invocation.clone().start();
        self.answers().await;
    }

    /// Ends it in order.
    pub async fn terminate(&mut self) {
        self.running.terminate().await;
        self.keep_log();
    }

    /// Fails when it has ended by itself.
    pub fn must_live(&mut self) {
        let has_ended = self.running.has_ended();
        assert!(!has_ended, "it ended by itself:\n{}", self.running.stderr());
    }

    async fn answers(&mut self) {
        let began = Instant::now();
        while TcpStream::connect(self.http).await.is_err() {
            self.must_live();
            assert!(
                began.elapsed() < START,
                "it does not answer within {START:?}:\n{}",
                self.running.stderr()
            );
            tokio::time::sleep(POLL).await;
        }
    }

    fn keep_log(&self) {
        let text = self.running.stderr();
        assert!(!text.contains("panicked"), "{text}");
        let mut log = (std::fs::OpenOptions::new().create(true).append(true))
            .open(&self.log)
            .unwrap();
        log.write_all(text.as_bytes()).unwrap();
    }
}

/// Addresses that no connection takes as its own while the program is down: below the ports that
/// Linux gives out by itself (`ip_local_port_range`).
fn free_addresses() -> [SocketAddr; 3] {
    [(); 3].map(|()| {
        loop {
            let port = rand::random_range(20_000..32_000);
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            if std::net::TcpListener::bind(address).is_ok() {
                return address;
            }
        }
    })
}
