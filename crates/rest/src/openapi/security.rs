//! An operation's credentials in the description.

use utoipa::openapi::path::Operation;

/// The roles that an operation requires of a credential; `None` if it doesn't accept it. In `OpenAPI` 3.1 a security
/// requirement lists the required roles, whatever its scheme.
pub(crate) fn roles(operation: &Operation, scheme: &str) -> Option<Vec<String>> {
    let security = serde_json::to_value(&operation.security).ok()?;
    let mut requirements = security.as_array()?.iter();
    let roles = requirements.find_map(|requirement| requirement.get(scheme))?;
    serde_json::from_value(roles.clone()).ok()
}
