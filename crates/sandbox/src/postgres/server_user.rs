//! The account that runs the private Postgres, which refuses to run as root.

use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::PostgresError;

/// The account that runs the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerUser {
    /// This process's own account, which isn't root.
    Own,
    /// Another user's ids, since Postgres refuses to run as root.
    Other {
        /// The user's name, or its number.
        name: String,
        uid: u32,
        gid: u32,
    },
}

impl fmt::Display for ServerUser {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => formatter.write_str("this user"),
            Self::Other { name, .. } => write!(formatter, "the user {name}"),
        }
    }
}

impl ServerUser {
    /// Our own account, or as root `postgres`, else `nobody`.
    pub(super) fn choose() -> Result<Self, PostgresError> {
        let id = Path::new("id");
        let output = Command::new(id)
            .arg("-u")
            .stdin(Stdio::null())
            .output()
            .map_err(PostgresError::io("run", id))?;
        if output.stdout.trim_ascii() != b"0" {
            return Ok(Self::Own);
        }
        let passwd = Path::new("/etc/passwd");
        let users = fs::read_to_string(passwd).map_err(PostgresError::io("read", passwd))?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| user(&users, name))
            .ok_or(PostgresError::NoAccount)
    }

    /// Uses the owner of an existing cluster, as Postgres requires.
    pub(super) fn owning(self, cluster: &Path) -> Self {
        match (&self, fs::metadata(cluster)) {
            (Self::Other { uid, .. }, Ok(found)) if found.uid() != *uid && found.uid() != 0 => {
                Self::Other {
                    name: found.uid().to_string(),
                    uid: found.uid(),
                    gid: found.gid(),
                }
            }
            _ => self,
        }
    }

    /// Runs `command` as this account.
    pub(super) fn apply(&self, command: &mut Command) {
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
    }

    /// Changes the owner of `path` to this account.
    pub(super) fn give(&self, path: &Path) -> Result<(), PostgresError> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid, .. } => {
                chown(path, Some(*uid), Some(*gid)).map_err(PostgresError::io("chown", path))
            }
        }
    }

    /// Whether this account can access `directory`.
    pub(super) fn reaches(&self, directory: &Path) -> bool {
        if *self == Self::Own {
            return true;
        }
        let mut command = Command::new("sh");
        self.apply(&mut command);
        command
            .args(["-c", "cd -- \"$1\"", "sh"])
            .arg(directory)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// The ids of `name` in the text of a passwd(5) file.
fn user(users: &str, name: &str) -> Option<ServerUser> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (uid != 0).then(|| ServerUser::Other {
            name: name.to_owned(),
            uid,
            gid,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_passwd() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/:/bin/false\nbroken:x\n";
        assert_eq!(
            user(users, "nobody"),
            Some(ServerUser::Other {
                name: "nobody".to_owned(),
                uid: 65534,
                gid: 65533
            })
        );
        assert_eq!(user(users, "root"), None, "Postgres refuses root");
        assert_eq!(user(users, "broken"), None);
        assert_eq!(user(users, "postgres"), None);
    }
}
