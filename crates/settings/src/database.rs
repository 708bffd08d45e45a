//! The database's settings.

use std::time::Duration;

use secrecy::SecretString;

use super::reader::Reader;

/// The database's settings.
#[derive(Debug)]
pub struct DatabaseSettings {
    /// Holds the password, so it is a secret.
    pub url: SecretString,
    /// Connections of this process at most.
    pub max_connections: u32,
    /// Longest that one statement may take.
    pub statement: Duration,
}

pub(super) fn read(reader: &mut Reader<'_>) -> DatabaseSettings {
    let form = "postgres://user:password@host/name (MAILGATE__DATABASE__URL)";
    let url = reader.required("database.url", form);
    // sqlx takes any scheme for its own; the text is not shown, since it may hold a password.
    let is_postgres = |url: url::Url| matches!(url.scheme(), "postgres" | "postgresql");
    if !url.is_empty() && !url::Url::parse(&url).is_ok_and(is_postgres) {
        reader.problem("database.url", format!("must be of the form {form}"));
    }
    DatabaseSettings {
        url: SecretString::from(url),
        max_connections: reader.number("database.max_connections", 2, 1_000),
        statement: Duration::from_secs(reader.number("database.statement_seconds", 1, 3_600)),
    }
}
