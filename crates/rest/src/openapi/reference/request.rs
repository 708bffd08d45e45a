//! An operation's request as a line for a shell. What only the reader knows stands in variables.

use super::credential::Credential;

/// What a request consists of.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) base_url: &'a str,
    pub(super) path: &'a str,
    /// The names of required parameters.
    pub(super) query: Vec<&'a str>,
    pub(super) headers: Vec<&'a str>,
    pub(super) credential: Option<&'a Credential>,
    /// JSON, or empty.
    pub(super) body: &'a str,
}

impl Request<'_> {
    /// The command.
    pub(super) fn curl(&self) -> String {
        let mut url = format!("{}{}", self.base_url, path(self.path));
        for (number, name) in self.query.iter().enumerate() {
            let sign = if number == 0 { '?' } else { '&' };
            url = format!("{url}{sign}{name}=${}", variable(name));
        }
        let mut parts = vec![match self.method {
            "get" => format!("curl \"{url}\""),
            method => format!("curl -X {} \"{url}\"", method.to_uppercase()),
        }];
        let header = |name: &str, variable: &str| format!("-H \"{name}: ${variable}\"");
        if let Some(credential) = self.credential {
            parts.push(header(&credential.header, credential.variable));
        }
        for name in &self.headers {
            parts.push(header(name, &variable(name)));
        }
        if !self.body.is_empty() {
            parts.push("-H \"Content-Type: application/json\"".to_owned());
            parts.push(format!("-d '{}'", self.body.replace('\'', "'\\''")));
        }
        parts.join(" \\\n  ")
    }
}

/// A path with variables in place of its parameters.
fn path(path: &str) -> String {
    let segments = path.split('/').map(|segment| {
        let name = segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        name.map_or_else(|| segment.to_owned(), |name| format!("${}", variable(name)))
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The variable for a parameter: `PUSHABLE_KEY`.
fn variable(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}
