//! Headers that only receivers' servers write. They are removed from a submitted message, where they can't be genuine;
//! one covered by the client's own signature can't be removed, since the signature would break.

use super::fields::Field;
use crate::compose::is_of_receivers;

/// Whether a `DKIM-Signature` of the message covers such a header that is there (RFC 6376 §3.5, `h=`). The signature
/// isn't verified: receivers will do that.
pub(super) fn is_signed(fields: &[Field<'_>]) -> bool {
    let name = |field: &Field<'_>| String::from_utf8_lossy(field.name).to_ascii_lowercase();
    let there: Vec<String> = fields
        .iter()
        .map(name)
        .filter(|name| is_of_receivers(name))
        .collect();
    !there.is_empty()
        && fields
            .iter()
            .filter(|field| field.is_named("dkim-signature"))
            .any(|field| signed(field.value).iter().any(|name| there.contains(name)))
}

/// The names in the tag `h=` of a signature, in lower case.
fn signed(value: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    let text: String = text.split_ascii_whitespace().collect();
    text.split(';')
        .filter_map(|tag| tag.strip_prefix("h="))
        .flat_map(|names| names.split(':'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fields::fields;
    use super::*;

    #[test]
    fn what_a_signature_covers() {
        for (headers, expected) in [
            ("Authentication-Results: x\r\n", false),
            (
                "DKIM-Signature: v=1; h=From:Authentication-Results\r\n",
                false,
            ),
            (
                "DKIM-Signature: v=1; h=From; b=x\r\nAuthentication-Results: x\r\n",
                false,
            ),
            (
                "DKIM-Signature: v=1; h=From:To; b=h=return-path\r\nReturn-Path: x\r\n",
                false,
            ),
            (
                "DKIM-Signature: v=1; h=From:authentication-results;\r\nAuthentication-Results: x\r\n",
                true,
            ),
            (
                "Return-Path: x\r\ndkim-signature:v=1;\r\n h = from : to\r\n\t: RETURN-\r\n PATH ;b=x\r\n",
                true,
            ),
            (
                "DKIM-Signature: h=from\r\nDKIM-Signature: h=arc-seal\r\nARC-Seal : x\r\n",
                true,
            ),
        ] {
            let whole = format!("From: a@b.example\r\n{headers}\r\n");
            let fields = fields(whole.as_bytes()).unwrap_or_default();
            assert_eq!(is_signed(&fields), expected, "{headers}");
        }
    }
}
