//! Processes of the peers: a temporary folder with the programs that live in it, and short runs
//! with a time limit.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::support::failure;
use crate::support::patience::PATIENCE;
use tokio::io::AsyncWriteExt as _;

/// Longest that a program may take until it answers on its port.
const START_TIME: Duration = PATIENCE;

/// Longest that all programs together may take to end; the keeper kills what is left after 5 s.
const END_TIME: Duration = Duration::from_mins(5);

/// Waits for its standard input to close, which happens when the test process ends in any way. Ends
/// then the programs named in pids/ and removes the folder.
const KEEPER: &str = r#"
read -r _
any_alive() { for file in pids/*; do kill -0 "$(cat "$file")" && return 0; done 2>/dev/null; return 1; }
end_all() { for file in pids/*; do kill -s "$1" "$(cat "$file")"; done 2>/dev/null; }
end_all TERM
tries=0
while any_alive && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); sleep 0.05; done
end_all KILL
folder=$PWD
cd / && rm -rf "$folder"
"#;

/// A temporary folder and the programs that run from it.
pub struct Household {
    folder: PathBuf,
    keeper: Mutex<Child>,
    members: Mutex<Vec<Child>>,
}

impl Household {
    pub fn new() -> Self {
        failure::explain();
        // The programs' own users must reach into it. The keeper removes it.
        let folder = tempfile::Builder::new()
            .prefix("mailgate-peers-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .unwrap()
            .keep();
        fs::create_dir(folder.join("pids")).unwrap();
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER])
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C for the tests isn't one for the keeper.
            .process_group_of_its_own()
            .spawn()
            .unwrap();
        Self {
            folder,
            keeper: Mutex::new(keeper),
            members: Mutex::new(Vec::new()),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a program that lives as long as the household. Its output goes to `NAME.output`.
    pub fn add(&self, name: &str, command: &mut Command) {
        let output = fs::File::create(self.folder.join(format!("{name}.output"))).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} doesn't start: {error}"));
        self.adopt(name, child);
    }

    /// Takes in a program that was started already.
    pub fn adopt(&self, name: &str, child: Child) {
        fs::write(self.folder.join("pids").join(name), child.id().to_string()).unwrap();
        self.members.lock().unwrap().push(child);
    }

    /// Waits until a server answers on each of `ports`.
    pub async fn wait_for_ports(&self, name: &str, ports: &[u16]) {
        let deadline = Instant::now() + START_TIME;
        for port in ports {
            while tokio::net::TcpStream::connect(("127.0.0.1", *port))
                .await
                .is_err()
            {
                let ended = self.ended();
                assert!(
                    ended.is_empty() && Instant::now() < deadline,
                    "{name} doesn't answer on port {port}; programs that ended: {ended:?}\n{}",
                    self.logs()
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    fn ended(&self) -> Vec<(u32, String)> {
        let mut members = self.members.lock().unwrap();
        members
            .iter_mut()
            .filter_map(|child| Some((child.id(), child.try_wait().unwrap()?.to_string())))
            .collect()
    }

    /// The ends of all logs, for messages of failing tests.
    pub fn logs(&self) -> String {
        const LINES: usize = 40;
        let mut logs = String::new();
        for entry in fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            if !path
                .extension()
                .is_some_and(|it| it == "log" || it == "output")
            {
                continue;
            }
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            let skipped = text.lines().count().saturating_sub(LINES);
            writeln!(logs, "---- {}", path.display()).unwrap();
            for line in text.lines().skip(skipped) {
                writeln!(logs, "{line}").unwrap();
            }
        }
        logs
    }
}

impl Drop for Household {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        let keeper = self.keeper.get_mut().unwrap();
        let members = self.members.get_mut().unwrap();
        drop(keeper.stdin.take());
        let deadline = Instant::now() + END_TIME;
        let ended = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)));
        // All of them are asked each time: one that ended must be reaped for the keeper to see it.
        while !(members.iter_mut().map(ended).fold(true, |all, it| all & it) && ended(keeper)) {
            if Instant::now() > deadline {
                eprintln!("the peers in {} didn't end", self.folder.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// `Command::process_group(0)`, by a name that says what for.
pub trait OwnProcessGroup {
    fn process_group_of_its_own(&mut self) -> &mut Self;
}

impl OwnProcessGroup for Command {
    fn process_group_of_its_own(&mut self) -> &mut Self {
        std::os::unix::process::CommandExt::process_group(self, 0)
    }
}

/// Runs a program to its end, and kills it when that takes longer than `limit`.
pub async fn run(command: Command, input: &[u8], limit: Duration) -> Output {
    let name = format!("{}", command.get_program().display());
    let mut child = tokio::process::Command::from(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{name} doesn't start: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let feed = async move {
        // A program that fails early doesn't read its input.
        let _ = stdin.write_all(input).await;
        drop(stdin);
    };
    let outcome = tokio::time::timeout(limit, async {
        tokio::join!(feed, child.wait_with_output()).1
    });
    outcome
        .await
        .unwrap_or_else(|_| panic!("{name} took longer than {limit:?}"))
        .unwrap()
}

/// Where a program is: in PATH, or among the administrator's programs.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// Whether this process has root's user id.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Makes a user of this machine, and that user's group, the owners of a folder.
pub fn give_to(folder: &Path, user: &str) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let fields: Vec<&str> = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[0] == user)
        .unwrap_or_else(|| panic!("there is no user {user}: run tests/peers/install"));
    let [uid, gid] = [fields[2], fields[3]].map(|id| Some(id.parse().unwrap()));
    std::os::unix::fs::chown(folder, uid, gid).unwrap();
}
