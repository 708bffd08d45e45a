//! A real `HAProxy` with the configuration of `config/haproxy`, in which only addresses and files are replaced.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::fleet::{Fleet, HOSTS};
use crate::crash::clients::Account;
use crate::peers::process::{Household, find};
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;

const CONFIGURATION: &str = include_str!("../../../config/haproxy/haproxy.cfg");

/// Its three doors by name, with the ports that the configuration gives the gateways there.
const DOORS: [(&str, &str, &str); 3] = [
    ("rest", ":::443 v4v6", ":8080"),
    ("smtp-starttls", ":::587 v4v6", ":587"),
    ("smtp-tls", ":::465 v4v6", ":465"),
];

/// What the configuration calls the gateways, and where it says that they are.
const SERVERS: [(&str, &str); 3] = [
    ("one", "10.0.0.11"),
    ("two", "10.0.0.12"),
    ("three", "10.0.0.13"),
];

/// Ends when it is dropped.
pub struct Balancer {
    _household: Household,
    socket: PathBuf,
    ports: [u16; 3],
}

impl Balancer {
    /// In front of `fleet`, with the certificate of `gateway` for REST; ready once all of them are.
    pub async fn start(gateway: &Gateway, fleet: &Fleet) -> Self {
        let program = find("haproxy").expect("haproxy isn't installed: run tests/peers/install");
        let household = Household::new();
        let folder = household.folder().to_owned();
        let socket = folder.join("admin.sock");
        let files = gateway.ca_file.parent().unwrap();
        let files = mailgate_sandbox::certificates::ensure(files, &[], chrono::Utc::now()).unwrap();
        let pem = [&files.certificate, &files.key].map(|path| fs::read_to_string(path).unwrap());
        let certificate = folder.join("gateway.pem");
        fs::write(&certificate, pem.concat()).unwrap();
        let ports = ports::reserve();

        let mut text = CONFIGURATION.to_owned();
        let mut replace = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} stands in the configuration");
            text = text.replace(from, to);
        };
        replace(
            "/etc/haproxy/gateway.pem",
            &certificate.display().to_string(),
        );
        replace("/run/haproxy/admin.sock", &socket.display().to_string());
        for ((_, own, theirs), (port, gateways)) in DOORS.iter().zip(ports.iter().zip(fleet.ports))
        {
            replace(&format!("bind {own}"), &format!("bind 127.0.0.1:{port}"));
            for (_, address) in SERVERS {
                replace(
                    &format!("{address}{theirs}"),
                    &format!("{address}:{gateways}"),
                );
            }
        }
        replace("port 8080", &format!("port {}", fleet.ports[0]));
        for ((_, address), host) in SERVERS.iter().zip(HOSTS) {
            replace(&format!("{address}:"), &format!("{host}:"));
        }
        let path = folder.join("haproxy.cfg");
        fs::write(&path, text).unwrap();

        // In the foreground, so that it ends with the household.
        let mut command = Command::new(program);
        household.add("haproxy", command.arg("-db").arg("-f").arg(path));
        household.wait_for_ports("haproxy", &ports).await;
        let balancer = Self {
            _household: household,
            socket,
            ports,
        };
        for number in 0..SERVERS.len() {
            balancer.sees(number, "UP").await;
        }
        balancer
    }

    /// The demo app at its doors.
    pub fn account(&self, gateway: &Gateway) -> Account {
        let [rest, starttls, tls] = self.ports;
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Account {
            base_url: format!("https://127.0.0.1:{rest}"),
            starttls: address(starttls),
            tls: address(tls),
            ..Account::of(gateway)
        }
    }

    /// Waits until a gateway is `UP`, or `DOWN`, at all doors.
    pub async fn sees(&self, number: usize, status: &str) {
        let what = format!("gateway {number} that is {status}");
        patience::until(&what, async || self.sees_now(number, status).await).await;
    }

    /// Whether a gateway is `UP`, or `DOWN`, at all doors.
    pub async fn sees_now(&self, number: usize, status: &str) -> bool {
        let seen = self.statistics(number).await;
        seen.iter().all(|(seen, _)| seen == status)
    }

    /// What it answers to its administrator, once it listens to one: it takes connections a moment before.
    async fn ask(&self, command: &str) -> String {
        let mut socket =
            patience::found("balancer that listens to its administrator", async || {
                UnixStream::connect(&self.socket).await.ok()
            })
            .await;
        socket.write_all(command.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// What it says of a gateway at each door: its status, and the sessions so far.
    pub async fn statistics(&self, number: usize) -> [(String, u64); 3] {
        let text = self.ask("show stat\n").await;
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let column = |name| names.iter().position(|it| it.ends_with(name)).unwrap();
        let (door, server) = (column("pxname"), column("svname"));
        let (status, sessions) = (column("status"), column("stot"));
        let rows: Vec<_> = lines.filter(|row| row.len() > sessions).collect();
        DOORS.map(|(name, _, _)| {
            let row = rows
                .iter()
                .find(|row| row[door] == name && row[server] == SERVERS[number].0)
                .unwrap_or_else(|| panic!("{name} has gateway {number}:\n{text}"));
            (row[status].to_owned(), row[sessions].parse().unwrap())
        })
    }
}
