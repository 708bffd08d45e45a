//! Two Postgres under Patroni with etcd, the standby synchronous, behind one address of an `HAProxy` that asks Patroni
//! which of them is the primary.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};

use super::clock::{self, Clock};
use crate::crash::database::{NAME, children, signal};
use crate::peers::process::{Household, find, give_to, is_root};
use crate::support::{patience, ports, postgres_programs};

/// Whose processes they are; Postgres refuses to run as root.
const OWNER: &str = "postgres";

/// The size of the file system of each Postgres.
const DISK: &str = "size=768m,mode=0755";

/// What Patroni allows for its locks at least; within it nobody else becomes the primary.
pub const TTL: Duration = Duration::from_secs(20);

const NODES: [&str; 2] = ["one", "two"];

pub struct Cluster {
    /// Unmounted before the folder is removed.
    disks: Vec<Disk>,
    household: Household,
    http: reqwest::Client,
    /// Of each node's Postgres; empty without libfaketime.
    clocks: Vec<Clock>,
    /// Of Postgres and of Patroni, for each node.
    ports: [[u16; 2]; 2],
    port: u16,
}

impl Cluster {
    pub async fn start() -> Self {
        let household = Household::new();
        let [etcd, peer, port, a, b, c, d] = ports::reserve();
        let cluster = Self {
            disks: disks(household.folder()),
            clocks: clocks(household.folder()),
            http: reqwest::Client::builder()
                .no_proxy()
                .timeout(Duration::from_secs(5))
                .build()
                .unwrap(),
            ports: [[a, b], [c, d]],
            port,
            household,
        };
        give_to(cluster.household.folder(), OWNER);
        let address = |port| format!("http://127.0.0.1:{port}");
        let mut command = cluster.command("etcd");
        command
            .arg("--data-dir")
            .arg(cluster.household.folder().join("etcd"))
            .args(["--listen-client-urls", &address(etcd)])
            .args(["--advertise-client-urls", &address(etcd)])
            .args(["--listen-peer-urls", &address(peer)]);
        cluster.household.add("etcd", &mut command);
        cluster.household.wait_for_ports("etcd", &[etcd]).await;
        for number in 0..NODES.len() {
            let text = cluster.configuration(number, etcd);
            fs::write(cluster.file(number), text).unwrap();
            cluster.start_node(number);
        }
        cluster.whole().await;
        cluster.start_balancer().await;
        let primary = cluster.primary().await.expect("there is a primary");
        let url = format!(
            "postgres://postgres@127.0.0.1:{}",
            cluster.ports[primary][0]
        );
        let mut connection = PgConnection::connect(&format!("{url}/postgres?sslmode=disable"))
            .await
            .unwrap();
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {NAME}")))
            .execute(&mut connection)
            .await
            .unwrap();
        cluster
    }

    /// Where whichever of them is the primary is reached.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The primary's disk can be filled.
    pub fn has_disks(&self) -> bool {
        !self.disks.is_empty()
    }

    /// Waits for a primary with a synchronous standby.
    pub async fn whole(&self) {
        patience::until("a primary with a synchronous standby", async || {
            let Some(primary) = self.primary().await else {
                return false;
            };
            self.is(1 - primary, "synchronous").await
        })
        .await;
    }

    pub async fn primary(&self) -> Option<usize> {
        for number in 0..NODES.len() {
            if self.is(number, "primary").await {
                return Some(number);
            }
        }
        None
    }

    async fn is(&self, number: usize, role: &str) -> bool {
        let url = format!("http://127.0.0.1:{}/{role}", self.ports[number][1]);
        let answer = self.http.get(url).send().await;
        answer.is_ok_and(|answer| answer.status() == 200)
    }

    /// The process of a node's Postgres.
    fn postmaster(&self, number: usize) -> Option<u32> {
        process(&self.data(number).join("postmaster.pid"))
    }

    /// A node's Postgres hangs, or goes on: as long as it is the synchronous standby, no commit is answered.
    pub async fn pause(&self, number: usize, hangs: bool) {
        let Some(postmaster) = self.postmaster(number) else {
            return;
        };
        let name = if hangs { "STOP" } else { "CONT" };
        signal(name, &[postmaster]).await;
        signal(name, &children(postmaster)).await;
    }

