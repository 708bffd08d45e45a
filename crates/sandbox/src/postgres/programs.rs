//! Finds the Postgres programs, their version, and whether the server's account can run them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::PostgresError;
use super::server_user::ServerUser;

/// Where Debian and its derivatives install each major version.
const VERSIONED: &str = "/usr/lib/postgresql";

/// A folder with `initdb` and `postgres`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) directory: PathBuf,
    /// Major version, such as `17`.
    pub(super) version: String,
}

impl Programs {
    /// Finds the programs: only `$PG_BINDIR` if set, else the highest installed version, else PATH. `made_by`, the
    /// version of an existing cluster, takes precedence over a higher one.
    pub(super) fn find(account: &ServerUser, made_by: Option<&str>) -> Result<Self, PostgresError> {
        let candidates = match std::env::var_os("PG_BINDIR").filter(|value| !value.is_empty()) {
            Some(directory) => vec![PathBuf::from(directory)],
            None => candidates(Path::new(VERSIONED), std::env::var_os("PATH")),
        };
        let mut found = None;
        let mut refused = None;
        for directory in candidates.into_iter().filter(|path| holds_programs(path)) {
            match version(&directory, account) {
                Ok(version) if made_by.is_none_or(|made_by| made_by == version) => {
                    return Ok(Self { directory, version });
                }
                Ok(version) => found = found.or(Some(Self { directory, version })),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        found.ok_or_else(|| refused.unwrap_or(PostgresError::ProgramsMissing))
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.directory.join("initdb")
    }

    pub(super) fn postgres(&self) -> PathBuf {
        self.directory.join("postgres")
    }
}

fn candidates(versioned: &Path, path: Option<OsString>) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(versioned)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let mut candidates: Vec<PathBuf> = versions.into_iter().map(|(_, path)| path).collect();
    if let Some(path) = path {
        candidates.extend(std::env::split_paths(&path).filter(|path| path.is_absolute()));
    }
    candidates
}

fn holds_programs(directory: &Path) -> bool {
    ["initdb", "postgres"]
        .iter()
        .all(|program| directory.join(program).is_file())
}

/// Runs `postgres --version` as the server's account, which also proves that it can run it.
fn version(directory: &Path, account: &ServerUser) -> Result<String, PostgresError> {
    let unusable = |reason: String| PostgresError::ProgramsUnusable {
        directory: directory.to_owned(),
        account: account.to_string(),
        reason,
    };
    let mut command = Command::new(directory.join("postgres"));
    account.apply(&mut command);
    let output = command
        .arg("--version")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| unusable(error.to_string()))?;
    major(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| unusable(format!("`postgres --version` ended with {}", output.status)))
}

/// `17` from `postgres (PostgreSQL) 17.2 (Debian 17.2-1)`; `18` from `postgres (PostgreSQL) 18beta1`.
fn major(version: &str) -> Option<String> {
    let (_, number) = version.split_once("(PostgreSQL) ")?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn major_version_of_what_postgres_prints() {
        for (printed, expected) in [
            (
                "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n",
                Some("15"),
            ),
            ("postgres (PostgreSQL) 18beta1\n", Some("18")),
            ("postgres (PostgreSQL) x\n", None),
            ("", None),
        ] {
            assert_eq!(major(printed).as_deref(), expected, "{printed}");
        }
    }

    #[test]
    fn higher_numbers_come_first_and_path_last() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["9", "15", "17", "common"] {
            std::fs::create_dir_all(folder.path().join(name).join("bin")).unwrap();
        }
        let found = candidates(folder.path(), Some(OsString::from("/opt/pg/bin:relative")));
        let expected: Vec<PathBuf> = ["17", "15", "9"]
            .iter()
            .map(|name| folder.path().join(name).join("bin"))
            .chain([PathBuf::from("/opt/pg/bin")])
            .collect();
        assert_eq!(found, expected);
    }
}
