//! The recipients of a request by field, to name the suppressed ones.

use axum::http::StatusCode;

use crate::http::problem::{FieldError, Problem};
use mailgate_domain::compose::Fields;
use mailgate_types::email_address::{EmailAddress, comparison_key};

/// A message's recipients.
pub(super) struct Recipients {
    to: EmailAddress,
    cc: Vec<EmailAddress>,
    bcc: Vec<EmailAddress>,
}

impl Recipients {
    pub(super) fn of(fields: &Fields) -> Self {
        Self {
            to: fields.to.clone(),
            cc: fields.cc.clone(),
            bcc: fields.bcc.clone(),
        }
    }

    /// 422 with each field whose address has one of the keys `suppressed`.
    pub(super) fn suppressed(&self, suppressed: &[String]) -> Problem {
        let key = |address: &EmailAddress| comparison_key(address.as_str());
        let of_list = |name: &'static str, addresses: &[EmailAddress]| -> Vec<(String, String)> {
            let numbered = addresses.iter().enumerate();
            numbered
                .map(|(index, address)| (format!("{name}[{index}]"), key(address)))
                .collect()
        };
        let mut named = vec![("to".to_owned(), key(&self.to))];
        named.extend(of_list("cc", &self.cc));
        named.extend(of_list("bcc", &self.bcc));
        let errors: Vec<FieldError> = named
            .into_iter()
            .filter(|(_, address)| suppressed.contains(address))
            .map(|(field, address)| {
                FieldError::new(field, format!("{address} has bounced in the last 30 days"))
            })
            .collect();
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "recipient_suppressed",
            "Nothing was sent: recipients have hard-bounced in the last 30 days, and this app refuses messages to \
            them. Remove them, or delete their suppression.",
        )
        .naming(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_named() {
        let list = |texts: &[&str]| -> Vec<EmailAddress> {
            let parsed = texts.iter().map(|text| EmailAddress::parse(text));
            parsed.filter_map(Result::ok).collect()
        };
        let recipients = list(&["Bob@example.com"]).pop().map(|to| Recipients {
            to,
            cc: list(&["c@example.com", "d@example.com"]),
            bcc: list(&["bob@Example.com"]),
        });
        let suppressed = ["bob@example.com".to_owned(), "d@example.com".to_owned()];
        let failure = recipients.map(|it| it.suppressed(&suppressed).failure());
        let named = failure.map(|it| (it.fields, it.code));
        let expected = ("to cc[1] bcc[0]", "recipient_suppressed");
        assert_eq!(named, Some((expected.0.to_owned(), expected.1.to_owned())));
    }
}