    /// The clock of a node's Postgres is off by so many seconds.
    pub fn set_clock(&self, number: usize, seconds: i32) {
        self.clocks[number].set(seconds);
    }

    /// A node takes no writes, or takes them again.
    pub async fn set_read_only(&self, number: usize, is_read_only: bool) {
        let url = format!(
            "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
            self.ports[number][0]
        );
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {is_read_only}");
        for statement in [set.as_str(), "SELECT pg_reload_conf()"] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
                .execute(&mut connection)
                .await
                .unwrap();
        }
    }

    /// Dumps the database, and keeps the dump's snapshot for so long.
    pub async fn dump(&self, pause: Duration) {
        let url = format!(
            "postgres://postgres@{}/{NAME}?sslmode=disable",
            self.address()
        );
        let mut connection = PgConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM email_logs")
            .execute(&mut connection)
            .await
            .unwrap();
        let mut command = tokio::process::Command::new(programs().join("pg_dump"));
        let dumped = command.args(["--file", "/dev/null", &url]).status().await;
        assert!(dumped.unwrap().success(), "a dump of the database");
        tokio::time::sleep(pause).await;
    }

    /// SIGKILL to everything of a node, as when its machine ends.
    pub async fn kill(&self, number: usize) {
        let folder = self.household.folder();
        let patroni = process(&folder.join("pids").join(NODES[number]));
        signal("KILL", &Vec::from_iter(patroni)).await;
        let Some(postmaster) = self.postmaster(number) else {
            return;
        };
        // Stopped, it starts nothing more while its children are looked for.
        signal("STOP", &[postmaster]).await;
        let mut pids = children(postmaster);
        pids.insert(0, postmaster);
        signal("KILL", &pids).await;
    }

    /// The other node is the primary from now on, in order.
    pub async fn switch_over(&self) {
        let primary = self.primary().await.expect("there is a primary");
        let url = format!("http://127.0.0.1:{}/switchover", self.ports[primary][1]);
        let body = serde_json::json!({"leader": NODES[primary], "candidate": NODES[1 - primary]});
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = http.post(url).json(&body).send().await;
        println!("switchover: {:?}", answer.map(|answer| answer.status()));
    }

    /// Leaves no room on a node's disk.
    pub fn fill_disk(&self, number: usize) {
        let mut file = fs::File::create(self.filler(number)).unwrap();
        let filled = std::io::copy(&mut std::io::repeat(0), &mut file);
        let error = filled.expect_err("the disk has an end");
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    }

    pub fn free_disk(&self, number: usize) {
        fs::remove_file(self.filler(number)).unwrap();
    }

    fn filler(&self, number: usize) -> PathBuf {
        self.disks[number].0.join("filler")
    }

    fn data(&self, number: usize) -> PathBuf {
        self.household.folder().join(NODES[number]).join("data")
    }

    fn file(&self, number: usize) -> PathBuf {
        (self.household.folder()).join(format!("{}.yml", NODES[number]))
    }

    pub fn start_node(&self, number: usize) {
        let mut command = self.command("patroni");
        command.arg(self.file(number));
        self.household.add(NODES[number], &mut command);
    }

    fn command(&self, program: &str) -> Command {
        let program =
            find(program).unwrap_or_else(|| panic!("{program} isn't installed: run make chaos"));
        let mut command = Command::new(find("setpriv").expect("util-linux is there"));
        command
            .args(["--reuid", OWNER, "--regid", OWNER, "--clear-groups", "--"])
            .arg(program)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.household.folder())
            .current_dir(self.household.folder());
        command
    }

    fn configuration(&self, number: usize, etcd: u16) -> String {
        let folder = self.household.folder().display();
        let (name, data) = (NODES[number], self.data(number));
        let [postgres, patroni] = self.ports[number];
        let (data, programs) = (
            data.display(),
            folder_of_programs(self.household.folder(), number),
        );
        let (ttl, programs) = (TTL.as_secs(), programs.display());
        format!(
            "scope: mailgate
name: {name}
restapi:
  listen: 127.0.0.1:{patroni}
  connect_address: 127.0.0.1:{patroni}
etcd3:
  host: 127.0.0.1:{etcd}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 2
    retry_timeout: 4
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        wal_keep_size: 64MB
        max_wal_size: 128MB
  initdb:
  - encoding: UTF8
  - locale: C
  - data-checksums
  pg_hba:
  - local all all trust
  - host all all 127.0.0.1/32 trust
  - host replication all 127.0.0.1/32 trust
postgresql:
  listen: 127.0.0.1:{postgres}
  connect_address: 127.0.0.1:{postgres}
  data_dir: {data}
  bin_dir: {programs}
  pgpass: {folder}/pgpass-{name}
  authentication:
    superuser:
      username: postgres
    replication:
      username: replicator
  parameters:
    unix_socket_directories: {folder}
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  basebackup:
    checkpoint: fast
"
        )
    }

    async fn start_balancer(&self) {
        let program = find("haproxy").expect("haproxy isn't installed: run tests/peers/install");
        let [server_one, server_two] = std::array::from_fn(|number| {
            let (name, [postgres, patroni]) = (NODES[number], self.ports[number]);
            format!("    server {name} 127.0.0.1:{postgres} check port {patroni}\n")
        });
        let configuration = format!(
            "defaults\n    mode tcp\n    timeout connect 2s\n    timeout client 1h\n    timeout server 1h\n\
             listen postgres\n    bind 127.0.0.1:{}\n    option httpchk OPTIONS /primary\n    \
             http-check expect status 200\n    \
             default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions\n\
             {server_one}{server_two}",
            self.port,
        );
        let path = self.household.folder().join("haproxy.cfg");
        fs::write(&path, configuration).unwrap();
        let mut command = Command::new(program);
        self.household
            .add("haproxy", command.arg("-db").arg("-f").arg(path));
        self.household.wait_for_ports("haproxy", &[self.port]).await;
    }
}

