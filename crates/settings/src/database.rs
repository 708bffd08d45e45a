//! The database's settings.

use std::time::Duration;

use secrecy::SecretString;

use super::reader::Reader;

/// The database's settings.
#[derive(Debug)]
pub struct DatabaseSettings {
    /// The URL; a secret, since it contains the password.
    pub url: SecretString,
    /// Maximum number of connections of this process.
    pub max_connections: u32,
    /// The timeout of one statement.
    pub statement: Duration,
}

pub(super) fn read(reader: &mut Reader<'_>) -> DatabaseSettings {
    let form = "postgres://user:password@host/name (MAILGATE__DATABASE__URL)";
    let url = reader.required("database.url", form);
    // sqlx accepts any scheme. The URL is not shown, since it may contain a password.
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
