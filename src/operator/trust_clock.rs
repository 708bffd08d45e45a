//! `mailgate trust-clock`: trusts a database clock that has jumped, as the operator confirms that it is right.

use std::path::Path;

use chrono::{TimeDelta, Utc};
use serde_json::json;
use sqlx::PgPool;

use super::{OperatorError, on_database};
use mailgate_storage::database::tables;
use mailgate_storage::sign_of_life;
use mailgate_types::moment::iso8601;

/// A difference from this machine's clock at which one of the two must be wrong.
const APART: TimeDelta = TimeDelta::hours(1);

/// Trusts the database's clock, and prints its time.
///
/// # Errors
///
/// [`OperatorError`]
pub async fn run(as_json: bool, file: Option<&Path>) -> Result<(), OperatorError> {
    on_database(file, async |_, pool| act(as_json, &pool).await).await
}

async fn act(as_json: bool, pool: &PgPool) -> Result<(), OperatorError> {
    tables::require_tables(pool).await?;
    let mut connection = pool.acquire().await?;
    let (_, theirs) = sign_of_life::read(&mut connection).await?;
    let ours = Utc::now();
    if (theirs - ours).abs() > APART {
        return Err(OperatorError::Argument(format!(
            "the database's clock says {}, and this machine's {}: correct the wrong one, and try again",
            iso8601(theirs),
            iso8601(ours)
        )));
    }
    let (last, now) = sign_of_life::trust(&mut connection).await?;
    let was_held = last.held_since.is_some();
    if as_json {
        println!(
            "{}",
            json!({ "trusted_at": iso8601(now), "was_held": was_held })
        );
    } else if was_held {
        println!(
            "The database's clock, {}, is trusted: gateways delete what is older than it is kept, from the next minute on.",
            iso8601(now)
        );
    } else {
        println!(
            "Nothing was held back. The database's clock, {}, is trusted.",
            iso8601(now)
        );
    }
    Ok(())
}
