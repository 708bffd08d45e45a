//! The fuzz target of Gmail's responses.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use serde::de::DeserializeOwned;

use super::super::message::{Metadata, Whole, header_block};
use super::super::new_mail::{HistoryPage, Profile};
use super::super::send_as::accepted;
use super::{MessagePage, is_searchable, verdict};
use crate::answer::ProviderResponse;
use crate::answer::fuzzing::{answer, is_told, moment};
use crate::mail::aliases::fuzzing::check_kept;
use crate::mail::reader::ReadError;
use crate::mail::received::BOUNCE_BYTES;
use crate::mail::received::fuzzing::check_block;
use crate::mail::verdict::Verdict;
use mailgate_types::fuzzing::Input;

/// Any response, wherever one is expected.
pub fn gmail_answers(data: &[u8]) {
    let mut input = Input::new(data);
    let now = moment(&mut input);
    let answer = answer(&mut input, now);
    let is_success = (200..300).contains(&answer.status);
    match verdict::sent(&answer, now) {
        Verdict::Sent { .. } => assert!(is_success),
        Verdict::Unknown(failure) => assert!(is_told(&failure.text)),
        Verdict::Temporary {
            failure,
            retry_after,
        } => {
            assert!(!is_success && is_told(&failure.text));
            assert!(retry_after.is_none_or(|wait| wait.as_secs() <= 86_400));
        }
        Verdict::Permanent(failure)
        | Verdict::SenderRefused(failure)
        | Verdict::TokenRefused(failure) => {
            assert!((400..500).contains(&answer.status) && is_told(&failure.text));
        }
    }
    match verdict::not_read(&answer, now) {
        ReadError::TokenRefused(text)
        | ReadError::Unexplained(text)
        | ReadError::Forbidden(text)
        | ReadError::Unavailable { text, .. } => assert!(is_told(&text), "{text:?}"),
    }
    let _ = (read::<Profile>(&answer), read::<HistoryPage>(&answer));
    for listed in read::<MessagePage>(&answer)
        .into_iter()
        .flat_map(|page| page.messages)
    {
        if is_searchable(&listed.id) {
            assert!(!listed.id.contains([' ', '"', '(', ')', '\r', '\n']));
        }
    }
    check_kept(&accepted(answer.body.clone()).unwrap_or_default());
    if let Some(whole) = read::<Whole>(&answer) {
        assert!(whole.beginning().len() < BOUNCE_BYTES + 3);
    }
    if let Some(message) = read::<Metadata>(&answer) {
        check_block(&header_block(&message.payload.headers));
    }
}

fn read<T: DeserializeOwned>(answer: &ProviderResponse) -> Option<T> {
    serde_json::from_value(answer.body.clone()).ok()
}
