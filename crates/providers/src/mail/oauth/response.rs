//! An OAuth endpoint's response (RFC 6749 §5.1, §5.2), parsed the same for any status: Zoho and GitHub return errors
//! with 200, GitHub returns a form, and others make `error` an object.

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::StatusCode;
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::scope::granted_in;
use super::{OAuthError, Tokens};
use crate::answer::one_line;
use mailgate_types::event::DisconnectReason;

/// Lifetime of an access token if the response has none (RFC 6749 §5.1 leaves it to the client), and the longest that
/// is accepted, in seconds.
const UNNAMED_LIFE: f64 = 3_600.0;
const LONGEST_LIFE: f64 = 31_536_000.0;

/// The error codes that prove that the grant is dead: the standard's, Zoho's, GitHub's and Slack's. Codes that may also
/// concern the client, an access token or a limit are excluded, such as `invalid_token` or `access_denied`.
const GRANT_DEAD: [&str; 9] = [
    "invalid_grant",
    "invalid_code",
    "bad_verification_code",
    "invalid_refresh_token",
    "bad_refresh_token",
    "expired_refresh_token",
    "refresh_token_expired",
    "refresh_token_revoked",
    "token_revoked",
];

/// The reasons that require the user to sign in or to consent again.
pub(super) const SIGN_IN_REQUIRED: [DisconnectReason; 3] = [
    DisconnectReason::InteractionRequired,
    DisconnectReason::ConsentRequired,
    DisconnectReason::LoginRequired,
];

/// Maximum field names shown in an error, and the longest name shown.
const NAMES: usize = 20;
const NAME_LENGTH: usize = 40;

/// The fields of a response.
pub(super) type Fields = Map<String, Value>;

/// A response's fields: from a JSON object or a form, whatever its Content-Type; `None` for anything else.
pub(super) fn fields(body: &[u8]) -> Option<Fields> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Some(fields),
        Ok(_) => None,
        Err(_) => form(body.trim_ascii()),
    }
}

/// A form's fields. Only a form has an equals sign and no character that a form would encode.
fn form(body: &[u8]) -> Option<Fields> {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"<>\"{}".contains(byte);
    if !body.contains(&b'=') || !body.iter().all(is_plain) {
        return None;
    }
    let mut fields = Fields::new();
    for (name, value) in url::form_urlencoded::parse(body) {
        fields
            .entry(name)
            .or_insert_with(|| Value::String(value.into_owned()));
    }
    Some(fields)
}

/// The names of a response's fields, never their values, on one short line.
pub(super) fn names(fields: &Fields) -> String {
    // A name could be anything, such as someone's address.
    let is_name = |name: &&String| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
        name.len() <= NAME_LENGTH && name.bytes().all(is_plain)
    };
    let shown: Vec<&str> = fields
        .keys()
        .filter(is_name)
        .take(NAMES)
        .map(String::as_str)
        .collect();
    match (shown.is_empty(), fields.len() - shown.len()) {
        (true, 0) => "none".to_owned(),
        (true, others) => format!("{others} with odd names"),
        (false, 0) => shown.join(", "),
        (false, others) => format!("{} and {others} more", shown.join(", ")),
    }
}

/// A field's string; `None` if it is blank or not a string.
pub(super) fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    let text = fields.get(name)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

/// An error in a response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NamedError {
    /// Its code; empty if it has none.
    code: String,
    description: String,
}

impl NamedError {
    fn new(code: &str, description: Option<&str>) -> Self {
        Self {
            code: one_line(code.trim()),
            description: one_line(description.unwrap_or_default()),
        }
    }

    /// The error in these fields, if there is one: an empty value, null or false means success.
    pub(super) fn of(fields: &Fields) -> Option<Self> {
        let beside = text(fields, "error_description");
        let named = match fields.get("error") {
            Some(Value::String(code)) if !code.trim().is_empty() => Some(Self::new(code, beside)),
            Some(Value::Object(error)) if !error.is_empty() => Some(Self::new(
                code_in(error),
                ["message", "error_description", "description"]
                    .iter()
                    .find_map(|name| text(error, name))
                    .or(beside),
            )),
            Some(Value::Number(number)) if number.as_f64() != Some(0.0) => {
                Some(Self::new(&number.to_string(), beside))
            }
            Some(Value::Array(errors)) if !errors.is_empty() => Some(Self::new("", beside)),
            Some(Value::Bool(true)) => Some(Self::new("", beside)),
            _ => None,
        };
        // Slack: success is a field of its own.
        let is_failed = fields.get("ok") == Some(&Value::Bool(false));
        named.or_else(|| is_failed.then(|| Self::new("", beside)))
    }

    /// Its meaning with this status. `is_contradicted`: the response also has a token.
    pub(super) fn meaning(self, status: StatusCode, is_contradicted: bool) -> OAuthError {
        // Neither a server error nor a rate limit proves that a grant is dead.
        let is_sure = (status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS)
            || status.is_success();
        let is = |word: &&str| word.eq_ignore_ascii_case(&self.code);
        if is_sure && !is_contradicted {
            if GRANT_DEAD.iter().any(is) {
                return OAuthError::InvalidGrant {
                    error: self.code.to_ascii_lowercase(),
                    description: self.description,
                };
            }
            if let Some(reason) = (SIGN_IN_REQUIRED.into_iter()).find(|it| is(&it.as_str())) {
                return OAuthError::SignInRequired {
                    reason,
                    description: self.description,
                };
            }
        }
        OAuthError::Refused {
            status: status.as_u16(),
            error: self.code,
            description: self.description,
        }
    }
}

