//! A Postgres of the test's own, and what is restored of it, at the places that the documents name below a folder.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use sqlx::{ConnectOptions as _, Executor as _};

use crate::crash::database::DurablePostgres;
use crate::peers::process::Household;
use crate::support::{database, patience};

/// Where the documents put things.
const PLACES: [&str; 5] = [
    "/var/backups/mailgate",
    "/var/lib/postgresql/15/main",
    "/usr/local/bin/mailgate-archive-wal",
    "/usr/local/bin/mailgate-base-backup",
    // What this machine's own Postgres has there isn't of the test's.
    "/etc/postgresql",
];

/// What root does there, and the test's account needn't: it is Postgres's already, and restarts Postgres itself.
const NOT_ROOT: &str = r#"
runuser() { shift 3; "$@"; }
install() {
    local it
    for it; do
        if [[ $it != -* ]]; then mkdir -p -m 700 "$it"; fi
    done
}
chown() { :; }
systemctl() { :; }
"#;

pub struct Cluster {
    primary: DurablePostgres,
    household: Household,
    url: String,
}

impl Cluster {
    pub async fn start() -> Self {
        let primary = DurablePostgres::start().await;
        let url = primary.create_database().await;
        let mut server = database::connect(&url).await;
        server.execute("CREATE ROLE mailgate LOGIN").await.unwrap();
        let cluster = Self {
            primary,
            household: Household::new(),
            url,
        };
        // Postgres's own account makes what is in it.
        let _ = cluster.own_folder("files");
        cluster
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Another database of the same server.
    pub fn url_of(&self, database: &str) -> String {
        self.url.replace("/mailgate?", &format!("/{database}?"))
    }

    pub async fn restart(&mut self) {
        self.primary.kill().await;
        self.primary.restart().await;
    }

    /// Types a block of the documents, as the account that Postgres runs as.
    pub async fn run(&self, script: &str) {
        let mut command = self.as_owner("bash");
        let path = std::env::var("PATH").unwrap();
        let script_of_owner = format!("{NOT_ROOT}{}", self.placed(script));
        command
            .args(["-eu", "-o", "pipefail", "-c", &script_of_owner])
            .env_clear()
            .env(
                "PATH",
                format!("{}:{path}", self.primary.programs().display()),
            )
            .env("PGHOST", self.primary.socket())
            .env("PGUSER", "postgres");
        let done = tokio::process::Command::from(command).output();
        let done = tokio::time::timeout(patience::PATIENCE, done).await;
        let done = done.expect("it ends").unwrap();
        let printed = [done.stdout, done.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        assert!(done.status.success(), "{script}\n{printed}");
    }

    /// Waits until all that is committed by now is in the archive.
    pub async fn archive(&self) {
        let mut server = database::connect(&self.url).await;
        let segment: String = sqlx::query_scalar("SELECT pg_walfile_name(pg_switch_wal())")
            .fetch_one(&mut server)
            .await
            .unwrap();
        patience::until("archived WAL", async || {
            let archived = "SELECT last_archived_wal >= $1 FROM pg_stat_archiver";
            let archived: Option<bool> = sqlx::query_scalar(archived)
                .bind(&segment)
                .fetch_one(&mut server)
                .await
                .unwrap();
            archived == Some(true)
        })
        .await;
    }

    /// The name of the base backup that was taken.
    pub fn base_backup(&self) -> String {
        let folder = PathBuf::from(self.placed(PLACES[0])).join("base");
        let mut found = fs::read_dir(folder).unwrap();
        let only = found.next().unwrap().unwrap();
        assert!(found.next().is_none());
        only.file_name().into_string().unwrap()
    }

    /// Starts what was restored, beside the former; answers the database's address once it has come to the moment.
    pub async fn start_restored(&self) -> String {
        let socket = self.own_folder("socket");
        let mut server = self.as_owner(self.primary.programs().join("postgres"));
        server
            .arg("-D")
            .arg(self.placed(PLACES[1]))
            .arg("-k")
            .arg(&socket)
            .args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
        self.household.add("restored", &mut server);
        let url = format!(
            "postgres://postgres@localhost/{}?host={}",
            crate::crash::database::NAME,
            socket.display()
        );
        let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
        patience::until("a restored Postgres", async || {
            let Ok(mut server) = options.connect().await else {
                return false;
            };
            let recovers = sqlx::query_scalar("SELECT pg_is_in_recovery()")
                .fetch_one(&mut server)
                .await;
            matches!(recovers, Ok(false))
        })
        .await;
        url
    }

    /// A text of the documents with the test's own places.
    fn placed(&self, text: &str) -> String {
        let folder = self.household.folder().join("files");
        PLACES.iter().fold(text.to_owned(), |text, place| {
            let name = place.rsplit('/').next().unwrap();
            text.replace(place, &folder.join(name).display().to_string())
        })
    }

    fn as_owner(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let owner = fs::metadata(self.primary.cluster()).unwrap();
        let mut command = Command::new(program);
        command.uid(owner.uid()).gid(owner.gid()).current_dir("/");
        command
    }

    fn own_folder(&self, name: &str) -> PathBuf {
        let owner = fs::metadata(self.primary.cluster()).unwrap();
        let folder = self.household.folder().join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        chown(&folder, Some(owner.uid()), Some(owner.gid())).unwrap();
        folder
    }
}
