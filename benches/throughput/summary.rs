//! What is printed: a table of the steps, and their ratios beside the targets.

use std::fmt::{Display, Formatter};

use super::neighbour::{self, Beside, Turn};
use super::sessions::Sessions;

/// Whom a step measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Bare,
    Rest,
    Kept,
    PostfixKept,
    OneEach,
    PostfixOneEach,
}

impl Who {
    /// In the order of the steps: what is compared stands side by side.
    pub const ALL: [Self; 6] = [
        Self::Bare,
        Self::Rest,
        Self::Kept,
        Self::PostfixKept,
        Self::OneEach,
        Self::PostfixOneEach,
    ];

    pub fn is_postfix(self) -> bool {
        matches!(self, Self::PostfixKept | Self::PostfixOneEach)
    }

    pub fn is_gateway(self) -> bool {
        matches!(self, Self::Rest | Self::Kept | Self::OneEach)
    }

    /// A step's name.
    pub fn step(self, clients: usize) -> String {
        let plural = if clients == 1 { "" } else { "s" };
        format!("{self}, {clients} client{plural}")
    }
}

impl Display for Who {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Bare => "bare loop",
            Self::Rest => "REST",
            Self::Kept => "SMTP, connections kept",
            Self::PostfixKept => "Postfix, connections kept",
            Self::OneEach => "SMTP, one message a connection",
            Self::PostfixOneEach => "Postfix, one message a connection",
        })
    }
}

/// The result of a step.
pub struct Measured {
    pub who: Who,
    pub clients: usize,
    /// Messages a second.
    pub rate: f64,
    /// Milliseconds.
    pub p50: f64,
    /// Milliseconds.
    pub p99: f64,
    /// CPU time of the server for a message in milliseconds; of the bare loop itself.
    pub server: f64,
    /// CPU time of the gateway's Postgres for a message in milliseconds.
    pub database: Option<f64>,
    /// Bytes that the gateway's Postgres writes ahead (WAL) for a message.
    pub wal: Option<f64>,
    /// The server's peak memory in KiB.
    pub peak: Option<u64>,
}

/// Times as fast as Postfix, and CPU milliseconds of the gateway for a message.
const KEPT: (f64, f64) = (8.0, 0.2);
const ONE_EACH: (f64, f64) = (5.0, 0.6);

/// Part of the bare loop's rate, and CPU milliseconds.
const REST: (f64, f64) = (1.0 / 3.0, 0.2);

/// Webhooks: part of the bare loop's rate, CPU milliseconds of the gateway for one, and milliseconds from a
/// commit to the first byte.
const DELIVERY_RATE: f64 = 0.25;
const DELIVERY_CPU: f64 = 0.1;
const FIRST_BYTE: f64 = 10.0;

/// Times the p99 of when nobody is beside it, or of when the same is at another gateway.
const NEIGHBOUR: f64 = 2.0;

/// Milliseconds: what a delayed acknowledgement takes of a message that waits for one.
const DELAYED: f64 = 35.0;

/// KiB that an idle session may take, and CPU milliseconds of the gateway for a connection that it refuses.
const IDLE: f64 = 24.0;
const REFUSAL: f64 = 0.1;

/// The result of a step.
pub struct Delivered {
    pub endpoints: u16,
    /// Deliveries a second.
    pub rate: f64,
    /// Of the bare loop.
    pub bare: f64,
    /// CPU milliseconds of the gateway, of Postgres and of the bare loop for one.
    pub gateway: f64,
    pub database: f64,
    pub bare_cpu: f64,
}

/// Milliseconds from a commit to the first byte.
pub struct FirstByte {
    pub p50: f64,
    pub p99: f64,
}

/// The results of all steps.
#[derive(Default)]
pub struct WebhookResults {
    pub delivered: Vec<Delivered>,
    pub first_byte: Option<FirstByte>,
}

impl WebhookResults {
    pub fn is_empty(&self) -> bool {
        self.delivered.is_empty() && self.first_byte.is_none()
    }
}

/// The name of a step.
pub fn step(endpoints: u16) -> String {
    let plural = if endpoints == 1 { "" } else { "s" };
    format!("webhooks, {endpoints} endpoint{plural}")
}

