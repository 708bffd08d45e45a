//! The parameters after the paths of MAIL and RCPT (RFC 5321 §4.1.2, esmtp-param).

use super::reply::Reply;

/// The parameters of a MAIL command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailParameters {
    /// SIZE= in octets (RFC 1870).
    pub size: Option<u64>,
    /// BODY=8BITMIME (RFC 6152).
    pub body_8bit: bool,
    /// SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
}

impl MailParameters {
    /// Parses the text after the reverse-path. AUTH= (RFC 4954 §5) is accepted and ignored: who may send depends on the
    /// session's own authentication.
    ///
    /// # Errors
    ///
    /// The refusal: 555 for an unsupported parameter, 501 for an invalid value or a duplicate parameter.
    pub fn parse(text: &str) -> Result<Self, Reply> {
        let mut parameters = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for word in words(text) {
            let (keyword, value) = split(word)?;
            let keyword = keyword.to_ascii_uppercase();
            match (keyword.as_str(), value) {
                ("SIZE", Some(value)) => parameters.size = Some(size(value)?),
                ("BODY", Some(value)) if value.eq_ignore_ascii_case("8BITMIME") => {
                    parameters.body_8bit = true;
                }
                ("BODY", Some(value)) if value.eq_ignore_ascii_case("7BIT") => {}
                ("BODY", _) => {
                    return Err(Reply::new(501, "5.5.4", "BODY must be 7BIT or 8BITMIME"));
                }
                ("SMTPUTF8", None) => parameters.smtputf8 = true,
                ("AUTH", Some(_)) => {}
                ("SIZE" | "AUTH", None) => return Err(invalid("This parameter needs a value")),
                ("SMTPUTF8", Some(_)) => return Err(invalid("SMTPUTF8 takes no value")),
                _ => return Err(unrecognised()),
            }
            if seen.contains(&keyword) {
                return Err(invalid("A parameter was given twice"));
            }
            seen.push(keyword);
        }
        Ok(parameters)
    }
}

/// Checks the text after the forward-path: none of the offered extensions has a parameter for RCPT.
///
/// # Errors
///
/// The refusal: 555 for any parameter, 501 for anything else.
pub fn refuse_recipient_parameters(text: &str) -> Result<(), Reply> {
    words(text).next().map_or(Ok(()), |word| {
        split(word)?;
        Err(unrecognised())
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

/// esmtp-param: a keyword, and a value of printable ASCII without `=`.
fn split(word: &str) -> Result<(&str, Option<&str>), Reply> {
    let (keyword, value) = match word.split_once('=') {
        Some((keyword, value)) => (keyword, Some(value)),
        None => (word, None),
    };
    let keyword_fits = keyword.starts_with(|first: char| first.is_ascii_alphanumeric())
        && keyword
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let value_fits = value.is_none_or(|value| {
        !value.is_empty()
            && value
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'=')
    });
    if keyword_fits && value_fits {
        Ok((keyword, value))
    } else {
        Err(invalid("Syntax: SP keyword[=value]"))
    }
}

fn size(value: &str) -> Result<u64, Reply> {
    // `parse` alone would accept a sign.
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.parse().map_err(|_| invalid("SIZE is out of range"))
    } else {
        Err(invalid("SIZE must be a number"))
    }
}

fn invalid(text: &str) -> Reply {
    Reply::new(501, "5.5.4", text)
}

fn unrecognised() -> Reply {
    Reply::new(555, "5.5.4", "Parameter not recognized or not offered")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_mail() {
        let none = MailParameters::default();
        for (text, expected) in [
            ("", none.clone()),
            ("  ", none.clone()),
            (" BODY=7BIT", none.clone()),
            (" AUTH=<>", none.clone()),
            (" AUTH=e+3Dmc2@example.com", none.clone()),
            (
                " size=0  body=8bitmime SmtpUtf8",
                MailParameters {
                    size: Some(0),
                    body_8bit: true,
                    smtputf8: true,
                },
            ),
            (
                " SIZE=18446744073709551615",
                MailParameters {
                    size: Some(u64::MAX),
                    ..none.clone()
                },
            ),
        ] {
            assert_eq!(MailParameters::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refused_parameters_of_mail() {
        for (text, code) in [
            (" SIZE=18446744073709551616", 501),
            (" SIZE=99999999999999999999999", 501),
            (" SIZE=-1", 501),
            (" SIZE=+1", 501),
            (" SIZE=1k", 501),
            (" SIZE=", 501),
            (" SIZE", 501),
            (" SIZE=1=2", 501),
            (" SIZE=1 SIZE=1", 501),
            (" BODY=BINARYMIME", 501),
            (" BODY", 501),
            (" SMTPUTF8=yes", 501),
            (" AUTH", 501),
            (" =x", 501),
            (" -x", 501),
            (" x\u{e9}=1", 501),
            (" x=\u{e9}", 501),
            (" RET=FULL", 555),
            (" ENVID=1", 555),
            (" XYZZY", 555),
        ] {
            let refusal = MailParameters::parse(text).err().map(|reply| reply.code());
            assert_eq!(refusal, Some(code), "{text}");
        }
    }

    #[test]
    fn parameters_of_rcpt() {
        assert_eq!(refuse_recipient_parameters("  "), Ok(()));
        for (text, code) in [
            (" NOTIFY=NEVER", 555),
            (" ORCPT=rfc822;a@b", 555),
            (" =", 501),
        ] {
            let refusal = refuse_recipient_parameters(text)
                .err()
                .map(|reply| reply.code());
            assert_eq!(refusal, Some(code), "{text}");
        }
    }
}
