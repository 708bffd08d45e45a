//! Names and email addresses in JSON bodies.

use super::problem::FieldError;
use super::query::take;
use mailgate_types::email_address::EmailAddress;
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