/// The name of the step with little to do.
pub const ONE_AT_A_TIME: &str = "webhooks, one at a time";

/// A count as a number to reckon with; none here comes near what an `f64` can't hold.
#[expect(clippy::cast_precision_loss, reason = "a count of messages or KiB")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// The name of the step with idle sessions.
pub fn sessions_step(sessions: usize) -> String {
    format!("{sessions} idle sessions, and connections past them")
}

pub fn print(
    results: &[Measured],
    turns: &[Turn],
    sessions: Option<&Sessions>,
    webhooks: &WebhookResults,
) {
    if !results.is_empty() {
        print_messages(results);
    }
    if !turns.is_empty() {
        print_beside(turns);
    }
    if let Some(sessions) = sessions {
        print_sessions(sessions);
    }
    print_webhooks(webhooks);
}

fn print_messages(results: &[Measured]) {
    println!("5 kB messages; STARTTLS with full handshakes, AUTH PLAIN, ECDSA P-256");
    println!();
    println!(
        "{:<48} {:>10} {:>8} {:>8} {:>10} {:>12} {:>9} {:>9}",
        "", "messages/s", "p50 ms", "p99 ms", "CPU ms", "Postgres ms", "WAL bytes", "peak MiB"
    );
    for it in results {
        let database = it.database.map_or("-".to_owned(), |it| format!("{it:.3}"));
        let wal = it.wal.map_or("-".to_owned(), |it| format!("{it:.0}"));
        let peak = it
            .peak
            .map_or("-".to_owned(), |it| format!("{:.0}", mebibytes(it)));
        println!(
            "{:<48} {:>10.0} {:>8.2} {:>8.2} {:>10.3} {database:>12} {wal:>9} {peak:>9}",
            it.who.step(it.clients),
            it.rate,
            it.p50,
            it.p99,
            it.server,
        );
    }
    println!();
    println!(
        "CPU: of the server for one message (bare loop: its own; Postfix: with Dovecot, delivery included)"
    );
    println!();
    for clients in [16, 64] {
        let of = |who| at(results, who, clients);
        against(
            of(Who::Kept),
            of(Who::PostfixKept),
            "Postfix + Dovecot",
            KEPT,
        );
        against(
            of(Who::OneEach),
            of(Who::PostfixOneEach),
            "Postfix + Dovecot",
            ONE_EACH,
        );
        against(of(Who::Rest), of(Who::Bare), "the bare loop", REST);
    }
    for it in results.iter().filter(|it| it.clients == 1) {
        target(
            &format!("{}: half of them within {:.2} ms", it.who.step(1), it.p50),
            "no step of 40 ms",
            it.p50 < DELAYED,
        );
    }
}

