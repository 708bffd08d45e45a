//! `mailgate certificates`: lists certificates from the ACME server, and renews them.

use std::path::Path;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::table::Table;
use super::{OperatorError, on_database};
use mailgate_storage::certificates::overview::{self, CertificateOverview};
use mailgate_storage::database::tables;
use mailgate_types::moment::iso8601;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum CertificatesAction {
    /// List the certificates from ACME servers, and why the last attempt at one failed.
    List,
    /// Have a running gateway order a certificate now, whatever is left of the present one's life, or of the pause
    /// after a failure.
    Renew {
        /// Of this name only.
        name: Option<String>,
    },
}

/// Runs one action and prints its result.
///
/// # Errors
///
/// [`OperatorError`]
pub async fn run(
    action: &CertificatesAction,
    as_json: bool,
    file: Option<&Path>,
) -> Result<(), OperatorError> {
    on_database(file, async |_, pool| act(action, as_json, &pool).await).await
}

async fn act(
    action: &CertificatesAction,
    as_json: bool,
    pool: &PgPool,
) -> Result<(), OperatorError> {
    tables::require_tables(pool).await?;
    let mut connection = pool.acquire().await?;
    match action {
        CertificatesAction::List => {
            let listed = overview::overview(&mut connection).await?;
            print_list(as_json, &listed);
        }
        CertificatesAction::Renew { name } => {
            let name = name.as_ref().map(|name| name.to_ascii_lowercase());
            let due = overview::renew(&mut connection, name.as_deref()).await?;
            if due.is_empty() {
                let which = name.map_or_else(String::new, |name| format!(" for {name}"));
                return Err(OperatorError::Argument(format!(
                    "there is no certificate from an ACME server{which}; mailgate certificates list shows them all"
                )));
            }
            if as_json {
                println!("{}", json!({ "due": due }));
            } else {
                for name in due {
                    println!("{name} is due: a running gateway orders it within seconds.");
                }
            }
        }
    }
    Ok(())
}

fn print_list(as_json: bool, listed: &[CertificateOverview]) {
    if as_json {
        let certificates: Vec<Value> = listed.iter().map(shown).collect();
        println!("{}", json!({ "certificates": certificates }));
        return;
    }
    if listed.is_empty() {
        println!(
            "No certificates from an ACME server: acme.challenge is off, or no gateway has started with it yet."
        );
        return;
    }
    let mut table = Table::new([
        "NAME",
        "STATUS",
        "EXPIRES",
        "NEXT ORDER",
        "FAILURES",
        "LAST ERROR",
    ]);
    for certificate in listed {
        table.row([
            certificate.name.clone(),
            status(certificate).to_owned(),
            moment(certificate.not_after),
            iso8601(certificate.due_at),
            certificate.failures.to_string(),
            certificate.last_error.clone().unwrap_or_default(),
        ]);
    }
    print!("{}", table.text());
}

fn status(certificate: &CertificateOverview) -> &'static str {
    match (certificate.not_after, certificate.is_expired) {
        (None, _) => "missing",
        (Some(_), true) => "expired",
        (Some(_), false) => "valid",
    }
}

fn moment(moment: Option<DateTime<Utc>>) -> String {
    moment.map_or_else(|| "-".to_owned(), iso8601)
}

fn shown(certificate: &CertificateOverview) -> Value {
    json!({
        "name": certificate.name,
        "directory_url": certificate.directory_url,
        "status": status(certificate),
        "not_before": certificate.not_before.map(iso8601),
        "not_after": certificate.not_after.map(iso8601),
        "issued_at": certificate.issued_at.map(iso8601),
        "next_order_at": iso8601(certificate.due_at),
        "last_attempt_at": certificate.last_attempt_at.map(iso8601),
        "failures": certificate.failures,
        "last_error": certificate.last_error,
        "being_ordered": certificate.is_ordered,
    })
}