/// The id that a file begins with.
fn process(path: &Path) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next()?.parse().ok()
}

fn programs() -> PathBuf {
    postgres_programs::newest().expect("postgresql isn't installed")
}

/// A folder with the programs of one node.
fn folder_of_programs(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("programs-{}", NODES[number]))
}

/// Makes the folders of programs, in which `postgres` goes by a clock of its node's own.
fn clocks(folder: &Path) -> Vec<Clock> {
    let library = clock::library();
    let mut clocks = Vec::new();
    for (number, name) in NODES.iter().enumerate() {
        let at = folder_of_programs(folder, number);
        fs::create_dir(&at).unwrap();
        for program in fs::read_dir(programs()).unwrap() {
            let program = program.unwrap();
            symlink(program.path(), at.join(program.file_name())).unwrap();
        }
        let Some(library) = library.clone() else {
            continue;
        };
        let clock = Clock::new(library, folder.join(format!("clock-{name}")));
        let variables = clock.variables();
        let variables: String = (variables.iter())
            .flat_map(|(name, value)| [name, "=", value, " "])
            .collect();
        let real = programs().join("postgres");
        let script = format!(
            "#!/bin/sh\nexec env {variables} {} \"$@\"\n",
            real.display()
        );
        let file = at.join("postgres");
        fs::remove_file(&file).unwrap();
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        clocks.push(clock);
    }
    clocks
}

/// A file system in memory.
struct Disk(PathBuf);

/// One for each node; none where they can't be mounted.
fn disks(folder: &Path) -> Vec<Disk> {
    let mount = |name: &&str| {
        let at = folder.join(name);
        fs::create_dir(&at).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(&at);
        let mounted = is_root() && command.status().is_ok_and(|status| status.success());
        give_to(&at, OWNER);
        mounted.then_some(Disk(at))
    };
    let mounted: Vec<Option<Disk>> = NODES.iter().map(mount).collect();
    mounted
        .into_iter()
        .collect::<Option<_>>()
        .unwrap_or_default()
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}
