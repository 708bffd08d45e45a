//! Local checks: the database, the sealing keys, the certificate, the client secrets, the limits of open files and
//! memory.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use rustls::pki_types::CertificateDer;
use secrecy::ExposeSecret as _;
use sqlx::PgPool;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::{Checked, LIMIT};
use mailgate_providers::tls::expiry;
use mailgate_server::tls::ServerCertificate;
use mailgate_settings::{AcmeSettings, CertificateSource, PluginSettings, ProviderKind, Settings};
use mailgate_storage::certificates::overview::overview;
use mailgate_storage::database::pool;
use mailgate_storage::database::pool::PoolError;
use mailgate_storage::database::readiness::READ_ONLY;
use mailgate_storage::database::tables;
use mailgate_storage::database::tables::{Able, Stand};
use mailgate_storage::subscribers::billing;
use mailgate_storage::{partitions, sealed, sign_of_life};
use mailgate_telemetry::{memory, open_files};
use mailgate_types::clock::TOLERANCE;
use mailgate_types::moment::iso8601;

/// The minimum remaining validity of a certificate.
const NEAR: TimeDelta = TimeDelta::days(3);

/// The minimum remaining validity of a client secret.
const SECRET_NEAR: TimeDelta = TimeDelta::days(7);

/// The database, and the checks that need it.
pub(super) async fn database(settings: &Settings) -> Vec<Checked> {
    let check = |name: &str| Checked::new(name, "database.url");
    let connected = timeout(LIMIT, pool::connect(&settings.database)).await;
    let pool = match connected {
        Ok(Ok(pool)) => pool,
        Ok(Err(error)) => return vec![check("database").with(Err(error.to_string()))],
        Err(_) => {
            let late = format!("no answer within {} s", LIMIT.as_secs());
            return vec![check("database").with(Err(late))];
        }
    };
    let stand = timeout(LIMIT, tables::stand(&pool)).await;
    let has_tables = matches!(stand, Ok(Ok(Stand::Current | Stand::Newer(_))));
    let mut checked = vec![
        check("database").with(Ok("reached".to_owned())),
        check("database_clock").with(clock(&pool).await),
    ];
    let able = if has_tables {
        timeout(LIMIT, tables::able(&pool)).await.ok()
    } else {
        None
    };
    if let Some(Ok(able @ (Able::Write | Able::Read))) = able {
        let written = if able == Able::Write {
            Ok("they are accepted".to_owned())
        } else {
            Err(READ_ONLY.to_owned())
        };
        checked.push(check("database_writes").with(written));
        checked.push(check("database_partitions").with(partitions(&pool).await));
        checked.push(check("deletions").with(deletions(&pool).await));
        if settings.payprov.is_some() {
            checked.push(Checked::new("subscriptions", "payprov").with(subscriptions(&pool).await));
        }
        checked.push(Checked::new("seal_keys", "seal.keys").with(seal_keys(&pool, settings).await));
    }
    checked.push(check("database_tables").with(tables_of(stand)));
    pool::close(&pool).await;
    checked
}

/// The state of the tables.
fn tables_of(stand: Result<Result<Stand, PoolError>, Elapsed>) -> Result<String, String> {
    let stand = stand.map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?;
    let may_not = "and the user of database.url may not create any: make it the database's owner (ALTER DATABASE … OWNER TO …)";
    match stand.map_err(|error| error.to_string())? {
        Stand::Current => Ok("up to date".to_owned()),
        Stand::Missing(true) => {
            Ok("none yet: the gateway creates them at its first start".to_owned())
        }
        Stand::Missing(false) => Err(format!("none yet, {may_not}")),
        Stand::Older(true) => {
            Err("older than this program; serve and migrate bring them up to date".to_owned())
        }
        Stand::Older(false) => Err(format!("older than this program, {may_not}")),
        Stand::Newer(migration) => Err(PoolError::Newer(migration).to_string()),
        Stand::Other(migration) => Err(PoolError::Other(migration).to_string()),
    }
}

/// Whether the log and the webhooks have partitions for today and tomorrow.
async fn partitions(pool: &PgPool) -> Result<String, String> {
    let looked = timeout(LIMIT, async {
        let mut connection = pool.acquire().await?;
        let now = pool::clock(&mut *connection).await?;
        partitions::missing_soon(&mut connection, now.date_naive()).await
    });
    let missing = looked
        .await
        .map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    match missing.first() {
        None => Ok("today's and tomorrow's exist".to_owned()),
        Some(day) => Err(format!(
            "missing for {day}: a running gateway creates it; its log says why it can't"
        )),
    }
}

