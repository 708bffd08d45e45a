//! Process metrics from the operating system, under the names that Prometheus's client libraries use. They are read at
//! each scrape; without `/proc`, only some are available.

use std::fmt::Write as _;
use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The metrics: name, type, description.
const METRICS: [(&str, &str, &str); 7] = [
    (
        "process_cpu_seconds_total",
        "counter",
        "CPU time used, user and system",
    ),
    (
        "process_resident_memory_bytes",
        "gauge",
        "Memory in use (resident set size)",
    ),
    (
        "process_virtual_memory_bytes",
        "gauge",
        "Address space in use",
    ),
    ("process_threads", "gauge", "Threads"),
    (
        "process_start_time_seconds",
        "gauge",
        "When the process started, in seconds since 1970",
    ),
    ("process_open_fds", "gauge", "Open file descriptors"),
    (
        "process_max_fds",
        "gauge",
        "File descriptors that it may open",
    ),
];

/// All available metrics, in Prometheus's text format.
#[must_use]
pub fn render() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let stat = Stat::parse(&stat);
    let booted = fs::read_to_string("/proc/stat").ok();
    let booted = booted.as_deref().and_then(boot_time);
    let values = [
        Some(cpu_seconds()),
        stat.as_ref()
            .map(|stat| float(stat.resident_pages) * size()),
        stat.as_ref().map(|stat| float(stat.virtual_bytes)),
        stat.as_ref().map(|stat| float(stat.threads)),
        stat.as_ref().zip(booted).map(|(stat, booted)| {
            float(booted) + float(stat.started_ticks) / float(clock_ticks_per_second())
        }),
        open_files().map(float),
        Some(
            getrlimit(Resource::Nofile)
                .current
                .map_or(f64::INFINITY, float),
        ),
    ];
    let mut text = String::new();
    for ((name, kind, help), value) in METRICS.iter().zip(values) {
        let Some(value) = value else {
            continue;
        };
        let value = if value.is_infinite() {
            "+Inf".to_owned()
        } else {
            value.to_string()
        };
        // Writing to a `String` can't fail.
        let _ = write!(
            text,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n"
        );
    }
    text
}

/// Fields of `/proc/self/stat` (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    threads: u64,
    /// Ticks since boot.
    started_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, which may contain anything.
        let (_, behind_name) = text.rsplit_once(')')?;
        let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(Self {
            threads: field(20)?,
            started_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// The boot time, in seconds since 1970.
fn boot_time(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line?.trim().parse().ok()
}

fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a process doesn't run for so long"
    )]
    let seconds = used.tv_sec as f64;
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of one second are exact"
    )]
    let part = used.tv_nsec as f64 / 1e9;
    seconds + part
}

/// Open file descriptors: since Linux 6.2 the folder's size is their number; on older kernels they are counted.
fn open_files() -> Option<u64> {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).map(|metadata| metadata.len()) {
        Ok(0) | Err(_) => {
            let entries = fs::read_dir(folder).ok()?;
            // One of them is the folder itself.
            u64::try_from(entries.count().saturating_sub(1)).ok()
        }
        Ok(number) => Some(number),
    }
}

fn size() -> f64 {
    float(u64::try_from(page_size()).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has nothing else")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_anything_in_it() {
        let text = "7 (a) b ) R 1 7 7 0 -1 4194304 94 0 0 0 3 4 0 0 20 0 5 0 61837 8192000 700 18446744073709551615 1";
        let expected = Stat {
            threads: 5,
            started_ticks: 61_837,
            virtual_bytes: 8_192_000,
            resident_pages: 700,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse(""), None);
        assert_eq!(Stat::parse("7 (a) R 1 2"), None);
        assert_eq!(boot_time("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000));
        assert_eq!(boot_time("cpu 1\n"), None);
    }
}
