//! Child processes: this program in another mode, and the servers that are measured. None outlives
//! this process.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, ChildStdout, Command};

use super::Outcome;

/// The mode that is the provider.
pub const SINK: &str = "--sink";

/// The mode that is the receiver of webhooks.
pub const RECEIVER: &str = "--receiver";

/// The mode that is the clients.
pub const LOAD: &str = "--load";

/// How long a server may take to end by itself.
const END: Duration = Duration::from_secs(20);

/// Many connections need many file descriptors. The death signal follows the thread that forks, which
/// is this process's only one.
const START: &str = r#"ulimit -n "$(ulimit -Hn)" && signal=$1 && shift && exec setpriv --pdeathsig "$signal" -- "$@""#;

/// A command that ends by `death_signal` when this process dies.
pub fn command(death_signal: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-euc", START, "sh", death_signal])
        .arg(program)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Returns when whoever has started this process asks it to go ahead.
pub async fn go_ahead() -> Outcome<()> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    Receiver::from_owned_fd(input)?.read_u8().await?;
    Ok(())
}

/// Returns when whoever has started this process closes its standard input, or ends.
pub async fn left_alone() -> Outcome<()> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    // Nothing is written there.
    Receiver::from_owned_fd(input)?.read_u8().await.err();
    Ok(())
}

/// A server that was started.
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    child: Child,
}

impl Server {
    /// Starts it with its output in a file of `folder`.
    pub fn start(name: &'static str, folder: &Path, mut command: Command) -> Outcome<Self> {
        let output = std::fs::File::create(folder.join(format!("{name}.output")))?;
        let child = command
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("{name} doesn't start: {error}"))?;
        Ok(Self { name, child })
    }

    /// Its process id.
    pub fn pid(&self) -> Outcome<u32> {
        Ok(self
            .child
            .id()
            .ok_or_else(|| format!("{} has ended", self.name))?)
    }

    /// Fails when it runs no more.
    pub fn check(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("{} has ended: {status}", self.name).into()),
        }
    }

    /// Asks it to end, and waits for that.
    pub async fn stop(mut self) -> Outcome<()> {
        let pid = self.pid()?.to_string();
        let told = Command::new("/bin/sh")
            .args(["-c", "kill -s TERM \"$1\"", "sh", &pid])
            .status();
        told.await?;
        if tokio::time::timeout(END, self.child.wait()).await.is_err() {
            eprintln!("bench: {} does not end and is killed", self.name);
            self.child.kill().await?;
        }
        Ok(())
    }
}

/// This program in another mode. It ends when its standard input is closed, or by itself.
pub struct Mode {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Mode {
    /// Starts it with a job.
    pub fn start(
        mode: &str,
        job: &impl Serialize,
        environment: &[(String, String)],
    ) -> Outcome<Self> {
        let mut child = command("KILL", std::env::current_exe()?)
            .arg(mode)
            .arg(serde_json::to_string(job)?)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("a child has no output")?;
        Ok(Self {
            child,
            lines: BufReader::new(stdout).lines(),
        })
    }

    /// Its process id.
    pub fn pid(&self) -> Outcome<u32> {
        Ok(self.child.id().ok_or("the child has ended")?)
    }

    /// The next line that it says.
    pub async fn line(&mut self) -> Outcome<String> {
        match self.lines.next_line().await? {
            Some(line) => Ok(line),
            None => Err(format!("a part of the bench failed: {}", self.child.wait().await?).into()),
        }
    }

    /// Asks it to go ahead.
    pub async fn go_ahead(&mut self) -> Outcome<()> {
        let input = self.child.stdin.as_mut().ok_or("a child has no input")?;
        Ok(input.write_all(b"!").await?)
    }

    /// Closes its standard input, and waits for its end.
    pub async fn end(mut self) -> Outcome<()> {
        drop(self.child.stdin.take());
        let status = tokio::time::timeout(END, self.child.wait()).await??;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a part of the bench failed: {status}").into())
        }
    }
}

/// Waits for a line that a child must say.
pub async fn expect(load: &mut Mode, line: &str) -> Outcome<()> {
    let said = load.line().await?;
    if said == line {
        Ok(())
    } else {
        Err(format!("the clients should have said {line:?}, and said {said:?}").into())
    }
}