/// Whether a neighbour is noticed: the medians of the turns.
fn print_beside(turns: &[Turn]) {
    println!();
    println!(
        "{:<64} {:>8} {:>8} {:>8}",
        neighbour::NAME,
        "p50 ms",
        "p99 ms",
        "cores"
    );
    let median = |beside: Beside, of: fn(&Turn) -> f64| {
        let mut all: Vec<f64> = turns
            .iter()
            .filter(|it| it.beside == beside)
            .map(of)
            .collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    for beside in Beside::ALL {
        println!(
            "{beside:<64} {:>8.2} {:>8.2} {:>8.2}",
            median(beside, |it| it.p50),
            median(beside, |it| it.p99),
            median(beside, |it| it.cores),
        );
    }
    for (beside, than) in [
        (Beside::Holder, Beside::Nobody),
        (Beside::Flooder, Beside::Nobody),
        // The part that isn't the processor's.
        (Beside::Flooder, Beside::Elsewhere),
    ] {
        let times = median(beside, |it| it.p99) / median(than, |it| it.p99);
        target(
            &format!("{beside}: {times:.2} times the p99 with {than}"),
            &format!("less than {NEIGHBOUR:.0} times"),
            times < NEIGHBOUR,
        );
    }
}

fn print_sessions(it: &Sessions) {
    let count = float(it.count as u64);
    let each = |grown: u64| float(grown.saturating_sub(it.before)) / count;
    println!(
        "the gateway: {:.0} MiB, with {} idle authenticated TLS sessions {:.0} MiB, after {} messages through them {:.0} MiB, after the refusals {:.0} MiB",
        mebibytes(it.before),
        it.count,
        mebibytes(it.idle),
        it.messages,
        mebibytes(it.sent),
        mebibytes(it.refused),
    );
    for (when, grown) in [
        ("an idle session", it.idle),
        ("once some have sent", it.sent),
    ] {
        target(
            &format!("{when}: {:.1} KiB", each(grown)),
            &format!("at most {IDLE:.0} KiB"),
            each(grown) <= IDLE,
        );
    }
    let refusals = &it.refusals;
    let all = refusals.refused + refusals.failed;
    target(
        &format!(
            "{} of {all} connections past the limit refused with 421 in {:.1} s, p99 {:.1} ms",
            refusals.refused, refusals.seconds, refusals.p99
        ),
        "all",
        refusals.failed == 0,
    );
    if let Some(failure) = &refusals.failure {
        println!("the first that was not: {failure}");
    }
    let cpu = it.refusing.as_secs_f64() * 1_000.0 / float(all.max(1));
    target(
        &format!("a refused connection: {cpu:.3} ms of CPU"),
        &format!("at most {REFUSAL}"),
        cpu <= REFUSAL,
    );
}

fn print_webhooks(webhooks: &WebhookResults) {
    if !webhooks.delivered.is_empty() {
        println!();
        println!(
            "{:<32} {:>12} {:>10} {:>12} {:>12} {:>12}",
            "", "deliveries/s", "CPU ms", "Postgres ms", "bare loop/s", "its CPU ms"
        );
        for it in &webhooks.delivered {
            println!(
                "{:<32} {:>12.0} {:>10.3} {:>12.3} {:>12.0} {:>12.3}",
                step(it.endpoints),
                it.rate,
                it.gateway,
                it.database,
                it.bare,
                it.bare_cpu,
            );
        }
        println!();
    }
    for it in &webhooks.delivered {
        let (name, ratio) = (step(it.endpoints), it.rate / it.bare);
        target(
            &format!("{name}: {ratio:.2} times the bare loop"),
            &format!("at least {DELIVERY_RATE:.2}"),
            ratio >= DELIVERY_RATE,
        );
        target(
            &format!("{name}: {:.3} ms of CPU", it.gateway),
            &format!("at most {DELIVERY_CPU}"),
            it.gateway <= DELIVERY_CPU,
        );
    }
    if let Some(it) = &webhooks.first_byte {
        target(
            &format!(
                "{ONE_AT_A_TIME}: commit to first byte p50 {:.2} ms, p99 {:.2} ms",
                it.p50, it.p99
            ),
            &format!("p50 below {FIRST_BYTE:.0} ms"),
            it.p50 < FIRST_BYTE,
        );
    }
}

fn at(results: &[Measured], who: Who, clients: usize) -> Option<&Measured> {
    results
        .iter()
        .find(|it| it.who == who && it.clients == clients)
}

fn against(
    ours: Option<&Measured>,
    theirs: Option<&Measured>,
    their_name: &str,
    (times, milliseconds): (f64, f64),
) {
    let Some(ours) = ours else { return };
    let name = ours.who.step(ours.clients);
    if let Some(theirs) = theirs {
        let ratio = ours.rate / theirs.rate;
        target(
            &format!("{name}: {ratio:.2} times {their_name}"),
            &format!("at least {times:.2}"),
            ratio >= times,
        );
    }
    target(
        &format!("{name}: {:.3} ms of CPU", ours.server),
        &format!("at most {milliseconds}"),
        ours.server <= milliseconds,
    );
}

fn target(result: &str, wanted: &str, is_met: bool) {
    let verdict = if is_met { "ok" } else { "missed" };
    println!("{result:<75} {wanted:<20} {verdict}");
}

fn mebibytes(kibibytes: u64) -> f64 {
    float(kibibytes) / 1_024.0
}
