//! What a subscriber notices of another one that takes all that it can: messages at an even rate, far below what the
//! machine carries, by turns alone and beside the hostile one. The same hostility against another gateway on the same
//! machine and database shows how much of it is the processor's.

use std::fmt::{Display, Formatter};

use super::child::{LOAD, Mode, expect};
use super::gateway;
use super::hostile::{APPS, Hostile, Manner, Silence};
use super::load::{Job, MEASURED, MEASURING, Report};
use super::webhooks::Setup;
use super::{Outcome, usage};

/// Messages a second, and clients that send them.
const PER_SECOND: u32 = 200;
const CLIENTS: usize = 16;

/// How often each case has its turn.
const TURNS: usize = 5;

/// The step's name.
pub const NAME: &str = "REST, 200 messages/s, 16 clients, beside a noisy neighbour";

/// Who is beside it, in the order of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    Nobody,
    Holder,
    Flooder,
    /// The flooder, at another gateway.
    Elsewhere,
}

impl Beside {
    pub const ALL: [Self; 4] = [Self::Nobody, Self::Holder, Self::Flooder, Self::Elsewhere];

    fn manner(self) -> Option<Manner> {
        match self {
            Self::Nobody => None,
            Self::Holder => Some(Manner::HOLDS),
            Self::Flooder | Self::Elsewhere => Some(Manner::FLOODS),
        }
    }
}

impl Display for Beside {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Self::Nobody => "nobody beside it",
            Self::Holder => "one that holds memory",
            Self::Flooder => "one that retries immediately: 72 requests of 20 MiB",
            Self::Elsewhere => "the same at another gateway of this machine",
        })
    }
}

/// One case in one turn: milliseconds, and the part of a core that the gateway took.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub beside: Beside,
    pub p50: f64,
    pub p99: f64,
    pub cores: f64,
}

/// Measures all cases by turns. The load ends the bench with the first message that isn't accepted.
pub async fn measure(place: &Setup<'_>) -> Outcome<Vec<Turn>> {
    let silence = Silence::start().await?;
    let urls = vec![silence.url.clone(); APPS];
    let apps = gateway::apps(place.environment, &urls).await?;
    let gateway = place.gateway("neighbour").await?;
    let other = place.gateway("neighbour-elsewhere").await?;
    let database_url = place.postgres.url("bench");
    let measured = u64::try_from(place.measured.as_millis())?;
    let job = Job::Paced {
        server: gateway.rest.clone(),
        clients: CLIENTS,
        per_second: PER_SECOND,
        warm_up: measured / 4,
        measured,
    };
    let mut turns = Vec::new();
    for beside in std::iter::repeat_n(Beside::ALL, TURNS).flatten() {
        let port = match beside {
            Beside::Elsewhere => other.rest.port,
            _ => gateway.rest.port,
        };
        let _hostile = match beside.manner() {
            Some(manner) => Some(Hostile::start(manner, port, &database_url, &apps).await?),
            None => None,
        };
        let mut load = Mode::start(LOAD, &job, &[])?;
        expect(&mut load, MEASURING).await?;
        let before = usage::process(gateway.pid)?;
        expect(&mut load, MEASURED).await?;
        let used = usage::process(gateway.pid)?.saturating_sub(before);
        let report: Report = serde_json::from_str(&load.line().await?)?;
        load.end().await?;
        let turn = Turn {
            beside,
            p50: report.p50,
            p99: report.p99,
            cores: used.as_secs_f64() / report.seconds,
        };
        eprintln!("bench: {turn:?}");
        turns.push(turn);
    }
    gateway.stop().await?;
    other.stop().await?;
    Ok(turns)
}
