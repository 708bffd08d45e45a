//! The recipients of a request by their fields, to name those that are refused.

use axum::http::StatusCode;

use crate::compose::Fields;
use crate::rest::problem::{FieldError, Problem};
use mailgate_types::email_address::EmailAddress;

/// Whom a message goes to.
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

    /// 422 with each field whose address is among `suppressed`, in lower case.
    pub(super) fn suppressed(&self, suppressed: &[String]) -> Problem {
        let of_list = |name: &'static str, addresses: &[EmailAddress]| -> Vec<(String, String)> {
            let numbered = addresses.iter().enumerate();
            numbered
                .map(|(index, address)| (format!("{name}[{index}]"), address.lookup_key()))
                .collect()
        };
        let mut named = vec![("to".to_owned(), self.to.lookup_key())];
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
            "Nothing was sent: recipients have bounced for good in the last 30 days, and this app refuses messages to \
             such. Take them out, or delete their suppression.",
        )
        .naming(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_named() {
        let address = |text: &str| EmailAddress::parse(text).unwrap();
        let recipients = Recipients {
            to: address("Bob@example.com"),
            cc: vec![address("c@example.com"), address("d@example.com")],
            bcc: vec![address("bob@Example.com")],
        };
        let suppressed = ["bob@example.com".to_owned(), "d@example.com".to_owned()];
        let failure = recipients.suppressed(&suppressed).failure();
        assert_eq!(failure.fields, "to cc[1] bcc[0]");
        assert_eq!(failure.code, "recipient_suppressed");
    }
}
