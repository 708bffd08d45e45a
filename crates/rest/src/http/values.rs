//! Values in JSON bodies that several rooms read: names, email addresses, expiry times, lists.

use std::fmt::Display;

use chrono::{DateTime, Utc};

use super::field::{Field, List};
use super::problem::{FieldError, take};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::expires_at::{Expiry, parse_expires_at};
use mailgate_types::name::check_name;

/// A name that a subscriber chooses.
pub(crate) fn checked_name(
    field: &'static str,
    text: Option<String>,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    take(errors, field, text, |text| {
        check_name(text).map(|()| text.to_owned())
    })
}

/// One email address, without quotes: it is shown in mails to others.
pub(crate) fn checked_email(
    field: &'static str,
    text: Option<String>,
    errors: &mut Vec<FieldError>,
) -> Option<EmailAddress> {
    take(errors, field, text, |text| {
        let parsed = EmailAddress::parse(text).ok();
        let parsed = parsed.filter(EmailAddress::is_plain);
        parsed.ok_or("must be one email address, without quotation marks")
    })
}

/// A future time, or an empty string for never.
pub(crate) fn checked_expiry(
    given: Field<String>,
    now: DateTime<Utc>,
    errors: &mut Vec<FieldError>,
) -> Option<Expiry> {
    let text = given.optional("expires_at", errors);
    take(errors, "expires_at", text, |text| match text {
        "" => Ok(Expiry::Never),
        text => parse_expires_at(text, now).map(Expiry::At),
    })
}

/// Parses every element of a list of at most `most`; reports each invalid one.
pub(crate) fn checked_list<T, E: Display>(
    field: &'static str,
    list: Option<List<String>>,
    most: usize,
    read: impl Fn(&str) -> Result<T, E>,
    errors: &mut Vec<FieldError>,
) -> Option<Vec<T>> {
    let list = list?;
    if list.length > most {
        errors.push(FieldError::new(
            field,
            format!("must have at most {most} entries"),
        ));
        return None;
    }
    let mut values = Vec::new();
    for (index, element) in list.kept.into_iter().enumerate() {
        let name = format!("{field}[{index}]");
        let Some(text) = element.element(name.clone(), errors) else {
            continue;
        };
        match read(&text) {
            Ok(value) => values.push(value),
            Err(error) => errors.push(FieldError::new(name, error.to_string())),
        }
    }
    Some(values)
}
