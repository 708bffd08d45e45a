//! The credentials of an operation: any one of them is enough.

use serde_json::Value;

use super::list;
use super::schema::Schemas;
use super::text::Text;

/// A credential.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) header: String,
    pub(super) text: Text,
    /// The variable of a shell that holds it in examples.
    pub(super) variable: &'static str,
}

/// The credentials of an operation; none if it needs none.
pub(super) fn credentials(schemas: &Schemas, security: &Value) -> Vec<Credential> {
    let named = list(security).filter_map(Value::as_object).flatten();
    named
        .map(|(name, roles)| credential(schemas, name, roles))
        .collect()
}

fn credential(schemas: &Schemas, name: &str, roles: &Value) -> Credential {
    let scheme = schemas.credential(name);
    let role = roles[0].as_str();
    let text = match (name, role) {
        (_, Some("main")) => Text::new("The main API secret"),
        ("api_secret", Some(role)) => Text::new(&format!(
            "The main API secret, or one with the scope `{role}`"
        )),
        _ => Text::of(&scheme["description"]),
    };
    Credential {
        header: scheme["name"].as_str().unwrap_or_default().to_owned(),
        text,
        variable: match name {
            "api_secret" => "MAILGATE_API_SECRET",
            "operator_token" => "MAILGATE_OPERATOR_TOKEN",
            _ => "SEND_KEY",
        },
    }
}
