//! The parameters of a request: form-encoded, with brackets for nesting (`items[0][quantity]=2`). An operation takes
//! its own parameters, and rejects the rest before it changes anything.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::objects::Metadata;
use super::refusal::Refusal;

/// Longest accepted value, in bytes.
const VALUE_MAX: usize = 5_000;

/// The parameters that have not been taken yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameters {
    values: BTreeMap<String, String>,
    /// The API version of the request.
    pub(super) version: String,
    /// The fields whose ids are expanded to objects in the response.
    pub(super) expand: Vec<String>,
}

impl Parameters {
    /// Parses a query and a form; the last value of a repeated parameter counts.
    pub(super) fn parse(query: &str, body: &[u8]) -> Result<Self, Refusal> {
        let mut parameters = Self::default();
        let pairs =
            url::form_urlencoded::parse(query.as_bytes()).chain(url::form_urlencoded::parse(body));
        for (name, value) in pairs {
            if value.len() > VALUE_MAX {
                let text = format!("Invalid string: {name} must be at most {VALUE_MAX} characters");
                return Err(Refusal::parameter(&name, "parameter_invalid_string", text));
            }
            if name.starts_with("expand[") {
                parameters.expand.push(value.into_owned());
            } else {
                parameters
                    .values
                    .insert(name.into_owned(), value.into_owned());
            }
        }
        Ok(parameters)
    }

    /// The part that must be equal for two requests with the same idempotency key.
    pub(super) fn fingerprint(&self) -> String {
        url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&self.values)
            .finish()
    }

    /// A string; `Some("")` if the parameter is empty.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.values.remove(name)
    }

    /// A required string.
    pub(super) fn required(&mut self, name: &str) -> Result<String, Refusal> {
        self.text(name)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| {
                let message = format!("Missing required param: {name}.");
                Refusal::parameter(name, "parameter_missing", message)
            })
    }

    /// A number.
    pub(super) fn number<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Refusal> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    let message = format!("Invalid integer: {text}");
                    Refusal::parameter(name, "parameter_invalid_integer", message)
                })
            })
            .transpose()
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    let message = format!("Invalid boolean: {text}");
                    Refusal::parameter(name, "parameter_invalid_boolean", message)
                })
            })
            .transpose()
    }

    /// One of several choices.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| Some(*choice)).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("Invalid {name}: must be one of {}", words.join(", "));
            Refusal::parameter(name, "parameter_invalid_enum", message)
        })
    }

    /// `metadata[…]`.
    pub(super) fn metadata(&mut self) -> Metadata {
        self.within("metadata")
    }

    /// All of `name[…]`, by the keys in the brackets.
    pub(super) fn within(&mut self, name: &str) -> BTreeMap<String, String> {
        let prefix = format!("{name}[");
        let (inner, outer) = std::mem::take(&mut self.values)
            .into_iter()
            .partition(|(key, _)| key.starts_with(&prefix));
        self.values = outer;
        let inner: BTreeMap<String, String> = inner;
        inner
            .into_iter()
            .map(|(key, value)| {
                let key = key[prefix.len()..].trim_end_matches(']').to_owned();
                (key, value)
            })
            .collect()
    }

    /// Rejects the parameters that were not taken.
    pub(super) fn done(&self) -> Result<(), Refusal> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(name) => Err(Refusal::parameter(
                name,
                "parameter_unknown",
                format!("Received unknown parameter: {name}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn brackets_numbers_and_what_is_left() {
        let mut parameters = Parameters::parse(
            "limit=3&expand[]=a.b&expand[1]=c",
            b"items%5B0%5D%5Bquantity%5D=2&metadata[x]=1+2&metadata[y]=&flag=true&odd=x",
        )
        .unwrap();
        assert_eq!(parameters.number::<u32>("limit").unwrap(), Some(3));
        assert_eq!(
            parameters.number::<u32>("items[0][quantity]").unwrap(),
            Some(2)
        );
        assert_eq!(parameters.expand, ["a.b", "c"]);
        let metadata = parameters.metadata();
        assert_eq!(metadata["x"], "1 2");
        assert_eq!(metadata["y"], "");
        assert_eq!(parameters.flag("flag").unwrap(), Some(true));
        let left = parameters.done().unwrap_err().body();
        assert_eq!(left["error"]["code"], "parameter_unknown");
        assert_eq!(left["error"]["param"], "odd");
        assert!(parameters.number::<u32>("odd").is_err());
        assert!(parameters.done().is_ok());
        let missing = parameters.required("customer").unwrap_err().body();
        assert_eq!(missing["error"]["code"], "parameter_missing");
    }

    #[test]
    fn a_value_has_its_bounds() {
        let long = format!("a={}", "x".repeat(VALUE_MAX + 1));
        assert!(Parameters::parse(&long, b"").is_err());
    }
}
