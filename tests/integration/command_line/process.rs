//! A child process that runs the program, in an environment of its own.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use mailgate_sandbox::certificates::{self, CertificateFiles};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::support::failure;
use crate::support::gateway::SEAL_KEY;
use crate::support::patience::PATIENCE;
use crate::support::ports;
use crate::support::postgres_programs;

/// Longest that a child may take to be ready: it may have to make a cluster.
pub const START: Duration = Duration::from_mins(5);

/// Longest that a child may take to end when nothing is in hand.
pub const END: Duration = PATIENCE;

const POLL: Duration = Duration::from_millis(20);

/// What to run.
#[derive(Clone)]
pub struct Invocation {
    /// A program that runs this one, with its first arguments.
    wrapper: Vec<OsString>,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Invocation {
    pub fn new(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        Self {
            wrapper: Vec::new(),
            program: Self::own_program(),
            arguments: owned(arguments),
            environment: Vec::new(),
        }
    }

    /// `serve` with every required setting, its listeners on free ports.
    pub fn serve(database_url: &str, files: &CertificateFiles) -> Self {
        Self::new(["serve"])
            .set("DATABASE__URL", database_url)
            .set("DATABASE__MAX_CONNECTIONS", "8")
            .set("SEAL__KEYS", SEAL_KEY)
            .set("TLS__CERTIFICATE", &files.certificate)
            .set("TLS__KEY", &files.key)
            .set("METRICS__LISTEN", "")
            .listening_anywhere()
    }

    /// `dev` in `directory`, its listeners on free ports.
    pub fn dev(directory: &Path) -> Self {
        Self::new([
            OsStr::new("dev"),
            OsStr::new("--dir"),
            directory.as_os_str(),
        ])
        .set("SANDBOX__LISTEN", "127.0.0.1:0")
        .listening_anywhere()
    }

    /// On ports that stay its own: once it has ended, nobody listens there.
    fn listening_anywhere(self) -> Self {
        let [http, starttls, tls] = ports::reserve().map(|port| format!("127.0.0.1:{port}"));
        self.set("HTTP__LISTEN", http)
            .set("SMTP__STARTTLS_LISTEN", starttls)
            .set("SMTP__TLS_LISTEN", tls)
            .set("LOG__FORMAT", "json")
    }

    /// Run by another program, which gets this one and its arguments behind its own.
    pub fn under(mut self, wrapper: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.wrapper = owned(wrapper);
        self
    }

    /// The program that is tested.
    pub fn own_program() -> PathBuf {
        PathBuf::from(env!("CARGO_BIN_EXE_mailgate"))
    }

    /// Of another build.
    pub fn of(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// `set("HTTP__LISTEN", "127.0.0.1:0")`.
    pub fn set(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variable(format!("MAILGATE__{name}"), value)
    }

    /// A variable by its whole name.
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn start(self) -> Running {
        failure::explain();
        // What a killed child leaves in its temporary folder goes with ours.
        let output = folder(0o755);
        let file = |name: &str| std::fs::File::create(output.path().join(name)).unwrap();
        // A test process that is killed takes its children with it: the death signal is sent when the
        // thread that forks, a test's own, ends.
        let begun = SystemTime::now();
        let programs = std::env::var_os("PG_BINDIR").map(PathBuf::from);
        let programs = programs
            .or_else(postgres_programs::newest)
            .map(|real| postgres_programs::without_fsync(&real, &output.path().join("programs")));
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(&self.wrapper)
            .arg(&self.program)
            .args(&self.arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .envs(programs.map(|path| ("PG_BINDIR", path)))
            .env("RUST_BACKTRACE", "1")
            .env("TMPDIR", output.path())
            .envs(self.environment)
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .kill_on_drop(true)
            .spawn()
            .expect("setpriv (util-linux) is there");
        Running {
            child,
            begun,
            output,
        }
    }

    /// Runs it to its end.
    pub async fn finish(self) -> Finished {
        let mut running = self.start();
        let status = running.end(START).await;
        Finished {
            status,
            stdout: running.stdout(),
            stderr: running.stderr(),
        }
    }
}

fn owned(texts: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vec<OsString> {
    texts
        .into_iter()
        .map(|text| text.as_ref().to_owned())
        .collect()
}

/// A child that runs. Dropping it kills it.
pub struct Running {
    child: Child,
    begun: SystemTime,
    output: TempDir,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it has not ended")
    }

    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    /// Its temporary folder.
    pub fn folder(&self) -> &Path {
        self.output.path()
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.output.path().join(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal, by its name without `SIG`.
    pub async fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid])
            .status();
        assert!(status.await.unwrap().success(), "{name} reaches {pid}");
    }

    /// Waits for its end, for `patience` at most.
    pub async fn end(&mut self, patience: Duration) -> ExitStatus {
        let ended = tokio::time::timeout(patience, self.child.wait()).await;
        let ended = ended.unwrap_or_else(|_| {
            let (stdout, stderr) = (self.stdout(), self.stderr());
            panic!("no end within {patience:?}:\n{stdout}{stderr}")
        });
        ended.unwrap()
    }

    /// SIGTERM, and the end with exit code 0.
    pub async fn terminate(&mut self) {
        self.signal("TERM").await;
        let status = self.end(END).await;
        assert_eq!(status.code(), Some(0), "{}", self.stderr());
    }

    /// Waits until `find` finds something, while the child lives.
    pub async fn wait_for<T>(&mut self, what: &str, mut find: impl FnMut(&Self) -> Option<T>) -> T {
        let found = tokio::time::timeout(START, async {
            loop {
                if let Some(found) = find(self) {
                    return found;
                }
                assert!(
                    !self.has_ended(),
                    "it ended before {what}:\n{}",
                    self.stderr()
                );
                tokio::time::sleep(POLL).await;
            }
        });
        let found = found.await;
        found.unwrap_or_else(|_| panic!("no {what} within {START:?}:\n{}", self.stderr()))
    }

    /// Waits for a line of the log whose message is this.
    pub async fn logged(&mut self, message: &str) -> Value {
        self.wait_for(message, |running| {
            running
                .stderr()
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .find(|line| line["message"] == message)
        })
        .await
    }

    /// Waits until `serve` is ready, by what it logs and by what it answers.
    pub async fn ready(&mut self) -> Addresses {
        let line = self.logged("mailgate serves").await;
        let address = |name: &str| -> SocketAddr {
            let text = line[name].as_str().expect("the line names its addresses");
            text.parse().expect("an address")
        };
        let addresses = Addresses {
            http: address("http"),
            starttls: address("starttls"),
            tls: address("tls"),
        };
        let url = format!("http://{}/readyz", addresses.http);
        let response = http_client().get(url).send().await.expect("it answers");
        assert_eq!(response.status().as_u16(), 200);
        addresses
    }

    /// Waits until `dev` is ready; answers its `dev.json`, which must be whole once it is there.
    pub async fn announced(&mut self, directory: &Path) -> Value {
        let path = directory.join("dev.json");
        let text = self
            .wait_for("dev.json", |running| {
                // A run that was killed has left its own.
                let written = std::fs::metadata(&path).ok()?.modified().unwrap();
                let text = std::fs::read_to_string(&path).ok()?;
                (written >= running.begun).then_some(text)
            })
            .await;
        let announcement: Value = serde_json::from_str(&text).expect("dev.json is whole");
        let url = format!("{}/readyz", announcement["base_url"].as_str().unwrap());
        let response = http_client().get(url).send().await.expect("it answers");
        assert_eq!(response.status().as_u16(), 200);
        announcement
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (stdout, stderr) = (self.stdout(), self.stderr());
            eprintln!("---- a mailgate that the test ran\n{stdout}{stderr}");
        }
    }
}

/// Where a `serve` listens.
pub struct Addresses {
    pub http: SocketAddr,
    pub starttls: SocketAddr,
    pub tls: SocketAddr,
}

/// A child that has ended.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Asserts that it ended with this code and said these lines: for each line its setting, or another
    /// word that must stand in it. Nothing else stands there but what the log tells in passing.
    pub fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(code), "{}", self.stderr);
        for noise in ["panicked", "backtrace", "hunter2"] {
            assert!(!self.stderr.contains(noise), "{noise} in:\n{}", self.stderr);
            assert!(!self.stdout.contains(noise), "{noise} in:\n{}", self.stdout);
        }
        let is_passing = |line: &&str| {
            serde_json::from_str::<Value>(line).is_ok_and(|line| line["level"] == "INFO")
        };
        let lines: Vec<&str> = self.stderr.lines().filter(|it| !is_passing(it)).collect();
        let all_named = lines.len() == words.len()
            && words.iter().all(|word| {
                let named = |line: &&&str| said(line).is_some_and(|text| text.contains(word));
                lines.iter().filter(named).count() == 1
            });
        assert!(all_named, "expected {words:?}:\n{}", self.stderr);
    }

    pub fn succeeds(&self) {
        assert_eq!(self.status.code(), Some(0), "{}", self.stderr);
    }
}

