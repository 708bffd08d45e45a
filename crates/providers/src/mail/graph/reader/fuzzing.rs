//! The fuzz target of Graph's responses.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use std::time::Duration;

use super::Copies;
use super::entry::{Entry, Page, header_block};
use super::refusal::{is_final, refused};
use crate::answer::fuzzing::{client, is_told};
use crate::mail::graph::api::{Api, GraphResponse};
use crate::mail::graph::verdict::{Stage, Words, of_answer};
use crate::mail::reader::ReadError;
use crate::mail::received::fuzzing::check_block;
use crate::mail::verdict::Verdict;
use mailgate_types::fuzzing::Input;

/// Any response, wherever one is expected.
pub fn graph_answers(data: &[u8]) {
    let mut input = Input::new(data);
    let status = 100 + u16::try_from(input.number() % 500).unwrap_or_default();
    let retry_after = match input.byte() {
        0 => None,
        seconds => Some(Duration::from_secs(seconds.into())),
    };
    let answer = GraphResponse {
        status,
        retry_after,
        body: input.rest().to_vec(),
    };
    for stage in [Stage::Preparation, Stage::Upload, Stage::Submission] {
        match of_answer(stage, &answer) {
            Verdict::Sent { .. } => unreachable!("only the awaited answer is a success"),
            // Nothing has been sent before the submission.
            Verdict::Unknown(failure) => {
                assert!(stage == Stage::Submission && is_told(&failure.text));
            }
            Verdict::Temporary { failure, .. }
            | Verdict::Permanent(failure)
            | Verdict::SenderRefused(failure)
            | Verdict::TokenRefused(failure) => assert!(is_told(&failure.text)),
        }
    }
    match refused(&answer) {
        ReadError::TokenRefused(text)
        | ReadError::Unexplained(text)
        | ReadError::Forbidden(text)
        | ReadError::Unavailable { text, .. } => assert!(is_told(&text), "{text:?}"),
    }
    assert!(!is_final(&answer) || !matches!(status, 401 | 429));
    assert!(is_told(&Words::read(&answer.body).tell(status)));
    let _ = answer.json();
    let _: Option<Copies> = serde_json::from_slice(&answer.body).ok();
    if let Ok(page) = serde_json::from_slice::<Page>(&answer.body) {
        for address in page.next.iter().chain(&page.delta) {
            API.with(|api| where_it_leads(api, address));
        }
        for entry in &page.value {
            check_block(&header_block(entry));
        }
    }
    if let Ok(entry) = serde_json::from_slice::<Entry>(&answer.body) {
        check_block(&header_block(&entry));
    }
}

thread_local! {
    static API: Api = Api::new(client(), "https://graph.example");
}

/// The token is sent only to Graph, and no message is sent in clear.
fn where_it_leads(api: &Api, address: &str) {
    let url = url::Url::parse(address).ok();
    if api.is_own(address) {
        let host = url.as_ref().and_then(url::Url::host_str);
        assert_eq!(host, Some("graph.example"), "{address}");
        assert!(api.may_upload_to(address));
    }
    if api.may_upload_to(address) {
        assert!(url.is_some_and(|url| url.scheme() == "https"), "{address}");
    }
}
