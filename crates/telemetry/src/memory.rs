//! The memory that this process may use, and whether it suffices for its settings.

use std::path::{Component, Path};

use mailgate_settings::Settings;

/// The memory of an idle gateway (docs/speed.md: 39 MiB), with room for short-lived allocations.
const BASE: u64 = 64 << 20;

/// One idle connection (docs/speed.md: 10.7 KiB of an SMTP session, in TLS).
const CONNECTION: u64 = 12 << 10;

/// Where control groups are mounted (`cgroups(7)`).
const GROUPS: &str = "/sys/fs/cgroup";

/// The maximum memory of a process with these settings, in bytes: messages, unauthenticated requests, and idle
/// connections.
#[must_use]
pub fn needed(settings: &Settings) -> u64 {
    let limits = &settings.limits;
    let connections = whole(limits.smtp_connections) + whole(limits.http_connections);
    let bytes = whole(limits.in_flight_bytes) + whole(limits.unauthenticated_bytes);
    BASE + bytes + connections * CONNECTION
}

/// The memory that this process may use, in bytes: the machine's, or the limit of its strictest control group. `None`
/// if neither can be read.
#[must_use]
pub fn permitted() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| total(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit(&groups, |file| std::fs::read_to_string(file).ok());
    machine.into_iter().chain(group).min()
}

/// The problem and its remedy, if the kernel would kill the process before its own limits are reached.
#[must_use]
pub fn shortage(settings: &Settings, permitted: Option<u64>) -> Option<String> {
    let (permitted, needed) = (permitted?, needed(settings));
    (permitted < needed).then(|| {
        format!(
            "this process may use {} MiB of memory, but limits.in_flight_bytes, limits.unauthenticated_bytes, limits.smtp_connections and limits.http_connections together may need {}: give it that much (a machine with more, MemoryMax in the systemd unit, mem_limit in the compose file), or lower these settings, so that it refuses mail for a moment rather than being killed",
            mebibytes(permitted),
            mebibytes(needed)
        )
    })
}

/// Rounded.
#[must_use]
pub fn mebibytes(bytes: u64) -> u64 {
    (bytes + (1 << 19)) >> 20
}

/// `MemTotal` of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// The lowest limit of the process's control group and its ancestors. `groups` is `/proc/self/cgroup`.
fn group_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            return Vec::new();
        };
        // The second version has one line, without controllers.
        let (mount, file) = match controllers {
            "" => (GROUPS.to_owned(), "memory.max"),
            first if first.split(',').any(|name| name == "memory") => {
                (format!("{GROUPS}/memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let mut within = Path::new(&mount).to_owned();
        let mut limits = vec![limit(&within.join(file), &read)];
        for part in Path::new(path).components() {
            if let Component::Normal(name) = part {
                within.push(name);
                limits.push(limit(&within.join(file), &read));
            }
        }
        limits
    });
    limits.flatten().min()
}

/// `None`: no limit, as for `max`.
fn limit(file: &Path, read: &impl Fn(&Path) -> Option<String>) -> Option<u64> {
    read(file)?.trim().parse().ok()
}

fn whole(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX / 8)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_least_limit_around_the_process_counts() {
        let files = HashMap::from([
            ("/sys/fs/cgroup/system.slice/memory.max", "max\n"),
            (
                "/sys/fs/cgroup/system.slice/mailgate.service/memory.max",
                "209715200\n",
            ),
            ("/sys/fs/cgroup/user.slice/memory.max", "1000\n"),
            ("/sys/fs/cgroup/memory.max", "300\n"),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "4096\n",
            ),
        ]);
        let read = |file: &Path| Some((*files.get(file.to_str()?)?).to_owned());
        let nested = "0::/system.slice/mailgate.service\n";
        let without_root =
            |file: &Path| (file != Path::new("/sys/fs/cgroup/memory.max")).then(|| read(file))?;
        assert_eq!(group_limit(nested, without_root), Some(200 << 20));
        assert_eq!(group_limit("0::/\n", read), Some(300));
        assert_eq!(group_limit("0::/elsewhere\n", without_root), None);
        let first = "9:cpu,cpuacct:/docker\n5:memory:/docker\n";
        assert_eq!(group_limit(first, read), Some(4_096));
        for strange in ["", "nonsense", "0::/../../etc", "0:"] {
            assert_eq!(group_limit(strange, |_| None), None, "{strange}");
        }
    }

    #[test]
    fn the_machines_memory_is_read() {
        assert_eq!(
            total("MemTotal:       16307720 kB\nMemFree: 1 kB\n"),
            Some(16_307_720 << 10)
        );
        assert_eq!(total("MemFree: 1 kB"), None);
    }
}
