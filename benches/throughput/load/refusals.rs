//! Connections that a server has no room for, so many a second.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{MEASURED, MEASURING, Outcome, percentile};
use crate::child::left_alone;

/// How often connections are begun.
const TICK: Duration = Duration::from_millis(10);

/// Addresses that they come from in turn: each has only so many ports.
const SOURCES: u8 = 8;

/// Longest wait for what the server says.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Refusals {
    /// Those that got a 421, and then the end.
    pub refused: u64,
    /// All others.
    pub failed: u64,
    /// How the first of them failed.
    pub failure: Option<String>,
    /// What they took, in seconds.
    pub seconds: f64,
    /// From the connect to the end, for 99 of 100, in milliseconds.
    pub p99: f64,
}

pub(super) async fn knock(port: u16, per_second: u32, seconds: u32) -> Outcome<()> {
    println!("{MEASURING}");
    let begun = Instant::now();
    let (mut tasks, mut report, mut took) = (JoinSet::new(), Refusals::default(), Vec::new());
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let each_tick = per_second / 100;
    let mut number = 0_u32;
    while number < per_second * seconds {
        ticks.tick().await;
        for _ in 0..each_tick {
            let last = u8::try_from(number % u32::from(SOURCES))? + 1;
            number += 1;
            tasks.spawn(timeout(PATIENCE, one(Ipv4Addr::new(127, 0, 2, last), port)));
        }
        while let Some(ended) = tasks.try_join_next() {
            report.add(ended?.unwrap_or_else(|late| Err(late.into())), &mut took)?;
        }
    }
    report.seconds = begun.elapsed().as_secs_f64();
    while let Some(ended) = tasks.join_next().await {
        report.add(ended?.unwrap_or_else(|late| Err(late.into())), &mut took)?;
    }
    println!("{MEASURED}");
    took.sort_unstable();
    report.p99 = percentile(&took, 99)?;
    println!("{}", serde_json::to_string(&report)?);
    left_alone().await
}

impl Refusals {
    fn add(&mut self, ended: io::Result<Duration>, took: &mut Vec<u64>) -> Outcome<()> {
        match ended {
            Ok(time) => {
                self.refused += 1;
                took.push(time.as_micros().try_into()?);
            }
            Err(error) => {
                self.failed += 1;
                self.failure.get_or_insert_with(|| error.to_string());
            }
        }
        Ok(())
    }
}

async fn one(source: Ipv4Addr, port: u16) -> io::Result<Duration> {
    let begun = Instant::now();
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((IpAddr::V4(source), 0)))?;
    let mut stream = (socket.connect(SocketAddr::from(([127, 0, 0, 1], port)))).await?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await?;
    if said.starts_with(b"421 ") {
        Ok(begun.elapsed())
    } else {
        let said = String::from_utf8_lossy(&said);
        Err(io::Error::other(format!("it said {said:?}")))
    }
}
