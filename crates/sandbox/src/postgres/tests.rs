//! Starts real servers: throwaway ones in temporary folders. Needs the Postgres programs.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::*;

fn folder(mode: u32) -> tempfile::TempDir {
    tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempdir()
        .unwrap()
}

async fn query(url: &str, statement: &'static str) -> String {
    let mut connection = PgConnectOptions::from_str(url)
        .unwrap()
        .connect()
        .await
        .unwrap();
    let answer: String = sqlx::query_scalar(statement)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    answer
}

fn alive(pid: u32) -> bool {
    // A zombie whose parent was killed may never be reaped in a container: it counts as dead.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn gone_within(pid: u32, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while alive(pid) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn percent_encoding_leaves_only_unreserved_characters() {
    assert_eq!(percent_encoded(b"/tmp/a b+c~1"), "%2Ftmp%2Fa%20b%2Bc~1");
}

#[tokio::test]
async fn starts_keeps_its_data_and_refuses_a_second_owner() {
    let folder = folder(0o755);
    let directory = folder.path().join("nested folder");
    let first = start(&directory, Durability::Throwaway).await.unwrap();
    first.ensure_database("gate \"way").await.unwrap();
    first.ensure_database("gate \"way").await.unwrap();
    let url = first.url("gate \"way");
    query(
        &url,
        "WITH made AS (SELECT set_config('a.b', 'c', true)) SELECT current_database()::text FROM made",
    )
    .await;
    let psql = Command::new("psql")
        .args([
            "-X",
            "-At",
            "-c",
            "CREATE TABLE kept AS SELECT 'yes'::text AS word",
            "-c",
            "TABLE kept",
            &url,
        ])
        .env("PGPORT", "1")
        .output()
        .unwrap();
    assert!(psql.status.success(), "{psql:?}");
    assert!(String::from_utf8_lossy(&psql.stdout).contains("yes"));

    let refused = start(&directory, Durability::Throwaway).await.unwrap_err();
    let text = refused.to_string();
    assert!(
        matches!(refused, PostgresError::AlreadyRunning { pid, .. } if pid == std::process::id()),
        "{text}"
    );

    let pid = first.pid();
    first.stop().await;
    assert!(!alive(pid));
    // Simulates a crash during initdb.
    std::fs::create_dir(directory.join("postgres/cluster.new")).unwrap();
    let second = start(&directory, Durability::Durable).await.unwrap();
    assert_eq!(query(&second.url("gate \"way"), "TABLE kept").await, "yes");
    assert_eq!(
        query(
            &second.url("postgres"),
            "SELECT current_setting('max_connections')"
        )
        .await,
        "200"
    );
    second.stop().await;

    std::fs::write(directory.join("postgres/cluster/PG_VERSION"), "9\n").unwrap();
    let refused = start(&directory, Durability::Throwaway).await.unwrap_err();
    assert!(
        refused.to_string().contains("made by PostgreSQL 9"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_half_made_cluster_is_made_anew_and_a_failed_start_shows_the_log() {
    let folder = folder(0o755);
    std::fs::create_dir_all(folder.path().join("postgres/cluster.new/base")).unwrap();
    let server = start(folder.path(), Durability::Throwaway).await.unwrap();
    server.stop().await;
    let settings = folder.path().join("postgres/cluster/postgresql.conf");
    std::fs::write(&settings, "no_such_setting = on\n").unwrap();
    let refused = start(folder.path(), Durability::Throwaway)
        .await
        .unwrap_err();
    assert!(matches!(refused, PostgresError::Start { .. }));
    assert!(refused.to_string().contains("no_such_setting"), "{refused}");
    std::fs::write(&settings, "").unwrap();
    let server = start(folder.path(), Durability::Throwaway).await.unwrap();
    let pid = server.pid();
    drop(server);
    assert!(!alive(pid));
}

#[tokio::test]
async fn an_unreachable_folder_and_a_long_one() {
    let folder = folder(0o700);
    let directory = folder.path().join("d".repeat(90));
    let server = start(&directory, Durability::Throwaway).await.unwrap();
    assert_eq!(
        query(&server.url("postgres"), "SELECT current_user::text").await,
        "postgres"
    );
    let socket = server.socket.clone();
    assert!(socket.exists());
    server.stop().await;
    // A later start follows the link.
    let again = start(&directory, Durability::Throwaway).await.unwrap();
    let died = again.died();
    signal_to(again.pid(), "QUIT");
    assert!(died.await.contains("PostgreSQL ended"));
    let home = std::fs::canonicalize(directory.join("postgres")).unwrap();
    drop(again);
    std::fs::remove_dir_all(home).unwrap();
}

fn signal_to(pid: u32, name: &str) {
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

const HELD: &str = "MAILGATE_TEST_HELD_POSTGRES";

/// The child of the test below: starts a server, prints its pid, and waits to be killed.
#[tokio::test]
#[ignore = "run by killing_the_process_ends_the_server"]
async fn hold_a_server() {
    let Some(directory) = std::env::var_os(HELD) else {
        return;
    };
    let directory = PathBuf::from(directory);
    let server = start(&directory, Durability::Throwaway).await.unwrap();
    println!("pid={}", server.pid());
    server.died().await;
}

#[tokio::test]
async fn killing_the_process_ends_the_server() {
    use std::io::BufRead as _;

    let folder = folder(0o755);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--nocapture", "--exact"])
        .arg("postgres::tests::hold_a_server")
        .env(HELD, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid: u32 = std::io::BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("pid=")?.1.parse().ok())
        .expect("the child tells the server's pid");
    assert!(alive(pid));
    child.kill().unwrap();
    child.wait().unwrap();
    // The successor waits for the shutdown that the death signal started.
    let server = start(folder.path(), Durability::Throwaway).await.unwrap();
    assert!(gone_within(pid, Duration::from_secs(1)));
    assert_ne!(server.pid(), pid);
    server.stop().await;
}
