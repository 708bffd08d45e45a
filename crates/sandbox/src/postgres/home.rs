//! The folder of a private Postgres, and the account that owns it.
//!
//! ```text
//! <directory>/postgres.lock      held by the process that keeps the server; holds its pid
//! <directory>/postgres/          the home, or a link to one under /var/lib/mailgate-dev
//!                      cluster/      what initdb made; `cluster.new` while it makes it
//!                      socket/       or a link to a folder in /tmp when the path is too long
//!                      server.log
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::server_user::ServerUser;
use super::{Durability, PostgresError};
use mailgate_types::hex::hex;

/// Time limit for the lock of a process that has just ended, or for a child's copy of it.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// Where clusters are placed if the server's account can't access their own folder.
const ELSEWHERE: &str = "/var/lib/mailgate-dev";

/// In a disposable home below [`ELSEWHERE`]: the directory that it was created for.
const ORIGIN: &str = "origin";

/// `sun_path` holds 104 bytes on macOS and 108 on Linux, including the terminating NUL.
const SOCKET_PATH_MAX: usize = 103;

/// The port is only part of the socket's name.
pub(super) const PORT: u16 = 5432;

/// An opened home, locked for this process until it is dropped.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) account: ServerUser,
    directory: PathBuf,
    path: PathBuf,
    _lock: File,
}

impl Home {
    /// Finds or creates the home of `directory`, and locks it.
    pub(super) fn open(directory: &Path, durability: Durability) -> Result<Self, PostgresError> {
        fs::create_dir_all(directory).map_err(PostgresError::io("create", directory))?;
        let directory =
            fs::canonicalize(directory).map_err(PostgresError::io("resolve", directory))?;
        let lock = lock(&directory)?;
        let account = ServerUser::choose()?;
        let path = locate(&directory, &account, durability)?;
        let account = account.owning(&path.join("cluster"));
        let home = Self {
            account,
            directory,
            path,
            _lock: lock,
        };
        home.own_folder(&home.path)?;
        if !home.account.reaches(&home.path) {
            return Err(PostgresError::Unreachable {
                path: home.path,
                account: home.account.to_string(),
            });
        }
        Ok(home)
    }

    /// The folder given to `start`, resolved.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn cluster(&self) -> PathBuf {
        self.path.join("cluster")
    }

    /// Where initdb works until the cluster is complete.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.path.join("cluster.new")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// Creates the socket folder: in the home, or in the system's temporary folder if the path would be too long.
    pub(super) fn socket(&self) -> Result<PathBuf, PostgresError> {
        let inside = self.path.join("socket");
        self.remove_socket();
        if socket_fits(&inside) {
            self.own_folder(&inside)?;
            return Ok(inside);
        }
        let outside = tempfile::Builder::new()
            .prefix("mailgate-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(PostgresError::io("create", &std::env::temp_dir()))?
            .keep();
        self.account.give(&outside)?;
        symlink(&outside, &inside).map_err(PostgresError::io("link", &inside))?;
        Ok(outside)
    }

    /// Removes a socket folder outside the home, including one left by a killed predecessor.
    pub(super) fn remove_socket(&self) {
        let inside = self.path.join("socket");
        if let Ok(outside) = fs::read_link(&inside) {
            if outside.starts_with(std::env::temp_dir()) {
                // It may already be gone.
                let _ = fs::remove_dir_all(&outside);
            }
            let _ = fs::remove_file(&inside);
        }
    }

    /// Creates `folder` with mode 0700, owned by the account.
    fn own_folder(&self, folder: &Path) -> Result<(), PostgresError> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(PostgresError::io("create", folder)(error));
            }
            _ => {}
        }
        self.account.give(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))
            .map_err(PostgresError::io("chmod", folder))
    }
}

fn socket_fits(folder: &Path) -> bool {
    folder
        .join(format!(".s.PGSQL.{PORT}"))
        .as_os_str()
        .as_bytes()
        .len()
        <= SOCKET_PATH_MAX
}

/// Locks the folder, so that no two processes use it. The lock is released when the process exits, however it exits;
/// a child that is just being started holds a copy of it until it runs its program.
fn lock(directory: &Path) -> Result<File, PostgresError> {
    let path = directory.join("postgres.lock");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(PostgresError::io("open", &path))?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let mut locked = file.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(15));
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {
            file.set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| write!(file, "{}", std::process::id()))
                .map_err(PostgresError::io("write", &path))?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The holder may not have written it yet: unknown then.
            let _ = file.read_to_string(&mut pid);
            Err(PostgresError::AlreadyRunning {
                directory: directory.to_owned(),
                pid: pid.trim().parse().unwrap_or(0),
            })
        }
        Err(TryLockError::Error(error)) => Err(PostgresError::io("lock", &path)(error)),
    }
}

/// The home's path: `directory/postgres`, the target of that link, or a new place that it is linked to.
fn locate(
    directory: &Path,
    account: &ServerUser,
    durability: Durability,
) -> Result<PathBuf, PostgresError> {
    let inside = directory.join("postgres");
    if let Ok(target) = fs::read_link(&inside) {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(PostgresError::io("create", parent))?;
        }
        return Ok(target);
    }
    if account.reaches(directory) || inside.join("cluster").exists() {
        return Ok(inside);
    }
    let elsewhere = Path::new(ELSEWHERE);
    fs::create_dir_all(elsewhere).map_err(PostgresError::io("create", elsewhere))?;
    sweep(elsewhere);
    let digest = Sha256::digest(directory.as_os_str().as_bytes());
    let target = elsewhere.join(hex(&digest[..8]));
    // No link points here, so the folder that it belonged to is gone.
    if target.exists() {
        fs::remove_dir_all(&target).map_err(PostgresError::io("remove", &target))?;
    }
    if durability == Durability::Throwaway {
        fs::create_dir(&target).map_err(PostgresError::io("create", &target))?;
        let origin = target.join(ORIGIN);
        fs::write(&origin, inside.as_os_str().as_bytes())
            .map_err(PostgresError::io("write", &origin))?;
    }
    symlink(&target, &inside).map_err(PostgresError::io("link", &inside))?;
    Ok(target)
}

/// Removes disposable homes whose folder is gone: tests remove the link, not its target.
fn sweep(elsewhere: &Path) {
    for entry in fs::read_dir(elsewhere).into_iter().flatten().flatten() {
        let home = entry.path();
        let Ok(origin) = fs::read(home.join(ORIGIN)) else {
            continue;
        };
        let link = PathBuf::from(std::ffi::OsStr::from_bytes(&origin));
        if matches!(fs::symlink_metadata(&link), Err(error) if error.kind() == io::ErrorKind::NotFound)
            && let Err(error) = fs::remove_dir_all(&home)
        {
            tracing::debug!(%error, "an abandoned throwaway Postgres stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_folder_is_too_long_for_a_socket() {
        assert!(socket_fits(Path::new("/tmp/x/postgres/socket")));
        // "/" + 88 + "/.s.PGSQL.5432" = 103 bytes.
        assert!(socket_fits(Path::new(&format!("/{}", "d".repeat(88)))));
        assert!(!socket_fits(Path::new(&format!("/{}", "d".repeat(89)))));
    }
}
