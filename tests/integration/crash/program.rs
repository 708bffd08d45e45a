//! `mailgate serve` as a child process that is killed or ended, and started again at the same addresses.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::net::TcpStream;

use crate::command_line::process::{END, Invocation, Running, START};
use crate::support::patience;
use crate::support::ports;

/// The child, and where it is reached.
pub struct Program {
    invocation: Invocation,
    running: Running,
    log: PathBuf,
    pub http: SocketAddr,
    pub starttls: SocketAddr,
    pub tls: SocketAddr,
}

impl Program {
    /// Starts it on free ports of `host`, and waits until it answers. What it logs is kept under `name`.
    pub async fn start(invocation: &Invocation, host: Ipv4Addr, name: &str) -> Self {
        Self::start_at(invocation, host, ports::reserve(), name).await
    }

    /// The same on these ports: REST, STARTTLS and implicit TLS.
    pub async fn start_at(
        invocation: &Invocation,
        host: Ipv4Addr,
        ports: [u16; 3],
        name: &str,
    ) -> Self {
        let [http, starttls, tls] = ports.map(|port| SocketAddr::from((host, port)));
        let invocation = (invocation.clone())
            .set("HTTP__LISTEN", http.to_string())
            .set("SMTP__STARTTLS_LISTEN", starttls.to_string())
            .set("SMTP__TLS_LISTEN", tls.to_string());
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log"));
        drop(std::fs::remove_file(&log));
        let mut program = Self {
            running: invocation.clone().start(),
            invocation,
            log,
            http,
            starttls,
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

    /// Changes a setting from its next life on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.invocation = self.invocation.clone().set(name, value);
    }

    /// Another build of it from its next life on.
    pub fn becomes(&mut self, program: &Path) {
        self.invocation = self.invocation.clone().of(program);
    }

    /// SIGKILL.
    pub async fn kill(&mut self) {
        self.signal("KILL").await;
        self.running.end(START).await;
        self.keep_log();
    }

    /// Starts it again, and waits until it answers.
    pub async fn restart(&mut self) {
        self.running = self.invocation.clone().start();
        self.answers().await;
    }

    /// Sends a signal, by its name without `SIG`.
    pub async fn signal(&self, name: &str) {
        self.running.signal(name).await;
    }

    /// Ends it in order.
    pub async fn terminate(&mut self) {
        self.signal("TERM").await;
        self.ended().await;
    }

    /// Waits for the end that it was asked for, with exit code 0.
    pub async fn ended(&mut self) {
        let status = self.running.end(END).await;
        assert_eq!(status.code(), Some(0), "{}", self.running.stderr());
        self.keep_log();
    }

    /// Starts it again where another gateway has ended it, as its supervisor would.
    pub async fn supervise(&mut self) {
        if self.running.has_ended() {
            let (status, told) = (self.running.end(START).await, self.running.stderr());
            assert_eq!(status.code(), Some(1), "{told}");
            assert!(
                told.contains("another gateway has ended this one"),
                "{told}"
            );
            self.keep_log();
            self.restart().await;
        }
    }

    /// Fails when it has ended by itself.
    pub fn must_live(&mut self) {
        let has_ended = self.running.has_ended();
        assert!(!has_ended, "it ended by itself:\n{}", self.running.stderr());
    }

    async fn answers(&mut self) {
        patience::until("answer", async || {
            self.must_live();
            TcpStream::connect(self.http).await.is_ok()
        })
        .await;
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
