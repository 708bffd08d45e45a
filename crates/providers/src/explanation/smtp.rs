//! SMTP: replies, and bounces, which have the same codes. The codes are those of RFC 3463 and its registry
//! (<https://www.iana.org/assignments/smtp-enhanced-status-codes>), of Google
//! (<https://support.google.com/a/answer/3726730>) and of Microsoft
//! (<https://learn.microsoft.com/troubleshoot/exchange/email-delivery/ndr/non-delivery-reports-in-exchange-online>).

mod codes;
mod reply_codes;
mod words;

use super::general::GENERAL;
use super::rule::Rule;
use mailgate_bounces::enhanced_code;

/// The rule for a text like `550 5.1.1 …`.
pub(super) fn rule(text: &str) -> Option<&'static Rule> {
    let code = reply_code(text)?;
    Some(known(Some(code), enhanced_code(text).as_deref(), text))
}

/// The rule for a bounce.
pub(super) fn bounced(status: Option<&str>, diagnostic: &str) -> &'static Rule {
    // A status of a class alone has no more information than its class.
    let status = status.filter(|status| !status.ends_with(".0.0"));
    let within = enhanced_code(diagnostic);
    let text = diagnostic
        .strip_prefix("smtp;")
        .unwrap_or(diagnostic)
        .trim_start();
    known(reply_code(text), status.or(within.as_deref()), text)
}

/// The most specific first: codes with words, codes, words, a code's subject, the reply code.
fn known(reply: Option<u16>, enhanced: Option<&str>, text: &str) -> &'static Rule {
    let text = text.to_ascii_lowercase();
    // Without the class: 4.2.2 and 5.2.2 say the same, and what the gateway does next is decided elsewhere.
    let detail = enhanced
        .and_then(|code| code.split_once('.'))
        .map(|(_, detail)| detail);
    let with_words = detail.and_then(|detail| codes::with_words(detail, reply, &text));
    with_words
        .or_else(|| words::certain(&text))
        .or_else(|| detail.and_then(codes::alone))
        .or_else(|| words::usual(&text))
        .or_else(|| detail.and_then(codes::by_subject))
        .or_else(|| reply.and_then(reply_codes::alone))
        .unwrap_or(&GENERAL)
}

/// A reply code at the beginning.
fn reply_code(text: &str) -> Option<u16> {
    let (code, rest) = text.split_at_checked(3)?;
    let is_whole = rest.is_empty() || rest.starts_with([' ', '-']);
    let code = code.parse().ok()?;
    (is_whole && (200..600).contains(&code)).then_some(code)
}
