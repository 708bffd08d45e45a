//! The server's process: `initdb` if there is no cluster, starting `postgres`, readiness, shutdown.
//!
//! All of it runs on one thread that lives as long as the server: see [`keep`].

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::home::{Home, PORT};
use super::programs::Programs;
use super::server_user::ServerUser;
use super::{Durability, PostgresError};

const MAX_CONNECTIONS: &str = "max_connections=200";

/// `initdb` takes 1 to 4 s; this leaves room for a busy machine.
const INITDB_TIMEOUT: Duration = Duration::from_mins(2);

/// Time limit for a server to start, including crash recovery.
const READY_TIMEOUT: Duration = Duration::from_mins(1);

/// Time limit for a killed predecessor's server to finish its shutdown.
const PREDECESSOR_TIMEOUT: Duration = Duration::from_secs(15);

const POLL: Duration = Duration::from_millis(15);

/// Fast shutdown, immediate shutdown, and kill, each with its time limit (the Postgres manual, "Shutting Down the
/// Server").
const SIGNALS: [(&str, Duration); 3] = [
    ("INT", Duration::from_secs(10)),
    ("QUIT", Duration::from_secs(3)),
    ("KILL", Duration::from_secs(5)),
];

/// A log above this size is truncated at the next start.
const LOG_MAX: u64 = 10 * 1024 * 1024;

/// How many bytes from the log's end an error shows.
const LOG_TAIL: u64 = 2000;

/// A running server, as reported to the caller.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: u32,
    pub(super) socket: PathBuf,
    pub(super) log: PathBuf,
}

/// Starts the server, reports on `ready`, waits for its exit and reports that on `ended`. Stops the server if the
/// caller of `start` is gone.
pub(super) fn keep(
    directory: &Path,
    durability: Durability,
    ready: oneshot::Sender<Result<Started, PostgresError>>,
    ended: &watch::Sender<Option<String>>,
) {
    let (home, mut child, started) = match launch(directory, durability, &ready) {
        Ok(launched) => launched,
        Err(error) => {
            // The receiver is gone, so there is no one to report to.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let log = started.log.clone();
    let status = if ready.send(Ok(started)).is_ok() {
        child.wait()
    } else {
        end_child(&mut child)
    };
    home.remove_socket();
    // Release the lock before reporting, so that the receiver can start again.
    drop(home);
    let how = match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    ended.send_replace(Some(format!(
        "PostgreSQL ended ({how}); its log is {}",
        log.display()
    )));
}

/// Stops the server with increasingly strong signals until `ended` reports its exit; `false` if nothing helped.
pub(super) fn end(pid: u32, ended: &watch::Receiver<Option<String>>) -> bool {
    // If the keeper is gone, the channel is closed.
    let gone = || ended.borrow().is_some() || ended.has_changed().is_err();
    for (name, patience) in SIGNALS {
        if gone() {
            return true;
        }
        signal(pid, name);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if gone() {
                return true;
            }
            std::thread::sleep(POLL);
        }
    }
    gone()
}

fn end_child(child: &mut Child) -> std::io::Result<ExitStatus> {
    for (name, patience) in SIGNALS {
        signal(child.id(), name);
        if let Some(status) = wait_for(child, patience)? {
            return Ok(status);
        }
    }
    child.wait()
}

/// Sends a signal through the shell, which every system has: the standard library sends only SIGKILL.
fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh")
        .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = sent {
        tracing::warn!(%error, pid, "could not signal the private Postgres");
    }
}

