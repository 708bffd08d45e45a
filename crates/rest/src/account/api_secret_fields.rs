//! The fields of additional API secrets, in requests and responses.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::field::{Field, List};
use crate::http::problem::{FieldError, Problem};
use crate::http::values::{checked_expiry, checked_list, checked_name};
use mailgate_domain::accounts::{ApiSecretRow, NewApiSecret};
use mailgate_types::expires_at::Expiry;
use mailgate_types::moment::iso8601;
use mailgate_types::scope::Scope;

/// Entries of `scopes` that are read.
const MOST_SCOPES: usize = 100;

/// A new API secret.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct CreateApiSecretRequest {
    /// What the secret is for.
    #[schema(value_type = String, required, min_length = 1, max_length = 255, example = "Reporting", pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    name: Field<String>,
    /// The secret's scopes; duplicates count once.
    #[schema(value_type = Vec<Scope>, required, min_items = 1, max_items = 100, example = json!(["apps:read", "logs:read"]))]
    scopes: Field<List<String>>,
    /// When it expires: RFC 3339 with an offset, up to ten years ahead. Never, if omitted or empty.
    #[schema(value_type = Option<String>, max_length = 100, example = "2027-11-02T09:30:00Z")]
    expires_at: Field<String>,
}

/// An additional API secret, without its value.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApiSecretItem {
    /// `asec_…`
    #[schema(example = "asec_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// What the secret is for.
    #[schema(example = "Reporting")]
    name: String,
    /// The secret's scopes.
    #[schema(value_type = Vec<Scope>, example = json!(["apps:read", "logs:read"]))]
    scopes: Vec<Scope>,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was last used, to within about a minute, ISO 8601, UTC; null if it was never used.
    #[schema(format = DateTime, required, example = "2026-11-02T09:30:00.000Z")]
    last_used_at: Option<String>,
    /// When it expires, ISO 8601, UTC; null if never.
    #[schema(format = DateTime, required, example = "2027-11-02T09:30:00.000Z")]
    expires_at: Option<String>,
}

/// The additional API secrets.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApiSecretList {
    /// Oldest first.
    pub(crate) api_secrets: Vec<ApiSecretItem>,
}

/// A new API secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedApiSecret {
    #[serde(flatten)]
    pub(crate) item: ApiSecretItem,
    /// `sk_…`: the secret itself, which is shown only in this response.
    pub(crate) api_secret: String,
}

impl ApiSecretItem {
    pub(crate) fn new(secret: ApiSecretRow) -> Self {
        Self {
            id: secret.id.to_string(),
            name: secret.name,
            scopes: secret.scopes,
            created_at: iso8601(secret.created_at),
            last_used_at: secret.last_used_at.map(iso8601),
            expires_at: secret.expires_at.map(iso8601),
        }
    }
}

impl CreateApiSecretRequest {
    pub(crate) fn validate(self, now: DateTime<Utc>) -> Result<NewApiSecret, Problem> {
        let mut errors = Vec::new();
        let name = self.name.required("name", &mut errors);
        let name = checked_name("name", name, &mut errors);
        let scopes = checked_scopes(self.scopes, &mut errors);
        let expires_at = checked_expiry(self.expires_at, now, &mut errors);
        match (name, scopes) {
            (Some(name), Some(scopes)) if errors.is_empty() => Ok(NewApiSecret {
                name,
                scopes,
                expires_at: expires_at.and_then(Expiry::time),
            }),
            _ => Err(Problem::fields(errors)),
        }
    }
}

fn checked_scopes(given: Field<List<String>>, errors: &mut Vec<FieldError>) -> Option<Vec<Scope>> {
    let list = given.required("scopes", errors);
    let mut scopes = checked_list("scopes", list, MOST_SCOPES, str::parse, errors)?;
    if scopes.is_empty() && errors.is_empty() {
        errors.push(FieldError::new("scopes", "must name at least one scope"));
    }
    scopes.sort_unstable();
    scopes.dedup();
    Some(scopes)
}
