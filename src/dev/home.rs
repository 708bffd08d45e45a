//! The folder of `mailgate dev`.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use mailgate_types::secrets::{NoRandomness, random_bytes};

/// Why the folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Another process is using it.
    #[error("another mailgate dev runs in {}: end it, or give this one another folder with --dir", .0.display())]
    InUse(PathBuf),
    /// A file or a folder.
    #[error("{}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// No key could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// A folder, locked while this value lives.
#[derive(Debug)]
pub(super) struct Home {
    /// The folder of `dev.json`.
    directory: PathBuf,
    /// The state folder; with `--ephemeral` a temporary one, deleted on drop.
    state: PathBuf,
    _lock: File,
    _ephemeral: Option<TempDir>,
}

impl Home {
    /// Opens the folder, and removes the `dev.json` of an earlier run.
    pub(super) fn open(directory: &Path, ephemeral: bool) -> Result<Self, HomeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| HomeError::File { path, source }
        };
        std::fs::create_dir_all(directory).map_err(failed(directory))?;
        let directory = directory.canonicalize().map_err(failed(directory))?;
        let lock_path = directory.join("lock");
        let lock = File::create(&lock_path).map_err(failed(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(HomeError::InUse(directory)),
            Err(TryLockError::Error(source)) => return Err(failed(&lock_path)(source)),
        }
        let announcement = directory.join("dev.json");
        if let Err(error) = std::fs::remove_file(&announcement)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(failed(&announcement)(error));
        }
        let temporary = if ephemeral {
            let parent = std::env::temp_dir();
            let folder = tempfile::Builder::new()
                .prefix("mailgate-dev-")
                // Postgres's own account must be able to traverse it.
                .permissions(std::fs::Permissions::from_mode(0o711))
                .tempdir_in(&parent)
                .map_err(failed(&parent))?;
            Some(folder)
        } else {
            None
        };
        Ok(Self {
            state: temporary
                .as_ref()
                .map_or_else(|| directory.clone(), |folder| folder.path().to_owned()),
            directory,
            _lock: lock,
            _ephemeral: temporary,
        })
    }

    /// The state folder.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// Reads a state file that only this user may read; `None` if it doesn't exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, HomeError> {
        let path = self.state.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(HomeError::File { path, source }),
        }
    }

    /// Writes a private state file atomically.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), HomeError> {
        write(&self.state.join(name), text)
    }

    /// Writes `dev.json` once everything is ready. Returns its path.
    pub(super) fn announce(&self, text: &str) -> Result<PathBuf, HomeError> {
        let path = self.directory.join("dev.json");
        write(&path, text)?;
        Ok(path)
    }

    /// The sealing key of this folder, in the form of `seal.keys`.
    pub(super) fn seal_key(&self) -> Result<String, HomeError> {
        if let Some(key) = self.read("seal.key")? {
            return Ok(key.trim().to_owned());
        }
        let key = format!("dev:{}", STANDARD.encode(random_bytes::<32>()?));
        self.write("seal.key", &key)?;
        Ok(key)
    }
}

fn write(path: &Path, text: &str) -> Result<(), HomeError> {
    let temporary = path.with_extension("new");
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|source| HomeError::File {
        path: path.to_owned(),
        source,
    })
}