async fn clock(pool: &PgPool) -> Result<String, String> {
    let before = Utc::now();
    let theirs = timeout(LIMIT, pool::clock(pool)).await;
    let after = Utc::now();
    let theirs = theirs
        .map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    // The round trip is the uncertainty.
    let apart = (theirs - after).max(before - theirs).max(TimeDelta::zero());
    let text = format!("{} ms apart at least", apart.num_milliseconds());
    if apart <= TOLERANCE {
        return Ok(text);
    }
    let which = if theirs > before {
        "behind"
    } else {
        "ahead of"
    };
    Err(format!(
        "{text}: this machine's is {which} the database's; gateways use the database's, and scheduled messages \
         leave when both say so"
    ))
}

/// Whether gateways delete data past its retention.
async fn deletions(pool: &PgPool) -> Result<String, String> {
    let read = async {
        let mut connection = pool.acquire().await?;
        sign_of_life::read(&mut connection).await
    };
    let (last, _) = timeout(LIMIT, read)
        .await
        .map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    match last.held_until() {
        None => Ok("not held back: the database's clock is trusted".to_owned()),
        Some(until) => Err(format!(
            "held back until {}, since the database's clock has moved on by more than a week after {}, when a gateway \
             last ran; if it is right, mailgate trust-clock ends the wait",
            iso8601(until),
            iso8601(last.trusted_at)
        )),
    }
}

/// Whether a subscriber is charged for more than one subscription, by the gateways' last sync with the payment
/// provider.
async fn subscriptions(pool: &PgPool) -> Result<String, String> {
    let read = async {
        let mut connection = pool.acquire().await?;
        billing::doubly_charged(&mut connection).await
    };
    let found = timeout(LIMIT, read)
        .await
        .map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    match found.first {
        None => Ok("no subscriber has more than one living subscription".to_owned()),
        Some(first) => Err(format!(
            "{} with more than one living subscription at the payment provider, charged for each; the first is {first}: \
             the runbook's MailgateBillingTwice says what to do",
            match found.count {
                1 => "1 subscriber".to_owned(),
                count => format!("{count} subscribers"),
            }
        )),
    }
}

/// Whether the database's values are sealed with configured keys, by key id.
async fn seal_keys(pool: &PgPool, settings: &Settings) -> Result<String, String> {
    let keys = &settings.seal_keys;
    let read = async {
        let mut connection = pool.acquire().await?;
        sealed::newest_secret(&mut connection).await
    };
    let newest = timeout(LIMIT, read)
        .await
        .map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    let Some((context, value)) = newest else {
        return Ok("nothing is sealed yet".to_owned());
    };
    match keys.unseal(&context, &value) {
        Ok(_) => Ok("they open the sealed values".to_owned()),
        Err(error) => Err(format!("these are not the keys of this database: {error}")),
    }
}

/// The listeners' certificates: from files, or from the ACME server.
pub(super) async fn certificates(settings: &Settings, now: DateTime<Utc>) -> Vec<Checked> {
    match &settings.certificates {
        CertificateSource::Files { certificate, key } => {
            vec![files(settings, certificate, key, now)]
        }
        CertificateSource::Acme(acme) => issued(settings, acme, now).await,
    }
}

fn files(settings: &Settings, certificate: &Path, key: &Path, now: DateTime<Utc>) -> Checked {
    let check = Checked::new("certificate", certificate.display().to_string());
    let outcome = ServerCertificate::load_for(certificate, key, settings.certificate_names())
        .map_err(|error| error.to_string())
        .and_then(|pair| {
            if let Some(why) = pair.unreliable() {
                return Err(why.to_string());
            }
            let pair = pair.shown();
            let leaf = pair.end_entity_cert().map_err(|error| error.to_string())?;
            let ends = in_time(leaf, now)?;
            Ok(format!(
                "the key fits; for {}; valid until {ends}",
                settings.smtp.host
            ))
        });
    check.with(outcome)
}