/// The code in an error that is an object: a string rather than a number, which may repeat the status.
fn code_in(error: &Fields) -> &str {
    ["code", "error", "type", "status", "reason"]
        .iter()
        .filter_map(|name| text(error, name))
        .find(|code| {
            code.trim_start()
                .starts_with(|it: char| it.is_ascii_alphabetic())
        })
        .unwrap_or_default()
}

/// The meaning of a response with an error status.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> OAuthError {
    let named = fields(body).and_then(|fields| NamedError::of(&fields));
    named.unwrap_or_default().meaning(status, false)
}

/// The tokens in the response to a request made at `asked_at` for the scopes `asked`.
///
/// # Errors
/// The error in the response, whatever its status.
pub(super) fn tokens(
    status: StatusCode,
    body: &[u8],
    asked_at: DateTime<Utc>,
    asked: &[String],
) -> Result<Tokens, OAuthError> {
    let fields = fields(body);
    let named = fields.as_ref().and_then(NamedError::of);
    let access_token = (fields.as_ref()).and_then(|fields| text(fields, "access_token"));
    if named.is_some() || !status.is_success() {
        let is_contradicted = access_token.is_some();
        return Err(named.unwrap_or_default().meaning(status, is_contradicted));
    }
    let Some(fields) = &fields else {
        return Err(OAuthError::Nonsense(
            "the answer is neither a JSON object nor a form",
        ));
    };
    let Some(access_token) = access_token else {
        return Err(OAuthError::Lacks {
            what: "access_token".to_owned(),
            fields: names(fields),
        });
    };
    // A form may end with a line end. A control character within could end a field of a SASL response (RFC 6749 A.12).
    let access_token = access_token.trim();
    if access_token.contains(char::is_control) {
        return Err(OAuthError::Nonsense(
            "the access token has a control character in it",
        ));
    }
    let secret = |name| text(fields, name).map(SecretString::from);
    Ok(Tokens {
        access_token: SecretString::from(access_token),
        // An empty one must not replace one that works.
        refresh_token: secret("refresh_token"),
        expires_at: asked_at + life(fields.get("expires_in")),
        scopes: fields
            .get("scope")
            .and_then(|scope| granted_in(scope, asked)),
        id_token: secret("id_token"),
    })
}

