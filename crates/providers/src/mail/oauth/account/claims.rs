//! The claims about an account, and the address among them that the provider vouches for.

use serde_json::Value;

use super::super::OAuthError;
use super::super::response::{Fields, names, text};
use mailgate_settings::ProviderKind;

/// An account's claims, from a userinfo endpoint, Graph's `/me` or an id token.
#[derive(Debug)]
pub(super) struct Claims {
    email: Option<String>,
    pub(super) email_verified: Option<bool>,
    /// Microsoft: the domain of `email` is verified as the tenant's.
    pub(super) xms_edov: Option<bool>,
    pub(super) preferred_username: Option<String>,
    mail: Option<String>,
    pub(super) user_principal_name: Option<String>,
    /// None for accounts without a directory.
    pub(super) proxy_addresses: Option<Vec<String>>,
    /// The names of all fields, for the error about a missing one.
    names: String,
}

/// The claim with the address: the field in the settings, or the usual ones if the settings name none.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressField<'a>(pub(super) &'a str);

impl AddressField<'_> {
    fn is_usual(self) -> bool {
        self.0.is_empty()
    }

    /// The missing field, for the error.
    fn name(self) -> String {
        let name = if self.is_usual() { "email" } else { self.0 };
        name.to_owned()
    }
}

impl Claims {
    pub(super) fn of(fields: &Fields, field: AddressField<'_>) -> Self {
        let address = |found: Option<&str>| found.map(|text| text.trim().to_owned());
        let email = if field.is_usual() {
            text(fields, "email")
        } else {
            at(fields, field.0).and_then(Value::as_str)
        };
        Self {
            email: address(email.filter(|email| !email.trim().is_empty())),
            email_verified: flag(fields, "email_verified"),
            xms_edov: flag(fields, "xms_edov"),
            preferred_username: address(text(fields, "preferred_username")),
            // A configured field has no substitute.
            mail: address(text(fields, "mail").filter(|_| field.is_usual())),
            user_principal_name: address(text(fields, "userPrincipalName")),
            proxy_addresses: (fields.get("proxyAddresses"))
                .and_then(Value::as_array)
                .map(|entries| entries.iter().filter_map(Value::as_str))
                .map(|entries| entries.map(str::to_owned).collect()),
            names: names(fields),
        }
    }

    /// The directory's `smtp:` entries. `SMTP:` marks the primary one.
    pub(super) fn proxies(&self) -> Vec<String> {
        let entries = self.proxy_addresses.iter().flatten();
        let addresses = entries.filter_map(|entry| {
            let (kind, address) = entry.split_once(':')?;
            kind.eq_ignore_ascii_case("smtp").then_some(address)
        });
        addresses.map(str::to_owned).collect()
    }

    pub(super) fn address(
        self,
        kind: ProviderKind,
        field: AddressField<'_>,
    ) -> Result<String, OAuthError> {
        let proxies = self.proxies();
        let lacks = |fields| OAuthError::Lacks {
            what: field.name(),
            fields,
        };
        // Microsoft's users may write anything into `mail` and `email`, but not into their sign-in name.
        let name = self.user_principal_name.or(self.preferred_username);
        if let (ProviderKind::Microsoft, Some(name)) = (kind, name) {
            let is_theirs = |address: &String| {
                let mut names = proxies.iter().chain(std::iter::once(&name));
                names.any(|known| known.eq_ignore_ascii_case(address))
            };
            let is_vouched = [self.email_verified, self.xms_edov].contains(&Some(true));
            let email = self.email.filter(|_| is_vouched);
            let chosen = email.or(self.mail.filter(is_theirs)).unwrap_or(name);
            // A sign-in name that isn't an address is of no use.
            if chosen.contains('@') {
                return Ok(chosen);
            }
            return Err(lacks(self.names));
        }
        if self.email_verified == Some(false) {
            return Err(OAuthError::Unverified);
        }
        self.email.or(self.mail).ok_or_else(|| lacks(self.names))
    }
}

/// A flag, which some providers send as a string or a number; an unreadable one isn't set.
fn flag(fields: &Fields, name: &str) -> Option<bool> {
    Some(match fields.get(name)? {
        Value::Null => return None,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_i64().is_some_and(|number| number != 0),
        Value::String(text) => ["true", "1"]
            .iter()
            .any(|set| text.trim().eq_ignore_ascii_case(set)),
        Value::Array(_) | Value::Object(_) => false,
    })
}

/// The value at a path of names and positions, separated by dots. A name may contain dots, as some claims do.
fn at<'a>(fields: &'a Fields, path: &str) -> Option<&'a Value> {
    fields.get(path).or_else(|| {
        let (name, rest) = path.split_once('.')?;
        within(fields.get(name)?, rest)
    })
}

