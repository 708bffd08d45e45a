//! A Postgres of the test's own that keeps what it has committed, whatever happens to it.

use std::path::PathBuf;

use mailgate_sandbox::postgres::{self, Durability, PostgresError, PrivatePostgres};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tempfile::TempDir;

use crate::command_line::process;
use crate::support::patience;

/// The database that the gateways use.
pub const NAME: &str = "mailgate";

/// Runs until it is dropped, or killed.
pub struct DurablePostgres {
    server: Option<PrivatePostgres>,
    folder: TempDir,
}

impl DurablePostgres {
    pub async fn start() -> Self {
        // Short, so that the socket lies in it and has the same address after a restart.
        let folder = process::folder(0o755);
        let server = postgres::start(folder.path(), Durability::Durable).await;
        Self {
            server: Some(server.unwrap_or_else(|error| panic!("{error}"))),
            folder,
        }
    }

    /// Makes the database; answers its address.
    pub async fn create_database(&self) -> String {
        let server = self.server.as_ref().unwrap();
        server.ensure_database(NAME).await.unwrap();
        server.url(NAME)
    }

    /// The folder of its socket.
    pub fn socket(&self) -> PathBuf {
        let socket = self.folder.path().join("postgres/socket");
        assert!(
            socket.is_dir(),
            "{} is its socket's folder",
            socket.display()
        );
        socket
    }

    /// Where its files are.
    pub fn cluster(&self) -> PathBuf {
        self.folder.path().join("postgres/cluster")
    }

    /// The folder of the programs that it is run by.
    pub fn programs(&self) -> PathBuf {
        let postmaster = self.server.as_ref().unwrap().pid();
        let program = std::fs::read_link(format!("/proc/{postmaster}/exe")).unwrap();
        program.parent().unwrap().to_owned()
    }

    /// SIGKILL to the postmaster and everything it started, as when the machine ends.
    pub async fn kill(&mut self) {
        let server = self.server.take().unwrap();
        let postmaster = server.pid();
        // Stopped, it starts nothing more while its children are looked for.
        signal("STOP", &[postmaster]).await;
        let mut pids = children(postmaster);
        pids.insert(0, postmaster);
        signal("KILL", &pids).await;
        server.died().await;
        for pid in pids {
            patience::until("end of Postgres", async || !process::is_alive(pid)).await;
        }
    }

    /// Starts it again over what it had on the disk.
    pub async fn restart(&mut self) {
        let folder = self.folder.path().to_owned();
        // A process that another test is just starting has the lock too, until it runs its program.
        patience::until(
            "the former Postgres gives up its lock",
            async || match postgres::start(&folder, Durability::Durable).await {
                Ok(server) => {
                    self.server = Some(server);
                    true
                }
                Err(PostgresError::AlreadyRunning { .. }) => false,
                Err(error) => panic!("{error}"),
            },
        )
        .await;
    }
}

/// Has the database belong to this role.
pub async fn give_to(admin: &mut PgConnection, role: &str) {
    for statement in [
        format!("ALTER DATABASE {NAME} OWNER TO {role}"),
        format!("ALTER SCHEMA public OWNER TO {role}"),
    ] {
        admin.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}

/// A process that has ended meanwhile is as good.
pub async fn signal(name: &str, pids: &[u32]) {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let script = "name=$1; shift; for pid; do kill -s \"$name\" \"$pid\" || true; done 2>/dev/null";
    let mut arguments = vec!["-c", script, "sh", name];
    arguments.extend(pids.iter().map(String::as_str));
    process::run("sh", &arguments).await;
}

pub fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // proc_pid_stat(5): state and parent stand behind the name.
        stat.rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok())
            .is_some_and(|of: u32| of == parent)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(is_child)
        .collect()
}
