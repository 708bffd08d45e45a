//! Clocks that can be wrong: Debian's libfaketime, for one process and its children each.

use std::fs;
use std::path::{Path, PathBuf};

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Where it is; `None` if it isn't installed.
pub fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?;
    let found = folders.filter_map(|folder| Some(folder.ok()?.path().join(LIBRARY)));
    found.into_iter().find(|path: &PathBuf| Path::is_file(path))
}

/// A clock's offset in a file, which libfaketime reads each second.
#[derive(Debug, Clone)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// One that is right.
    pub fn new(library: PathBuf, file: PathBuf) -> Self {
        let clock = Self { library, file };
        clock.set(0);
        clock
    }

    /// It is off by so many seconds.
    pub fn set(&self, seconds: i32) {
        fs::write(&self.file, format!("{seconds:+}\n")).unwrap();
    }

    /// The environment of a process that goes by it.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ]
    }
}
