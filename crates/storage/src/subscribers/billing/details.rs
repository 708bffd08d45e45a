//! What the payment provider said of a subscription beside its status, for pages.

use sqlx::PgConnection;

use mailgate_types::billing_details::BillingDetails;
use mailgate_types::ids::SubscriberId;

/// Stores it; an unchanged one writes nothing.
pub async fn store(
    connection: &mut PgConnection,
    id: SubscriberId,
    details: &BillingDetails,
) -> Result<(), sqlx::Error> {
    let data = serde_json::to_value(details).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query!(
        "UPDATE subscribers SET payprov_details = $2
         WHERE id = $1 AND payprov_details IS DISTINCT FROM $2",
        id.0,
        data,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// As it was last stored; `None` if it wasn't, or another release wrote it in another shape.
pub async fn find(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<BillingDetails>, sqlx::Error> {
    let data = sqlx::query_scalar!(
        "SELECT payprov_details FROM subscribers WHERE id = $1",
        id.0
    )
    .fetch_optional(connection)
    .await?;
    Ok(data
        .flatten()
        .and_then(|data| serde_json::from_value(data).ok()))
}
