//! Which settings have changed since they were read, without keeping the secrets among them twice.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

use super::{ConfigError, lay_all};

/// The SHA-256 of each setting's value, by the setting's name.
#[derive(Debug, Clone)]
pub struct Fingerprint(BTreeMap<String, [u8; 32]>);

impl Fingerprint {
    /// The settings whose values are others in `newer`, by their names.
    #[must_use]
    pub fn changed(&self, newer: &Self) -> Vec<String> {
        let newer = newer.0.iter();
        newer
            .filter(|(name, digest)| self.0.get(*name) != Some(*digest))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Takes over the value of one setting.
    pub fn adopt(&mut self, newer: &Self, name: &str) {
        if let Some(digest) = newer.0.get(name) {
            self.0.insert(name.to_owned(), *digest);
        }
    }
}

/// Reads all layers of settings again.
///
/// # Errors
///
/// [`ConfigError`], if a layer can't be read or isn't one of settings.
pub fn fingerprint(
    file: Option<&Path>,
    environment: impl Iterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
) -> Result<Fingerprint, ConfigError> {
    let (settings, problems) = lay_all(Table::new(), file, environment);
    if !problems.is_empty() {
        return Err(ConfigError(problems));
    }
    let mut all = BTreeMap::new();
    add(&mut all, "", &settings);
    Ok(Fingerprint(all))
}

fn add(all: &mut BTreeMap<String, [u8; 32]>, within: &str, table: &Table) {
    for (key, value) in table {
        let name = format!("{within}{key}");
        match value {
            Value::Table(section) => add(all, &format!("{name}."), section),
            value => {
                let digest = Sha256::digest(value.to_string());
                all.insert(name, digest.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn of(environment: &[(&str, &str)]) -> Fingerprint {
        fingerprint(None, environment.iter().copied()).unwrap()
    }

    #[test]
    fn what_has_changed_is_named_and_nothing_else() {
        let before = of(&[("MAILGATE__SEAL__KEYS", "k1:a")]);
        assert_eq!(before.changed(&before), [] as [&str; 0]);
        let after = of(&[
            ("MAILGATE__SEAL__KEYS", "k2:b,k1:a"),
            ("MAILGATE__LOG__FILTER", "debug"),
            ("LOG_RETENTION_DAYS", "7"),
            ("MAILGATE__PLUGINS__PLUGIN_A__CLIENT_ID", "x"),
        ]);
        let names = [
            "LOG_RETENTION_DAYS",
            "log.filter",
            "plugins.plugin_a.client_id",
            "seal.keys",
        ];
        assert_eq!(before.changed(&after), names);
        assert!(!format!("{after:?}").contains("k2:b"));
    }
}
