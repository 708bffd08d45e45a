//! Detects settings that have changed since they were read, without keeping a second copy of secrets.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

/// The SHA-256 of each setting's value, by the setting's name.
#[derive(Debug, Clone)]
pub struct Fingerprint(BTreeMap<String, [u8; 32]>);

impl Fingerprint {
    /// Computes the fingerprint of these settings.
    pub(super) fn of(settings: &Table) -> Self {
        let mut all = BTreeMap::new();
        add(&mut all, "", settings);
        Self(all)
    }

    /// The names of the settings whose values differ in `newer`.
    #[must_use]
    pub fn changed(&self, newer: &Self) -> Vec<String> {
        let newer = newer.0.iter();
        newer
            .filter(|(name, digest)| self.0.get(*name) != Some(*digest))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Adopts the value of one setting.
    pub fn adopt(&mut self, newer: &Self, name: &str) {
        if let Some(digest) = newer.0.get(name) {
            self.0.insert(name.to_owned(), *digest);
        }
    }
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

    fn of(text: &str) -> Fingerprint {
        Fingerprint::of(&text.parse().unwrap())
    }

    #[test]
    fn what_has_changed_is_named_and_nothing_else() {
        let before = of("days = 90\n[log]\nfilter = 'info'\n[seal]\nkeys = ['k1:a']\n[a.b]\nc = 1");
        assert_eq!(before.changed(&before), [] as [&str; 0]);
        let after =
            of("days = 7\n[log]\nfilter = 'debug'\n[seal]\nkeys = ['k2:b', 'k1:a']\n[a.b]\nc = 2");
        let changed = before.changed(&after);
        assert_eq!(changed, ["a.b.c", "days", "log.filter", "seal.keys"]);
        assert!(!format!("{after:?}").contains("k2:b"));
        let mut adopted = before;
        adopted.adopt(&after, "log.filter");
        assert_eq!(adopted.changed(&after), ["a.b.c", "days", "seal.keys"]);
    }
}
