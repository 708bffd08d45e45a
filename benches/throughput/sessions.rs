//! Sessions that idle: what they cost, that they still send, and how connections past the limit are refused.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::child::{LOAD, Mode, expect};
use super::gateway::Gateway;
use super::load::{Door, Job, MEASURED, MEASURING, Refusals};
use super::{Outcome, usage};

/// Sessions unless `BENCH_SESSIONS` says otherwise.
const SESSIONS: usize = 5_000;

/// What a process has open beside its connections.
const OTHER_FILES: usize = 500;

/// Sessions of one client process, which all come from one address.
const OF_ONE_CLIENT: usize = 10_000;

/// Connections past the limit: each second, and for how many seconds.
const REFUSED: (u32, u32) = (5_000, 10);

/// What was measured.
pub struct Sessions {
    /// How many there were.
    pub count: usize,
    /// Memory of the gateway in KiB, before the first of them.
    pub before: u64,
    /// With all of them.
    pub idle: u64,
    /// After every hundredth has sent.
    pub sent: u64,
    /// Messages that arrived.
    pub messages: u64,
    /// How connections past the limit were refused.
    pub refusals: Refusals,
    /// CPU time of the gateway meanwhile.
    pub refusing: Duration,
    /// Memory after that.
    pub refused: u64,
}

/// How many are measured: as many as `BENCH_SESSIONS` asks for, and the limit of open files allows.
pub fn wanted() -> Outcome<usize> {
    let wanted = match std::env::var("BENCH_SESSIONS") {
        Ok(text) => text
            .parse()
            .map_err(|_| format!("BENCH_SESSIONS is no whole number of sessions: {text}"))?,
        Err(_) => SESSIONS,
    };
    let possible = open_files()?.saturating_sub(OTHER_FILES);
    if wanted > possible {
        eprintln!(
            "bench: {wanted} sessions need more open files than the hard limit allows: it is {possible} sessions"
        );
    }
    Ok(wanted.min(possible))
}

/// Children raise their limit as far as it goes.
fn open_files() -> Outcome<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let hard = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|line| line.split_whitespace().nth(1))
        .ok_or("/proc/self/limits names no open files")?;
    match hard {
        "unlimited" => Ok(usize::MAX),
        hard => Ok(hard.parse()?),
    }
}

/// The settings of the gateway: it has room for so many, and doesn't end them while the others come.
pub fn settings(sessions: usize) -> Vec<(String, String)> {
    [
        ("SMTP_CONNECTIONS", sessions.to_string()),
        ("SMTP_CONNECTIONS_PER_ADDRESS", sessions.to_string()),
        ("SMTP_CONNECTIONS_PER_SUBSCRIBER", sessions.to_string()),
        ("SMTP_COMMAND_SECONDS", "3600".to_owned()),
    ]
    .map(|(name, value)| (format!("MAILGATE__LIMITS__{name}"), value))
    .into()
}

/// Measures them at a gateway of their own: in another one freed memory would be used again, and not be seen to grow.
pub async fn measure(gateway: &Gateway, sessions: usize) -> Outcome<Sessions> {
    warm_up(gateway).await?;
    let before = usage::memory(gateway.pid)?;
    let mut clients = Vec::new();
    for first in (0..sessions).step_by(OF_ONE_CLIENT) {
        let job = Job::Sessions {
            server: gateway.smtp.clone(),
            source: Ipv4Addr::new(127, 0, 1, u8::try_from(clients.len() + 1)?),
            connections: OF_ONE_CLIENT.min(sessions - first),
        };
        let mut client = Mode::start(LOAD, &job, &[])?;
        expect(&mut client, MEASURING).await?;
        clients.push(client);
    }
    let idle = usage::memory(gateway.pid)?;
    let mut messages = 0;
    for client in &mut clients {
        client.go_ahead().await?;
        expect(client, MEASURED).await?;
        messages += client.line().await?.parse::<u64>()?;
    }
    let sent = usage::memory(gateway.pid)?;

    let (per_second, seconds) = REFUSED;
    let job = Job::Refusals {
        port: gateway.smtp.port,
        per_second,
        seconds,
    };
    let mut refused = Mode::start(LOAD, &job, &[])?;
    expect(&mut refused, MEASURING).await?;
    let begun = usage::process(gateway.pid)?;
    expect(&mut refused, MEASURED).await?;
    let refusing = usage::process(gateway.pid)?.saturating_sub(begun);
    let refusals = serde_json::from_str(&refused.line().await?)?;
    let after = usage::memory(gateway.pid)?;
    refused.end().await?;
    for client in clients {
        client.end().await?;
    }
    Ok(Sessions {
        count: sessions,
        before,
        idle,
        sent,
        messages,
        refusals,
        refusing,
        refused: after,
    })
}

async fn warm_up(gateway: &Gateway) -> Outcome<()> {
    let warm = Job::Send {
        door: Door::OneEach(gateway.smtp.clone()),
        clients: 16,
        warm_up: 0,
        measured: 1_000,
    };
    let mut load = Mode::start(LOAD, &warm, &[])?;
    expect(&mut load, MEASURING).await?;
    expect(&mut load, MEASURED).await?;
    load.line().await?;
    load.end().await
}