fn wait_for(child: &mut Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

fn launch(
    directory: &Path,
    durability: Durability,
    ready: &oneshot::Sender<Result<Started, PostgresError>>,
) -> Result<(Home, Child, Started), PostgresError> {
    let home = Home::open(directory, durability)?;
    let log_path = home.log();
    let log = Log::open(&log_path)?;
    let cluster = home.cluster();
    let made_by = made_by(&cluster)?;
    let made_by = made_by.as_deref();
    let programs = Programs::find(&home.account, made_by)?;
    match made_by {
        None => initialise(&home, &programs, durability, &log)?,
        Some(made_by) if made_by != programs.version => {
            return Err(PostgresError::VersionMismatch {
                cluster,
                made_by: made_by.to_owned(),
                programs: programs.directory,
                found: programs.version,
            });
        }
        Some(_) => await_predecessor(&home)?,
    }
    let socket = home.socket()?;
    let mut command = supervised(&home.account, "INT", &programs.postgres());
    command
        .arg("-D")
        .arg(&cluster)
        .arg("-k")
        .arg(&socket)
        .args(["-p", &PORT.to_string()])
        .args(["-c", "listen_addresses="])
        .args(["-c", MAX_CONNECTIONS]);
    if durability == Durability::Throwaway {
        command
            .arg("-F")
            .args(["-c", "synchronous_commit=off"])
            .args(["-c", "full_page_writes=off"])
            // Tests leave hundreds of databases, each of which autovacuum would visit every minute.
            .args(["-c", "autovacuum_naptime=1h"]);
    }
    let mut child = log.spawn(&mut command)?;
    if let Err(reason) = await_ready(&mut child, &cluster, ready) {
        let _ = end_child(&mut child);
        home.remove_socket();
        return Err(PostgresError::Start {
            reason,
            log: log.tail(),
        });
    }
    let started = Started {
        pid: child.id(),
        socket,
        log: log_path,
    };
    Ok((home, child, started))
}

/// The version that created the cluster; `None` if there is no cluster.
fn made_by(cluster: &Path) -> Result<Option<String>, PostgresError> {
    let path = cluster.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(version) => Ok(Some(version.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PostgresError::io("read", &path)(error)),
    }
}

/// Creates the cluster under another name and renames it once complete, so that a crash in between leaves nothing that
/// looks like a cluster.
fn initialise(
    home: &Home,
    programs: &Programs,
    durability: Durability,
    log: &Log,
) -> Result<(), PostgresError> {
    let unfinished = home.unfinished();
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(PostgresError::io("remove", &unfinished))?;
    }
    let mut command = supervised(&home.account, "KILL", &programs.initdb());
    command
        .arg("-D")
        .arg(&unfinished)
        .args(["-U", "postgres", "-E", "UTF8", "--locale=C", "--auth=trust"])
        .arg(match durability {
            Durability::Durable => "--data-checksums",
            Durability::Throwaway => "--no-sync",
        });
    let mut child = log.spawn(&mut command)?;
    let reason = match wait_for(&mut child, INITDB_TIMEOUT) {
        Ok(Some(status)) if status.success() => {
            let cluster = home.cluster();
            return fs::rename(&unfinished, &cluster)
                .map_err(PostgresError::io("move the new cluster to", &cluster));
        }
        Ok(Some(status)) => status.to_string(),
        Ok(None) => {
            let _ = child.kill();
            let _ = child.wait();
            format!("no end within {} s", INITDB_TIMEOUT.as_secs())
        }
        Err(error) => error.to_string(),
    };
    Err(PostgresError::Initdb {
        reason,
        log: log.tail(),
    })
}

