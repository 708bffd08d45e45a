//! The verdict on a Graph response other than the expected one: a table over the stage, the status, the error code and
//! Retry-After.

use std::time::Duration;

use serde::Deserialize;

use super::api::{CallError, GraphResponse};
use crate::answer::one_line;
use crate::mail::verdict::{Failure, Verdict};

/// How long a mailbox waits once it has reached Exchange's limit of messages or recipients, which is counted over a
/// day.
const MESSAGE_LIMIT_WAIT: Duration = Duration::from_hours(4);

/// The error codes for too many requests, whatever the status.
pub(super) const THROTTLED: [&str; 5] = [
    "ErrorQuotaExceeded",
    "ApplicationThrottled",
    "ErrorServerBusy",
    "MailboxConcurrency",
    "TooManyRequests",
];

/// The stage of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Creating a draft: nothing has been sent, whatever the response.
    Preparation,
    /// Uploading a piece of an attachment, to a URL that takes no token.
    Upload,
    /// Sending the message.
    Submission,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorAnswer {
    error: ErrorBody,
}

/// `{"code": …, "message": …, "innerError": {…}}`, the format of all Graph errors.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorBody {
    code: String,
    message: String,
}

/// The provider's error code and message; empty if it gave none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) code: String,
    message: String,
}

impl Words {
    pub(super) fn read(body: &[u8]) -> Self {
        let answer: ErrorAnswer = serde_json::from_slice(body).unwrap_or_default();
        Self {
            code: one_line(&answer.error.code),
            message: one_line(&answer.error.message),
        }
    }

    /// Whether the code is one of these.
    pub(super) fn says(&self, codes: &[&str]) -> bool {
        codes
            .iter()
            .any(|code| code.eq_ignore_ascii_case(&self.code))
    }

    /// Describes a response in one line.
    pub(super) fn tell(&self, status: u16) -> String {
        let mut text = format!("Microsoft Graph answered {status}");
        if !self.code.is_empty() {
            text = format!("{text} {}", self.code);
        }
        if !self.message.is_empty() {
            text = format!("{text}: {}", self.message);
        }
        text
    }
}

/// Whether the draft to be sent was not found.
pub(super) fn is_unseen(answer: &GraphResponse) -> bool {
    answer.status == 404 && Words::read(&answer.body).says(&["ErrorItemNotFound"])
}

/// The verdict on a response that isn't the success of its stage.
pub(super) fn of_answer(stage: Stage, answer: &GraphResponse) -> Verdict {
    let (status, words) = (answer.status, Words::read(&answer.body));
    let failure = Failure::own(words.tell(status));
    let later = |retry_after| Verdict::Temporary {
        failure: failure.clone(),
        retry_after,
    };
    let retry_after = answer.retry_after;
    // Seen with 400, 403 and 429.
    if (400..500).contains(&status) && words.says(&["ErrorExceededMessageLimit"]) {
        return later(Some(
            retry_after.unwrap_or_default().max(MESSAGE_LIMIT_WAIT),
        ));
    }
    let throttled = words.says(&THROTTLED);
    match (status, stage) {
        // From a gateway that timed out while Exchange continued (learn.microsoft.com/answers/questions/1465421).
        (503, Stage::Submission) if words.code.is_empty() => Verdict::Unknown(failure),
        (429 | 503, _) => later(retry_after),
        (400..500, _) if throttled => later(retry_after),
        (413, _) => Verdict::Permanent(failure),
        // The URL has expired; a new draft gets a new one.
        (400..500, Stage::Upload) => later(retry_after),
        (401, _) => Verdict::TokenRefused(failure),
        // It may be gone because it was sent; a newly created draft may not be visible everywhere yet.
        (404, Stage::Submission) if is_unseen(answer) => Verdict::Unknown(failure),
        (404, Stage::Preparation) if is_unseen(answer) => later(retry_after),
        (408, Stage::Submission) => Verdict::Unknown(failure),
        // Rejected because of a concurrent change.
        (408 | 409, _) => later(retry_after),
        (400..500, _) if words.says(&["ErrorSendAsDenied"]) => Verdict::SenderRefused(failure),
        (400..500, _) => Verdict::Permanent(failure),
        (_, Stage::Submission) => Verdict::Unknown(failure),
        (_, Stage::Preparation | Stage::Upload) => later(retry_after),
    }
}

/// The verdict if there is no response.
pub(super) fn of_broken_call(stage: Stage, error: CallError) -> Verdict {
    match (stage, error) {
        (Stage::Submission, CallError::Broken(text)) => Verdict::Unknown(Failure::own(text)),
        (_, CallError::NotSent(text) | CallError::Broken(text) | CallError::Withheld(text)) => {
            Verdict::temporary(Failure::own(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(status: u16, code: &str) -> GraphResponse {
        let body = if code.is_empty() {
            Vec::new()
        } else {
            let error = json!({
                "code": code,
                "message": "What the provider says.",
                "innerError": {
                    "date": "2026-01-02T03:04:05",
                    "request-id": "6f1b6a5e-0000-4000-8000-000000000000",
                    "client-request-id": "6f1b6a5e-0000-4000-8000-000000000000"
                }
            });
            json!({ "error": error }).to_string().into_bytes()
        };
        GraphResponse {
            status,
            retry_after: None,
            body,
        }
    }

    #[test]
    fn without_an_answer() {
        let (not_sent, broken) = (
            || CallError::NotSent("nobody listens".to_owned()),
            || CallError::Broken("it broke".to_owned()),
        );
        for (stage, error, is_unclear) in [
            (Stage::Preparation, not_sent(), false),
            (Stage::Preparation, broken(), false),
            (Stage::Upload, broken(), false),
            (Stage::Submission, not_sent(), false),
            (Stage::Submission, broken(), true),
        ] {
            let verdict = of_broken_call(stage, error);
            assert_eq!(
                matches!(verdict, Verdict::Unknown(_)),
                is_unclear,
                "{stage:?}"
            );
            assert!(is_unclear || matches!(verdict, Verdict::Temporary { .. }));
        }
    }

    #[test]
    fn the_providers_words_on_one_short_line() {
        let Verdict::Permanent(failure) =
            of_answer(Stage::Submission, &answer(400, "ErrorInvalidRecipients"))
        else {
            panic!("it is permanent");
        };
        assert_eq!(
            failure.to_string(),
            "Microsoft Graph answered 400 ErrorInvalidRecipients: What the provider says."
        );
        let long = json!({"error": {"code": "a\r\nb", "message": "x\n".repeat(5_000)}});
        let words = Words::read(long.to_string().as_bytes());
        let told = words.tell(400);
        assert!(told.starts_with("Microsoft Graph answered 400 a  b: x x x"));
        assert!(told.len() < 700 && !told.contains(['\r', '\n']));
        for nonsense in ["", "<html>", "{}", r#"{"error":"x"}"#, "[]"] {
            let words = Words::read(nonsense.as_bytes());
            assert_eq!(words.tell(502), "Microsoft Graph answered 502");
        }
    }
}
