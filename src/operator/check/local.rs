//! What lies on the operator's side: the database, the sealing keys, the certificate.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use tokio::time::timeout;

use super::{Checked, LIMIT};
use crate::config::Settings;
use crate::providers::tls::expiry;
use crate::storage::{pool, sealed};
use mailgate_server::tls::ServerCertificate;

/// How far the database's clock may be from this machine's: leases of gateways go by the database's.
const SKEW: TimeDelta = TimeDelta::seconds(5);

/// How long a certificate should still be valid.
const NEAR: TimeDelta = TimeDelta::days(3);

/// The database, and what can only be seen in it.
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
    let tables = match timeout(LIMIT, pool::is_ready(&pool)).await {
        Ok(Ok(true)) => Ok("up to date".to_owned()),
        Ok(Ok(false)) => {
            Err("older than this program; serve and migrate bring them up to date".to_owned())
        }
        Ok(Err(error)) => Err(format!(
            "can't be read: {error}; mailgate migrate makes them"
        )),
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    };
    let mut checked = vec![
        check("database").with(Ok("reached".to_owned())),
        check("database_clock").with(clock(&pool).await),
    ];
    if tables.is_ok() {
        checked.push(Checked::new("seal_keys", "seal.keys").with(seal_keys(&pool, settings).await));
    }
    checked.push(check("database_tables").with(tables));
    checked
}

async fn clock(pool: &PgPool) -> Result<String, String> {
    let before = Utc::now();
    let theirs = timeout(LIMIT, pool::clock(pool)).await;
    let after = Utc::now();
    let theirs = theirs
        .map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    // Whatever the way there and back took is in doubt.
    let ahead = (theirs - after).max(before - theirs).max(TimeDelta::zero());
    let text = format!("{} ms apart at least", ahead.num_milliseconds());
    if ahead > SKEW { Err(text) } else { Ok(text) }
}

/// Whether the database's values are sealed under keys that are given, by their ids.
async fn seal_keys(pool: &PgPool, settings: &Settings) -> Result<String, String> {
    let keys = Arc::new(&settings.seal_keys);
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
        Ok(_) => Ok("they open what is sealed".to_owned()),
        Err(error) => Err(format!("these are not the keys of this database: {error}")),
    }
}

/// The certificate of the SMTP listeners.
pub(super) fn certificate(settings: &Settings, now: DateTime<Utc>) -> Checked {
    let (certificate, key) = (&settings.tls_certificate, &settings.tls_key);
    let check = Checked::new("certificate", certificate.display().to_string());
    let outcome = ServerCertificate::load(certificate, key)
        .map_err(|error| error.to_string())
        .and_then(|_| std::fs::read(certificate).map_err(|error| error.to_string()))
        .and_then(|pem| match expiry::validity(&pem) {
            Some((begins, _)) if begins > now => Err(format!("valid from {begins} only")),
            Some((_, ends)) if ends <= now => Err(format!("expired at {ends}")),
            Some((_, ends)) if ends <= now + NEAR => Err(format!("expires at {ends}")),
            Some((_, ends)) => Ok(format!("the key fits; valid until {ends}")),
            None => Err("its dates can't be read".to_owned()),
        });
    check.with(outcome)
}