/// Waits for the server of a predecessor that was just killed; we hold the folder's lock, so none of our live processes
/// runs it.
fn await_predecessor(home: &Home) -> Result<(), PostgresError> {
    let pid_file = home.cluster().join("postmaster.pid");
    let deadline = Instant::now() + PREDECESSOR_TIMEOUT;
    while let Some(pid) = first_line_pid(&pid_file) {
        if !is_postgres(pid) {
            // If another process has reused the pid in a stale file, Postgres refuses to start.
            return match fs::remove_file(&pid_file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(PostgresError::io("remove", &pid_file)(error))
                }
                _ => Ok(()),
            };
        }
        if Instant::now() >= deadline {
            return Err(PostgresError::AlreadyRunning {
                directory: home.directory().to_owned(),
                pid,
            });
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn first_line_pid(pid_file: &Path) -> Option<u32> {
    let text = fs::read_to_string(pid_file).ok()?;
    text.lines().next()?.trim().parse().ok()
}

/// Whether the process is alive and a Postgres server. Without /proc, every live process counts as one.
fn is_postgres(pid: u32) -> bool {
    if Path::new("/proc/self/stat").exists() {
        return fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| runs_postgres(&stat));
    }
    Command::new("sh")
        .args(["-c", "kill -0 \"$1\"", "sh", &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Parses a line of `proc_pid_stat(5)`. A zombie (a container's first process may never reap it) counts as dead.
fn runs_postgres(stat: &str) -> bool {
    stat.split_once(" (postgres) ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// `program` run as `account`, with a clean environment, in its own process group (we handle Ctrl-C ourselves), and
/// with `death_signal` sent to it when this thread ends.
fn supervised(account: &ServerUser, death_signal: &str, program: &Path) -> Command {
    let mut command;
    if let Some(setpriv) = setpriv() {
        command = Command::new(setpriv);
        // Changing the user clears the death signal, so setpriv sets it afterwards.
        if let ServerUser::Other { uid, gid, .. } = account {
            command
                .args(["--reuid", &uid.to_string(), "--regid", &gid.to_string()])
                .arg("--clear-groups");
        }
        command
            .args(["--pdeathsig", death_signal, "--"])
            .arg(program);
    } else {
        // Not Linux: a kill -9 of this process leaves the server running there.
        command = Command::new(program);
        account.apply(&mut command);
    }
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null());
    command
}

fn setpriv() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/bin"), PathBuf::from("/bin")])
        .map(|directory| directory.join("setpriv"))
        .find(|program| program.is_absolute() && program.is_file())
}

/// Waits until line 8 of `postmaster.pid` says `ready` and its line 1 is our child's pid.
fn await_ready(
    child: &mut Child,
    cluster: &Path,
    ready: &oneshot::Sender<Result<Started, PostgresError>>,
) -> Result<(), String> {
    let pid_file = cluster.join("postmaster.pid");
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return Err(status.to_string()),
            Err(error) => return Err(error.to_string()),
        }
        if fs::read_to_string(&pid_file).is_ok_and(|text| says_ready(&text, child.id())) {
            return Ok(());
        }
        if ready.is_closed() {
            return Err("the start was cancelled".to_owned());
        }
        if Instant::now() >= deadline {
            return Err(format!("not ready within {} s", READY_TIMEOUT.as_secs()));
        }
        std::thread::sleep(POLL);
    }
}

fn says_ready(pid_file: &str, pid: u32) -> bool {
    let mut lines = pid_file.lines();
    lines
        .next()
        .is_some_and(|line| line.trim() == pid.to_string())
        && lines.nth(6).is_some_and(|line| line.trim() == "ready")
}

/// The log of initdb and the server, and the offset at which this start begins.
struct Log {
    path: PathBuf,
    file: File,
    from: u64,
}

impl Log {
    fn open(path: &Path) -> Result<Self, PostgresError> {
        let error = || PostgresError::io("open", path);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(error())?;
        let mut from = file.metadata().map_err(error())?.len();
        if from > LOG_MAX {
            file.set_len(0).map_err(error())?;
            from = 0;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            from,
        })
    }

    /// Spawns `command` with both its outputs in the log.
    fn spawn(&self, command: &mut Command) -> Result<Child, PostgresError> {
        let copy = || {
            self.file
                .try_clone()
                .map_err(PostgresError::io("open", &self.path))
        };
        let program = PathBuf::from(command.get_program());
        command
            .stdout(copy()?)
            .stderr(copy()?)
            .spawn()
            .map_err(PostgresError::io("run", &program))
    }

    /// The last lines of this start.
    fn tail(&self) -> String {
        let read = || {
            let mut file = File::open(&self.path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(
                self.from.max(length.saturating_sub(LOG_TAIL)),
            ))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        read().unwrap_or_else(|error| format!("{}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_needs_our_pid_and_line_eight() {
        let ready = "42\n/data\n1700000000\n5432\n/socket\n\n  16  3\nready   \n";
        assert!(says_ready(ready, 42));
        assert!(!says_ready(ready, 43));
        assert!(!says_ready(&ready.replace("ready", "starting"), 42));
        assert!(!says_ready("42\n/data\n", 42));
        assert!(!says_ready("", 42));
    }

    #[test]
    fn a_zombie_and_another_program_are_no_postgres() {
        assert!(runs_postgres("42 (postgres) S 1 42"));
        assert!(!runs_postgres("42 (postgres) Z 1 42"));
        assert!(!runs_postgres("42 (bash) S 1 42"));
        assert!(!is_postgres(std::process::id()));
    }
}
