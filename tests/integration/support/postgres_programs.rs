//! Postgres's programs, and ones that leave the disk alone.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The folder of the newest of Debian's.
pub fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let newest = versions
        .map(|version| version.unwrap().path())
        .max_by_key(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
    Some(newest?.join("bin"))
}

/// `initdb` and `postgres` of `real`, made in `folder`, which never wait for the disk. The first start of a durable
/// cluster waits for it almost five thousand times: minutes where the neighbours write.
pub fn without_fsync(real: &Path, folder: &Path) -> PathBuf {
    fs::create_dir(folder).unwrap();
    for (name, option) in [("initdb", "--no-sync"), ("postgres", "-F")] {
        let program = folder.join(name);
        let real = real.join(name);
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || set -- \"$@\" {option}\nexec '{}' \"$@\"\n",
            real.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        // A process that another test forks meanwhile has it open for writing until it executes its own program.
        while let Err(error) = Command::new(&program).arg("--version").output() {
            assert_eq!(error.kind(), ErrorKind::ExecutableFileBusy, "{name}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    folder.to_owned()
}
