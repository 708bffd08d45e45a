//! What a process has used: CPU time and memory, as proc(5) tells them.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use super::Outcome;

/// What `/proc` counts CPU time in: `USER_HZ`, 100 a second on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// The fields of `/proc/PID/stat` behind the program's name; the first of them is the third of all.
fn stat(pid: u32) -> Outcome<Vec<u64>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text.rsplit_once(") ").ok_or("/proc/PID/stat has no name")?;
    // The state is a letter, some others are negative: none of them is asked for.
    Ok(fields
        .split(' ')
        .map(|field| field.trim().parse().unwrap_or_default())
        .collect())
}

fn ticks(fields: &[u64], range: std::ops::RangeInclusive<usize>) -> Duration {
    let ticks: u64 = range.filter_map(|field| fields.get(field - 3)).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

/// CPU time of a process: utime and stime.
pub fn process(pid: u32) -> Outcome<Duration> {
    Ok(ticks(&stat(pid)?, 14..=15))
}

/// CPU time of a process and all that it has started. What has ended is counted at whoever waited for
/// it: cutime and cstime.
pub fn tree(root: u32) -> Outcome<Duration> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut used = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // It may end meanwhile.
        let Ok(fields) = stat(pid) else { continue };
        let parent = fields.get(1).copied().unwrap_or_default();
        children
            .entry(u32::try_from(parent)?)
            .or_default()
            .push(pid);
        used.insert(pid, ticks(&fields, 14..=17));
    }
    let mut sum = Duration::ZERO;
    let mut waiting = vec![root];
    while let Some(pid) = waiting.pop() {
        sum += used.get(&pid).copied().unwrap_or_default();
        waiting.extend(children.get(&pid).into_iter().flatten());
    }
    Ok(sum)
}

fn status(pid: u32, name: &str) -> Outcome<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kibibytes
        .ok_or_else(|| format!("/proc/PID/status has no {name}"))?
        .parse()?)
}

/// Memory of a process at this moment, in KiB.
pub fn memory(pid: u32) -> Outcome<u64> {
    status(pid, "VmRSS")
}

/// The most memory that a process has had since [`forget_peak`], in KiB.
pub fn peak(pid: u32) -> Outcome<u64> {
    status(pid, "VmHWM")
}

/// Lets the peak begin anew.
pub fn forget_peak(pid: u32) -> Outcome<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}
