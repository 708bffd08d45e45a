//! Reply codes (RFC 5321 §4.2.3), which say least.

use super::super::catalogue::{
    BAD_ADDRESS, BUSY, INCOMPATIBLE, MAILBOX_UNAVAILABLE, NO_SUCH_ADDRESS, TOKEN_REFUSED, TOO_LARGE,
};
use super::super::general::ODD_ANSWER;
use super::super::rule::Rule;

/// The rule for a code by itself; 554 says only that something failed.
pub(super) fn alone(code: u16) -> Option<&'static Rule> {
    Some(match code {
        421 | 451 | 452 | 454 => &BUSY,
        450 | 550 => &MAILBOX_UNAVAILABLE,
        500..=504 => &INCOMPATIBLE,
        530 | 535 => &TOKEN_REFUSED,
        551 => &NO_SUCH_ADDRESS,
        552 => &TOO_LARGE,
        553 => &BAD_ADDRESS,
        ..400 => &ODD_ANSWER,
        _ => return None,
    })
}