/// What a line says of a failure, be it for people or an error in the log.
fn said(line: &str) -> Option<String> {
    if line.starts_with("mailgate: ") {
        return Some(line.to_owned());
    }
    let line: Value = serde_json::from_str(line).ok()?;
    let text = line["message"].as_str()?;
    (line["level"] == "ERROR").then(|| text.to_owned())
}

/// Certificates for localhost in a folder of their own.
pub fn certificates() -> (TempDir, CertificateFiles) {
    let folder = TempDir::new().unwrap();
    let files = certificates::ensure(folder.path(), &[], chrono::Utc::now()).unwrap();
    (folder, files)
}

pub fn http_client() -> reqwest::Client {
    http_client_builder().build().unwrap()
}

/// One that trusts this authority, where TLS is asked for.
pub fn http_client_trusting(ca_file: &Path) -> reqwest::Client {
    let authority = reqwest::Certificate::from_pem(&std::fs::read(ca_file).unwrap()).unwrap();
    let builder = http_client_builder().tls_certs_only([authority]);
    builder.build().unwrap()
}

fn http_client_builder() -> reqwest::ClientBuilder {
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_mins(1))
}

/// Runs another program to its end, for a minute at most; answers what it wrote, or panics when it fails.
pub async fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(START, output).await;
    let output = output.expect("it ends").expect("it starts");
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    let text = text.concat();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}",
        output.status
    );
    text
}

/// The process id of the Postgres server that keeps a cluster, by its `data_directory`.
pub fn postgres_pid(data_directory: &Path) -> u32 {
    let text = std::fs::read_to_string(data_directory.join("postmaster.pid")).unwrap();
    text.lines().next().unwrap().trim().parse().unwrap()
}

/// Whether a process runs; a zombie doesn't.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A temporary folder with these permissions: 0755 lets Postgres's own user in, 0700 doesn't.
pub fn folder(mode: u32) -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;

    tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempdir()
        .unwrap()
}

/// Text of a field of `dev.json`.
pub fn text<'a>(announcement: &'a Value, pointer: &str) -> &'a str {
    let value = announcement.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_else(|| panic!("{pointer} is a text of {announcement}"))
}

/// The folder of the state, which with `--ephemeral` is not the one of `dev.json`.
pub fn state(announcement: &Value) -> PathBuf {
    let ca_file = Path::new(text(announcement, "/ca_file"));
    ca_file.parent().unwrap().to_owned()
}
