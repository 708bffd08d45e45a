//! `dev` in a folder that stays: the next start finds what the last one left, however that ended.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::dev::Dev;
use super::process::{END, Invocation, folder, is_alive, postgres_pid};

/// A folder, and the cluster outside it when Postgres's user can't enter it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn linked_cluster(&self) -> Option<PathBuf> {
        std::fs::read_link(self.path().join("postgres")).ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(linked) = self.linked_cluster() {
            // Gone already is as good.
            drop(std::fs::remove_dir_all(linked));
        }
    }
}

/// What must be the same at each start; addresses change with their ports.
fn lasting(dev: &Dev) -> Value {
    let mut announcement = dev.announcement.clone();
    let object = announcement.as_object_mut().unwrap();
    for name in [
        "base_url",
        "portal_url",
        "connect_url",
        "smtp",
        "sandbox_url",
    ] {
        object.remove(name).unwrap();
    }
    announcement
}

#[tokio::test]
async fn a_second_start_finds_everything_even_after_a_kill() {
    // Where root runs the test, Postgres's own user can't enter it.
    let place = Place {
        folder: folder(0o700),
    };
    let directory = place.path();
    // Tokens lapse at once, so each start must get new ones with what is left of the mailbox.
    // Nothing gets one while it is killed: the provider replaces a refresh token when it is used.
    let invocation = || {
        Invocation::dev(directory)
            .set("SANDBOX__ACCESS_TOKEN_SECONDS", "1")
            .set("MAILBOXES__REPLIES_SECONDS", "3600")
    };
    let mut first = Dev::start(invocation(), directory).await;
    assert_eq!(first.send("bob@example.com").await.0, 200);
    let expected = lasting(&first);
    let trial = first.trial().await;
    let authority = std::fs::read(first.text("/ca_file")).unwrap();
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    assert_eq!(place.linked_cluster().is_some(), root, "its place");

    let second = invocation().finish().await;
    second.fails(1, &["another mailgate dev runs in"]);
    assert!(second.stderr.contains("--dir"), "{}", second.stderr);
    assert!(directory.join("dev.json").exists(), "the first one's");
    assert_eq!(first.send("bob@example.com").await.0, 200);

    let postgres = postgres_pid(&first.cluster().await);
    first.child.signal("KILL").await;
    first.child.end(END).await;
    let mut again = Dev::start(invocation(), directory).await;
    assert!(!is_alive(postgres), "the old Postgres has ended");
    for sent in [2, 3] {
        assert_eq!(lasting(&again), expected);
        assert_eq!(again.trial().await, trial, "the provider knows it still");
        assert_eq!(std::fs::read(again.text("/ca_file")).unwrap(), authority);
        assert_eq!(again.messages().await.len(), sent);
        assert_eq!(again.logged().await.len(), sent);
        let (status, answer) = again.send("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
        if sent == 2 {
            let postgres = postgres_pid(&again.cluster().await);
            again.child.terminate().await;
            assert!(!is_alive(postgres), "Postgres has ended before it");
            again = Dev::start(invocation(), directory).await;
        }
    }
    again.child.terminate().await;
}

#[tokio::test]
async fn a_folder_whose_path_is_too_long_for_a_socket() {
    let folder = folder(0o755);
    // sun_path holds 108 bytes.
    let directory = folder.path().join("deep/".repeat(25));
    let mut dev = Dev::start(Invocation::dev(&directory), &directory).await;
    assert_eq!(dev.send("bob@example.com").await.0, 200);
    assert!(dev.cluster().await.starts_with(folder.path()));
    let url = url::Url::parse(dev.text("/database_url")).unwrap();
    let (_, socket) = url.query_pairs().find(|(name, _)| name == "host").unwrap();
    dev.child.terminate().await;
    assert!(!Path::new(socket.as_ref()).exists(), "{socket} stays");
}

#[tokio::test]
async fn a_port_of_the_sandbox_that_is_taken() {
    let folder = folder(0o755);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = Invocation::dev(folder.path())
        .argument("--ephemeral")
        .set("SANDBOX__LISTEN", &address)
        .finish()
        .await;
    let lines: Vec<&str> = finished
        .stderr
        .lines()
        .filter(|line| line.starts_with("mailgate: "))
        .collect();
    assert_eq!(lines.len(), 1, "{}", finished.stderr);
    assert!(
        lines[0].starts_with("mailgate: sandbox.listen: "),
        "{}",
        lines[0]
    );
    assert!(!folder.path().join("dev.json").exists());
}
