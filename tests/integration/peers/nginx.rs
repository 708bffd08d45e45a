//! A real nginx with some lines of the documents.

use std::fs;
use std::process::Command;

use super::process::{Household, find};

/// Ends when it is dropped.
pub struct Nginx {
    _household: Household,
}

impl Nginx {
    /// With one `server`, which has these lines, at a port of loopback.
    ///
    /// # Panics
    ///
    /// If it isn't installed, or doesn't start.
    pub async fn start(port: u16, lines: &str) -> Self {
        let program = find("nginx").expect("nginx isn't installed: run tests/peers/install");
        let household = Household::new();
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {name};\n"))
            .concat();
        let text = format!(
            "daemon off;\nuser root;\nworker_processes 1;\npid nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\n{folders}server {{\nlisten 127.0.0.1:{port};\n{lines}\n}}\n}}\n"
        );
        fs::write(household.folder().join("nginx.conf"), text).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(household.folder());
        household.add("nginx", command.args(["-c", "nginx.conf"]));
        household.wait_for_ports("nginx", &[port]).await;
        Self {
            _household: household,
        }
    }
}
