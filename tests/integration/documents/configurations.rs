//! The settings that the documents show, as the gateway reads them.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use mailgate_server::tls::ServerCertificate;
use mailgate_settings::Settings;
use tempfile::{NamedTempFile, TempDir};
use toml::Table;

use super::blocks::Block;
use super::{Use, the_block, used};
use crate::support::gateway::SEAL_KEY;

/// What a reader has besides, and what stands in for the keys that a page can't show.
const NEEDED: [(&str, &str); 4] = [
    ("MAILGATE__DATABASE__URL", "postgres://localhost/x"),
    ("MAILGATE__SEAL__KEYS", SEAL_KEY),
    ("MAILGATE__TLS__CERTIFICATE", "/c.pem"),
    ("MAILGATE__TLS__KEY", "/k.pem"),
];

/// The whole file that "Run it" shows.
pub fn of_run_it() -> String {
    the_block(Use::Configuration, "[database]")
}

fn load(block: &Block) -> Settings {
    let mut file = NamedTempFile::new().unwrap();
    // What a reader fills in.
    let text = block.text.replace('…', "x");
    file.write_all(text.as_bytes()).unwrap();
    // Certificates come from files or from an ACME server.
    let is_acme = block.text.contains("[acme]");
    let needed = NEEDED.into_iter();
    let needed = needed.filter(|(name, _)| !(is_acme && name.starts_with("MAILGATE__TLS__")));
    mailgate_settings::load(Table::new(), Some(file.path()), needed)
        .unwrap_or_else(|error| panic!("{}: {error}\n{}", block.place(), block.text))
}

/// `deploy/prepare`, beside its own files, in a folder of its own.
#[test]
fn what_is_prepared_for_containers_is_what_the_gateway_takes() {
    let folder = TempDir::new().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (deploy, there) = (repository.join("deploy"), folder.path().join("deploy"));
    fs::create_dir(&there).unwrap();
    for name in ["prepare", "Caddyfile", "mailgate.toml"] {
        fs::copy(deploy.join(name), there.join(name)).unwrap();
    }
    let example = ".env.example";
    fs::copy(repository.join(example), folder.path().join(example)).unwrap();
    // A process that another test forks may have the copy open for writing, so it can't be executed itself.
    let prepared = Command::new("bash")
        .arg(there.join("prepare"))
        .args(["smtp.gateway.example", "https://gateway.example"])
        .output()
        .unwrap();
    assert!(prepared.status.success(), "{prepared:?}");
    let private = there.join("private");
    let (tls, secrets) = (private.join("etc/tls"), private.join("secrets"));
    let environment = [
        ("MAILGATE__DATABASE__URL_FILE", secrets.join("database_url")),
        ("MAILGATE__SEAL__KEYS_FILE", secrets.join("seal_keys")),
        ("MAILGATE__TLS__CERTIFICATE", tls.join("fullchain.pem")),
        ("MAILGATE__TLS__KEY", tls.join("privkey.pem")),
    ];
    let settings = private.join("etc/mailgate.toml");
    let settings = mailgate_settings::load(Table::new(), Some(&settings), environment.into_iter());
    let settings = settings.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(settings.http_listen.to_string(), "[::]:8080");
    assert_eq!(settings.http_base_url, "https://gateway.example");
    let names = settings.certificate_names();
    ServerCertificate::load_for(&tls.join("fullchain.pem"), &tls.join("privkey.pem"), names)
        .expect("it is for the name");
    let image = deploy.join("mailgate.toml");
    let image = mailgate_settings::load(Table::new(), Some(&image), NEEDED.into_iter()).unwrap();
    assert_eq!(image.http_listen, settings.http_listen);
    assert_eq!(image.metrics_listen, settings.metrics_listen);
}

#[test]
fn every_configuration_is_one_that_the_gateway_takes() {
    let configurations = used(Use::Configuration);
    assert!(configurations.len() >= 7, "{}", configurations.len());
    for block in &configurations {
        let settings = load(block);
        let sections: Table = block.text.parse().unwrap();
        for (name, section) in &sections {
            assert!(
                section.as_table().is_none_or(|section| !section.is_empty()),
                "{}: [{name}] is empty",
                block.place()
            );
        }
        // What is shown is on.
        let plugins = sections.get("plugins").and_then(|it| it.as_table());
        assert_eq!(
            settings.plugins.len(),
            plugins.map_or(0, Table::len),
            "{}",
            block.place()
        );
        assert_eq!(
            settings.relay.is_some(),
            sections.contains_key("relay"),
            "{}",
            block.place()
        );
        assert_eq!(
            settings.payprov.is_some(),
            sections.contains_key("payprov"),
            "{}",
            block.place()
        );
    }
}
