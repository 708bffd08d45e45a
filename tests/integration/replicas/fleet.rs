//! Gateways on one database, each at an address of its own, all at the same ports.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::command_line::process::Invocation;
use crate::crash::program::Program;
use crate::support::ports;

/// Where they listen.
pub const HOSTS: [Ipv4Addr; 3] = [
    Ipv4Addr::new(127, 0, 1, 1),
    Ipv4Addr::new(127, 0, 1, 2),
    Ipv4Addr::new(127, 0, 1, 3),
];

/// Seconds that the end is announced: the balancer looks each second, and believes the second look.
const ANNOUNCED: u64 = 4;

/// Seconds that what is in hand may take then.
const DEADLINE: u64 = 8;

/// What it may take beyond that on a busy machine, to write down what it knows and to go.
const SLACK: u64 = 2;

pub struct Fleet {
    pub replicas: Vec<Program>,
    /// REST, STARTTLS and implicit TLS.
    pub ports: [u16; 3],
}

impl Fleet {
    /// Starts as many as there are `hosts`, behind a balancer on this machine.
    pub async fn start(invocation: &Invocation, hosts: &[Ipv4Addr], name: &str) -> Self {
        let invocations: Vec<_> = hosts.iter().map(|_| invocation.clone()).collect();
        Self::start_each(invocations, hosts, name).await
    }

    /// The same, each with settings of its own.
    pub async fn start_each(invocations: Vec<Invocation>, hosts: &[Ipv4Addr], name: &str) -> Self {
        let ports = ports::reserve();
        let mut replicas = Vec::new();
        for ((number, host), invocation) in (1..).zip(hosts).zip(invocations) {
            let invocation = invocation
                .set("SMTP__PROXY_PROTOCOL_FROM", "127.0.0.1")
                .set("HTTP__TRUSTED_PROXIES", "127.0.0.1")
                .set("SHUTDOWN__ANNOUNCE_SECONDS", ANNOUNCED.to_string())
                .set("SHUTDOWN__SECONDS", DEADLINE.to_string());
            let name = format!("{name}-{number}");
            replicas.push(Program::start_at(&invocation, *host, ports, &name).await);
        }
        Self { replicas, ports }
    }

    /// SIGTERM to one of them, which ends in time with exit code 0.
    pub async fn terminate(&mut self, number: usize) {
        let began = Instant::now();
        self.replicas[number].terminate().await;
        let took = began.elapsed();
        assert!(
            took < Duration::from_secs(ANNOUNCED + DEADLINE + SLACK),
            "replica {number} took {took:?} to end"
        );
    }

    /// Ends all of them.
    pub async fn end(&mut self) {
        for replica in &self.replicas {
            replica.signal("TERM").await;
        }
        for replica in &mut self.replicas {
            replica.ended().await;
        }
    }

    pub fn forget_logs(&self) {
        for replica in &self.replicas {
            replica.forget_log();
        }
    }

    /// Where their logs are, for a test that fails.
    pub fn logs(&self) -> String {
        let logs = self
            .replicas
            .iter()
            .map(|it| it.log().display().to_string());
        logs.collect::<Vec<_>>().join(" ")
    }
}