fn within<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => at(fields, path),
        Value::Array(entries) => match path.split_once('.') {
            Some((position, rest)) => within(entries.get(position.parse::<usize>().ok()?)?, rest),
            None => entries.get(path.parse::<usize>().ok()?),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const UPN: [&str; 2] = ["userPrincipalName", "preferred_username"];

    #[test]
    fn the_address_that_the_provider_vouches_for() {
        for (claims, expected) in [
            (json!({"email": "a@x.example"}), Some("a@x.example")),
            (
                json!({"email": "a@x.example", "email_verified": true}),
                Some("a@x.example"),
            ),
            (
                json!({"email": "a@x.example", "email_verified": false}),
                None,
            ),
            (
                json!({"email": "a@x.example", "email_verified": "false"}),
                None,
            ),
            (json!({"sub": "1"}), None),
            (
                json!({"email": " a@x.example\n", "email_verified": " true "}),
                Some("a@x.example"),
            ),
            (json!({"email": ["a@x.example"]}), None),
            (
                json!({"email": " ", "mail": "a@x.example"}),
                Some("a@x.example"),
            ),
            (json!({"email": "a@x.example", "email_verified": {}}), None),
            (
                json!({"email": "a@x.example", "email_verified": null}),
                Some("a@x.example"),
            ),
            // Microsoft: claims that a tenant's administrator can write are not trusted.
            (
                json!({"preferred_username": "eve@eve.example", "email": "victim@x.example"}),
                Some("eve@eve.example"),
            ),
            (
                json!({"preferred_username": "a@x.onmicrosoft.example", "email": "a@x.example",
                       "xms_edov": 1}),
                Some("a@x.example"),
            ),
            (
                json!({"userPrincipalName": "eve@eve.example", "mail": "victim@x.example"}),
                Some("eve@eve.example"),
            ),
            (
                json!({"userPrincipalName": "a@x.onmicrosoft.example", "mail": "a@x.example",
                       "proxyAddresses": ["smtp:b@x.example", "SMTP:A@x.example"]}),
                Some("a@x.example"),
            ),
            (
                json!({"userPrincipalName": "a@x.example", "mail": null, "proxyAddresses": null}),
                Some("a@x.example"),
            ),
            (json!({"preferred_username": "ada"}), None),
        ] {
            let read = claims
                .as_object()
                .map(|it| Claims::of(it, AddressField("")));
            let kind = if UPN.iter().any(|name| claims.get(name).is_some()) {
                ProviderKind::Microsoft
            } else {
                ProviderKind::Generic
            };
            let address = read.and_then(|read| read.address(kind, AddressField("")).ok());
            assert_eq!(address.as_deref(), expected, "{claims}");
        }
    }

    // SocialiteProviders/Yandex#1, grafana/grafana#15311: the address is in another field.
    #[test]
    fn the_address_stands_where_the_settings_say() {
        let yandex = json!({
            "id": "1", "login": "ada", "default_email": " ada@x.example ",
            "emails": ["ada@x.example", "ada@y.example"],
        });
        let nested = json!({
            "email": "other@x.example",
            "data": { "user": { "mail": "ada@x.example" }, "emails": [{ "value": "ada@y.example" }] },
            "https://x.example/email": "ada@z.example",
            "dotted.name": "ada@w.example",
            "number": 7, "empty": " ",
        });
        for (claims, field, expected) in [
            (&yandex, "default_email", Ok("ada@x.example")),
            (&yandex, "emails.1", Ok("ada@y.example")),
            (
                &yandex,
                "",
                Err("email; its fields: default_email, emails, id, login"),
            ),
            (
                &yandex,
                "emails.2",
                Err("emails.2; its fields: default_email, emails, id, login"),
            ),
            (&nested, "data.user.mail", Ok("ada@x.example")),
            (&nested, "data.emails.0.value", Ok("ada@y.example")),
            (&nested, "https://x.example/email", Ok("ada@z.example")),
            (&nested, "dotted.name", Ok("ada@w.example")),
            (&nested, "", Ok("other@x.example")),
            (&nested, "number", Err("number; ")),
            (&nested, "empty", Err("empty; ")),
            (&nested, "data", Err("data; ")),
            (&nested, "data.", Err("data.; ")),
            (&nested, "data.emails.-1", Err("data.emails.-1; ")),
            (&nested, "email.x", Err("email.x; ")),
        ] {
            let field = AddressField(field);
            let read = claims.as_object().map(|it| Claims::of(it, field));
            let address = read.map(|it| it.address(ProviderKind::Generic, field));
            match (address, expected) {
                (Some(Ok(address)), Ok(expected)) => assert_eq!(address, expected),
                (Some(Err(error)), Err(expected)) => {
                    let error = error.to_string();
                    assert!(
                        error.contains(expected) && !error.contains("@x.ex"),
                        "{error}"
                    );
                }
                (found, _) => panic!("{field:?}: {found:?}"),
            }
        }
    }
}