/// The lifetime of an access token by `expires_in`, which some send as a string: whole seconds, at most a year.
fn life(named: Option<&Value>) -> TimeDelta {
    let seconds = match named {
        Some(Value::Number(seconds)) => seconds.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let seconds = seconds.filter(|seconds: &f64| !seconds.is_nan());
    #[expect(clippy::cast_possible_truncation, reason = "clamped to a year before")]
    let seconds = seconds.unwrap_or(UNNAMED_LIFE).clamp(0.0, LONGEST_LIFE) as i64;
    TimeDelta::seconds(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// `dead`, `sign in`, or the refusal's code; empty if there is no error.
    fn meaning(status: u16, body: &str) -> String {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        match tokens(status, body.as_bytes(), DateTime::UNIX_EPOCH, &[]) {
            Ok(_) => "tokens".to_owned(),
            Err(OAuthError::InvalidGrant { error, .. }) => format!("dead: {error}"),
            Err(OAuthError::SignInRequired { reason, .. }) => {
                format!("sign in: {}", reason.as_str())
            }
            Err(OAuthError::Refused { error, .. }) => format!("refused: {error}"),
            Err(error) => error.reason().to_owned(),
        }
    }

    // Weble/ZohoBooksApi#84, octokit/auth-oauth-app.js#13, lelylan/simple-oauth2#459: errors with status 200.
    #[test]
    fn only_words_that_say_so_end_a_grant() {
        for word in GRANT_DEAD {
            for body in [
                json!({ "error": word }).to_string(),
                json!({ "error": word.to_uppercase(), "access_token": null }).to_string(),
                json!({ "error": { "code": word, "message": "m" } }).to_string(),
                json!({ "error": { "code": 400, "status": word } }).to_string(),
                json!({ "ok": false, "error": format!(" {word}\n") }).to_string(),
                format!("error={word}&error_description=d+d"),
                format!("\u{feff}{}", json!({ "error": word })),
            ] {
                for status in [200, 400, 401] {
                    assert_eq!(meaning(status, &body), format!("dead: {word}"), "{body}");
                }
                for status in [302, 429, 500, 503] {
                    let meaning = meaning(status, &body);
                    assert!(
                        meaning.starts_with("refused: "),
                        "{status} {body}: {meaning}"
                    );
                }
            }
            let beside = json!({ "error": word, "access_token": "a" }).to_string();
            assert_eq!(meaning(200, &beside), format!("refused: {word}"));
        }
        for reason in SIGN_IN_REQUIRED {
            let word = reason.as_str();
            let body = json!({ "error": word, "suberror": "basic_action" }).to_string();
            assert_eq!(meaning(400, &body), format!("sign in: {word}"));
            assert_eq!(meaning(200, &body), format!("sign in: {word}"));
            assert_eq!(meaning(502, &body), format!("refused: {word}"));
        }
        for word in [
            "invalid_client",
            "invalid_request",
            "invalid_scope",
            "invalid_token",
            "access_denied",
            "unauthorized_client",
            "unsupported_grant_type",
            "temporarily_unavailable",
            "server_error",
            "slow_down",
            "expired_token",
            "no_invalid_grant",
            "invalid_grant_type",
            "invalid grant",
            "400",
        ] {
            for status in [200, 400, 403, 500] {
                let body = json!({ "error": word, "error_description": "invalid_grant" });
                assert_eq!(
                    meaning(status, &body.to_string()),
                    format!("refused: {word}")
                );
            }
        }
    }

    #[test]
    fn errors_without_a_word_and_what_is_none() {
        for (body, expected) in [
            (r#"{"error":7}"#, "refused: 7"),
            (r#"{"error":true}"#, "refused: "),
            (r#"{"error":["invalid_grant"]}"#, "refused: "),
            (
                r#"{"error":{"code":7,"message":"invalid_grant"}}"#,
                "refused: ",
            ),
            (r#"{"ok":false}"#, "refused: "),
            (r#"{"ok":false,"access_token":"a"}"#, "refused: "),
            (r#"{"error":"","access_token":"a"}"#, "tokens"),
            (r#"{"error":null,"ok":true,"access_token":"a"}"#, "tokens"),
            (r#"{"error":{},"access_token":"a"}"#, "tokens"),
            (r#"{"error":0,"access_token":"a"}"#, "tokens"),
            ("access_token=a&error=", "tokens"),
            ("access_token=a\n", "tokens"),
            ("error=", "nonsense"),
            (r#"{"access_token":" "}"#, "nonsense"),
            (r#"{"access_token":"a\u0001auth=Bearer b"}"#, "nonsense"),
            (r#"{"access_token":"a\r\nb"}"#, "nonsense"),
            (r#"{"access_token":" a\n"}"#, "tokens"),
            (r#"{"access_token":7}"#, "nonsense"),
            (r#"{"error":""}"#, "nonsense"),
            (r#"[{"error":"invalid_grant"}]"#, "nonsense"),
            ("<a href=\"?a&error=invalid_grant&b\">", "nonsense"),
            ("the error=invalid_grant", "nonsense"),
            ("\"error=invalid_grant\"", "nonsense"),
            ("", "nonsense"),
        ] {
            assert_eq!(meaning(200, body), expected, "{body}");
        }
    }

    #[test]
    fn an_answer_is_told_by_its_names_alone() {
        let told = |fields: Value| match fields {
            Value::Object(fields) => names(&fields),
            _ => String::new(),
        };
        assert_eq!(told(json!({})), "none");
        assert_eq!(
            told(json!({ "sub": "s", "https://x.example/email": "ada@x.example" })),
            "https://x.example/email, sub"
        );
        assert_eq!(told(json!({ "ada@x.example": 1 })), "1 with odd names");
        assert_eq!(told(json!({ "a\nb": 1, "c": 2 })), "c and 1 more");
        let many: Fields = (0..1_000)
            .map(|it| (format!("f{it}"), Value::Null))
            .collect();
        assert!(told(Value::Object(many)).ends_with(" and 980 more"));
    }

    #[test]
    fn lives_of_tokens_in_both_spellings() {
        for (json, expected) in [
            ("3600", 3_600),
            ("\"3600\"", 3_600),
            ("3599.5", 3_599),
            ("\" 3599.5 \"", 3_599),
            ("0", 0),
            ("-1", 0),
            ("\"-9000000000000\"", 0),
            ("9000000000000", 31_536_000),
            ("\"9000000000000\"", 31_536_000),
            ("1e300", 31_536_000),
            ("\"inf\"", 31_536_000),
            ("\"nan\"", 3_600),
            ("\"soon\"", 3_600),
            ("null", 3_600),
            ("{}", 3_600),
            ("true", 3_600),
        ] {
            let seconds: Option<Value> = serde_json::from_str(json).ok();
            assert_eq!(life(seconds.as_ref()).num_seconds(), expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn no_life_is_longer_than_a_year(number: f64, integer: i64, text in "-?[0-9]{1,40}|.{0,20}") {
            for named in [json!(number), json!(integer), json!(text)] {
                let expires_at = DateTime::<Utc>::UNIX_EPOCH + life(Some(&named));
                prop_assert!((0..=31_536_000).contains(&expires_at.timestamp()));
            }
        }

        #[test]
        fn any_answer_is_survived(body in ".{0,200}", status in 100_u16..600) {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let _ = refusal(status, body.as_bytes());
            let _ = tokens(status, body.as_bytes(), DateTime::UNIX_EPOCH, &[]);
        }
    }
}
