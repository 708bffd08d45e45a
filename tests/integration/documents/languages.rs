//! The interpreters and compilers of the examples, as `tests/peers/install` brings them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::blocks::root;
use super::examples::{Task, path};
use crate::peers::process;

/// Longest that an example may take: its pauses between attempts, and a compiler on two busy cores.
const LIMIT: Duration = Duration::from_mins(6);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    JavaScript,
    Php,
    Ruby,
    Go,
}

impl Language {
    pub const ALL: [Self; 5] = [
        Self::Python,
        Self::JavaScript,
        Self::Php,
        Self::Ruby,
        Self::Go,
    ];
}

/// Variables of a program.
pub type Environment = BTreeMap<&'static str, String>;

/// What a program came to.
#[derive(Debug)]
pub struct Outcome {
    pub succeeded: bool,
    /// What it wrote to either output.
    pub output: String,
}

/// An example that can be run.
pub struct Program {
    pub language: Language,
    folder: TempDir,
    executable: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    /// Copies it into a folder of its own, with its libraries beside it; Go is compiled.
    pub async fn of(language: Language, task: Task) -> Self {
        let folder = TempDir::new().unwrap();
        let file = root().join(path(language, task));
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        fs::copy(&file, folder.path().join(&name)).unwrap();
        let mut executable = PathBuf::from(match language {
            Language::Python | Language::JavaScript | Language::Go => "",
            Language::Php => "php",
            Language::Ruby => "ruby",
        });
        match language {
            Language::Python => executable = installed("python/bin/python"),
            Language::JavaScript => {
                executable = installed("node/node").canonicalize().unwrap();
                let packages = installed("node/node_modules");
                std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).unwrap();
            }
            Language::Php => {
                // What Composer would have put there, from Debian's package.
                fs::create_dir(folder.path().join("vendor")).unwrap();
                let autoload = "<?php require '/usr/share/php/libphp-phpmailer/autoload.php';\n";
                fs::write(folder.path().join("vendor/autoload.php"), autoload).unwrap();
            }
            Language::Ruby => {}
            Language::Go => {
                executable = folder.path().join("example");
                compile(folder.path()).await;
            }
        }
        let arguments = match language {
            Language::Go => Vec::new(),
            _ => vec![name],
        };
        Self {
            language,
            folder,
            executable,
            arguments,
        }
    }

    /// How it is run with this environment and no other.
    pub fn command(&self, environment: &Environment) -> Command {
        let mut command = self.start(environment);
        command.args(&self.arguments);
        command
    }

    /// How PHP's own web server serves it at this port of 127.0.0.1.
    pub fn behind_phps_server(&self, port: u16, environment: &Environment) -> Command {
        let mut command = self.start(environment);
        command
            .args(["-S", &format!("127.0.0.1:{port}")])
            .args(&self.arguments);
        command
    }

    fn start(&self, environment: &Environment) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("LANG", "C.UTF-8")
            .envs(environment);
        command
    }

    /// Runs it to its end.
    pub async fn run(&self, environment: &Environment) -> Outcome {
        let output = process::run(self.command(environment), b"", LIMIT).await;
        let text = [output.stdout, output.stderr].concat();
        Outcome {
            succeeded: output.status.success(),
            output: String::from_utf8_lossy(&text).into_owned(),
        }
    }
}

fn installed(path: &str) -> PathBuf {
    let path = root().join("target/peers").join(path);
    assert!(
        path.exists(),
        "no {}: run tests/peers/install",
        path.display()
    );
    path
}

async fn compile(folder: &Path) {
    let cache = root().join("target/peers/go");
    let mut command = Command::new("go");
    command
        .args(["build", "-o", "example", "main.go"])
        .current_dir(folder)
        .env("GOCACHE", cache)
        .env("GOFLAGS", "-p=1")
        .env("GO111MODULE", "off");
    let output = process::run(command, b"", LIMIT).await;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
}