/// Client secrets that are missing, or have an expiry in the settings.
pub(super) fn client_secrets(settings: &Settings, now: DateTime<Utc>) -> Vec<Checked> {
    let plugins = settings.plugins.iter();
    // Google and Microsoft require it for web applications; other providers may allow public clients.
    let is_missing = |plugin: &&PluginSettings| {
        let needs = plugin.kind != ProviderKind::Generic;
        needs && plugin.client_secret.expose_secret().is_empty()
    };
    let missing = plugins.clone().filter(is_missing).map(|plugin| {
        let name = plugin.plugin;
        let setting = format!("plugins.{name}.client_secret");
        let text = "isn't set, or its file is empty: no mailbox can be connected without it";
        Checked::new(format!("{name}_secret"), setting).with(Err(text.to_owned()))
    });
    let plugins = plugins.filter(|plugin| !is_missing(plugin));
    let dated = plugins.filter_map(|plugin| Some((plugin.plugin, plugin.client_secret_expires?)));
    let dated = dated.map(|(plugin, ends)| {
        let date = ends.date_naive();
        let outcome = if ends <= now {
            Err(format!("expired on {date}, by its date"))
        } else if ends <= now + SECRET_NEAR {
            Err(format!("expires on {date}"))
        } else {
            Ok(format!("valid until {date}, by its date"))
        };
        let setting = format!("plugins.{plugin}.client_secret_expires");
        Checked::new(format!("{plugin}_secret"), setting).with(outcome)
    });
    missing.chain(dated).collect()
}

/// The number of files that this process may open; `serve` may open as many if started in the same way.
pub(super) fn open_files(settings: &Settings) -> Checked {
    let permitted = open_files::permitted();
    let outcome = match open_files::shortage(settings, permitted) {
        Some(shortage) => Err(shortage),
        None => Ok(format!(
            "{} permitted, {} may be needed",
            permitted.map_or_else(|| "any number".to_owned(), |number| number.to_string()),
            open_files::needed(settings)
        )),
    };
    Checked::new("open_files", "").with(outcome)
}

/// The memory that this process may use: its machine's, or its control group's limit if lower.
pub(super) fn memory(settings: &Settings) -> Checked {
    let permitted = memory::permitted();
    let outcome = match memory::shortage(settings, permitted) {
        Some(shortage) => Err(shortage),
        None => Ok(format!(
            "{} MiB permitted, {} may be needed",
            permitted.map_or_else(
                || "any number of".to_owned(),
                |bytes| memory::mebibytes(bytes).to_string()
            ),
            memory::mebibytes(memory::needed(settings))
        )),
    };
    Checked::new("memory", "").with(outcome)
}

/// A valid certificate's expiry, if it isn't near.
fn in_time(certificate: &CertificateDer<'_>, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    match expiry::validity_of(certificate) {
        Some((begins, _)) if begins > now => Err(format!("valid from {begins} only")),
        Some((_, ends)) if ends <= now => Err(format!("expired at {ends}")),
        Some((_, ends)) if ends <= now + NEAR => Err(format!("expires at {ends}")),
        Some((_, ends)) => Ok(ends),
        None => Err("its dates can't be read".to_owned()),
    }
}

/// The state of the ACME certificates in the database, by name.
async fn issued(settings: &Settings, acme: &AcmeSettings, now: DateTime<Utc>) -> Vec<Checked> {
    let read = async {
        let pool = pool::connect(&settings.database)
            .await
            .map_err(|error| error.to_string())?;
        let mut connection = pool.acquire().await.map_err(|error| error.to_string())?;
        match overview(&mut connection).await {
            Err(error) if tables::is_undefined_table(&error) => Ok(None),
            listed => listed.map(Some).map_err(|error| error.to_string()),
        }
    };
    let late = Err(format!("no answer within {} s", LIMIT.as_secs()));
    let listed = timeout(LIMIT, read).await.unwrap_or(late);
    let outcome = |name: &str| -> Result<String, String> {
        let Some(listed) = listed.as_ref().map_err(Clone::clone)? else {
            return Ok("none yet: the gateway orders it at its first start".to_owned());
        };
        let mut listed = listed.iter();
        let found = listed.find(|it| it.name == name && it.directory_url == acme.directory_url);
        let why = found.and_then(|it| it.last_error.as_deref());
        let why = why.map_or_else(String::new, |why| format!("; the last order failed: {why}"));
        match found.and_then(|it| it.not_after) {
            None => Err(format!("there is none yet{why}")),
            Some(ends) if ends <= now => Err(format!("expired at {ends}{why}")),
            Some(ends) if ends <= now + NEAR => Err(format!("expires at {ends}{why}")),
            Some(ends) => Ok(format!("valid until {ends}{why}")),
        }
    };
    let names = acme.names().into_iter();
    names
        .map(|name| Checked::new("certificate", name.clone()).with(outcome(&name)))
        .collect()
}
