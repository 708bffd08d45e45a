//! Let's Encrypt's Pebble: an ACME server for tests, whose validation goes to ports of this machine. Its names resolve
//! to 127.0.0.1 by the challenge server that comes with it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::certificate;
use super::process::{Household, find};
use crate::support::patience;
use crate::support::ports;

/// A running Pebble; it ends with this.
pub struct Pebble {
    pub directory_url: String,
    /// Who signed the certificate of its interface.
    pub ca_file: PathBuf,
    /// Who signs what it issues.
    pub root_file: PathBuf,
    /// Where it asks for HTTP-01.
    pub http_port: u16,
    /// Where it asks for TLS-ALPN-01.
    pub tls_port: u16,
    _household: Household,
}

impl Pebble {
    /// # Panics
    ///
    /// If it isn't installed, or doesn't start.
    pub async fn start() -> Self {
        Self::with(json!({ "externalAccountBindingRequired": false })).await
    }

    /// As [`Pebble::start`], for accounts that are bound by this key alone.
    ///
    /// # Panics
    ///
    /// As there.
    pub async fn that_binds(key_id: &str, mac_key: &str) -> Self {
        Self::with(json!({
            "externalAccountBindingRequired": true,
            "externalAccountMACKeys": { key_id: mac_key },
        }))
        .await
    }

    async fn with(binding: Value) -> Self {
        let [
            interface,
            management,
            dns,
            dns_management,
            http_port,
            tls_port,
        ] = ports::reserve();
        let household = Household::new();
        let folder = household.folder().to_owned();
        let files = certificate::create(&folder);
        let config = folder.join("pebble.json");
        let mut settings = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{interface}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": files.chain,
            "privateKey": files.key,
            "httpPort": http_port,
            "tlsPort": tls_port,
            "ocspResponderURL": "",
        }});
        let pebble = settings["pebble"].as_object_mut().unwrap();
        pebble.extend(binding.as_object().unwrap().clone());
        fs::write(&config, settings.to_string()).unwrap();
        let program = |name: &str| {
            let found = find(name);
            Command::new(
                found.unwrap_or_else(|| panic!("{name} is missing: run tests/peers/install")),
            )
        };
        household.add(
            "pebble-challtestsrv",
            program("pebble-challtestsrv")
                .args(["-http01", "", "-https01", "", "-tlsalpn01", ""])
                .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""])
                .args(["-dns01", &format!("127.0.0.1:{dns}")])
                .args(["-management", &format!("127.0.0.1:{dns_management}")]),
        );
        household.add(
            "pebble",
            program("pebble")
                .args(["-dnsserver", &format!("127.0.0.1:{dns}")])
                .arg("-config")
                .arg(&config)
                .env("PEBBLE_VA_NOSLEEP", "1")
                // An order fails at the third refusal in a row; of the usual 5 in 100, that's too often for the tests.
                .env("PEBBLE_WFE_NONCEREJECT", "1")
                // Orders are validated anew, but for one in a hundred: Pebble takes 0 as "up to 0 of 0 to 99".
                .env("PEBBLE_AUTHZREUSE", "0"),
        );
        household
            .wait_for_ports("pebble", &[dns_management, management, interface])
            .await;
        let root_file = folder.join("root.pem");
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(
                mailgate_providers::tls::client(Some(&files.authority))
                    .unwrap()
                    .as_ref()
                    .clone(),
            )
            .no_proxy()
            .timeout(patience::PATIENCE)
            .build()
            .unwrap();
        let root = client.get(format!("https://127.0.0.1:{management}/roots/0"));
        let root = root.send().await.unwrap().text().await.unwrap();
        fs::write(&root_file, root).unwrap();
        Self {
            directory_url: format!("https://localhost:{interface}/dir"),
            ca_file: files.authority,
            root_file,
            http_port,
            tls_port,
            _household: household,
        }
    }
}
