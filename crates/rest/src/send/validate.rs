//! Validates the fields of `POST /send`, and reports all errors together.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};

use super::request::{AttachmentRequest, Base64Content, SendRequest};
use crate::http::field::{Field, List, Texts};
use crate::http::problem::{FieldError, Problem};
use mailgate_domain::accounts::SendingApp;
use mailgate_domain::compose::{
    Attachment, ContentId, CustomHeader, Fields, Filename, HEADERS_LENGTH, MOST_ATTACHMENTS,
    MOST_HEADERS, MediaType,
};
use mailgate_domain::mailboxes::USER_ID_LENGTH;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::metadata::{InvalidMetadata, MOST, Metadata};
use mailgate_types::named_address::NamedAddress;
use mailgate_types::plugin::Plugin;
use mailgate_types::send_at::SendAt;

/// Longest subject in characters: a header line's own limit (RFC 5322 §2.1.1).
const SUBJECT_LENGTH: usize = 998;

/// Characters of a header's name that an error repeats.
const SHOWN_NAME: usize = 76;

/// The error for an invalid address.
const ONE_ADDRESS: &str = "must be one email address, without a name";

/// The request, once every field is valid.
pub(super) struct ValidRequest {
    pub(super) fields: Fields,
    /// The address that the mailbox must have.
    pub(super) from: Option<EmailAddress>,
    pub(super) user_id: Option<String>,
    pub(super) plugin: Option<Plugin>,
    pub(super) send_at: Option<SendAt>,
    pub(super) metadata: Metadata,
}

type Errors = Vec<FieldError>;

/// The request names an app other than its send key's.
pub(super) fn pk_mismatch() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "pk_mismatch",
        "pk and the send key belong to different apps.",
    )
}

/// `recipients` is the maximum per message.
pub(super) fn validate(
    request: SendRequest,
    app: &SendingApp,
    recipients: usize,
    now: DateTime<Utc>,
) -> Result<ValidRequest, Problem> {
    let mut errors = Vec::new();
    let pk = request.pk.required("pk", &mut errors);
    if pk.is_some_and(|pk| pk != app.pushable_key) {
        return Err(pk_mismatch());
    }
    let to = request.to.required("to", &mut errors);
    let to = to.and_then(|to| address("to".into(), &to, &mut errors));
    let subject = subject(request.subject, &mut errors);
    // The address in `to` counts.
    let cc = addresses("cc", request.cc, recipients - 1, &mut errors);
    let bcc = addresses("bcc", request.bcc, recipients - 1 - cc.len(), &mut errors);
    let reply_to = request.reply_to.optional("reply_to", &mut errors);
    let reply_to = reply_to.and_then(|text| address("reply_to".into(), &text, &mut errors));
    let from = from(request.from, &mut errors);
    let (text, html) = bodies(request.body, request.html, &mut errors);
    let headers = headers(request.headers, &mut errors);
    let attachments = attachments(request.attachments, &mut errors);
    let metadata = metadata(request.metadata, &mut errors);
    let user_id = user_id(request.user_id, app.multiuser, &mut errors);
    let plugin = plugin(request.plugin, &mut errors);
    let send_at = send_at(request.send_at, now, &mut errors);
    match (to, subject) {
        (Some(to), Some(subject)) if errors.is_empty() => {
            let (from_name, from) =
                from.map_or((None, None), |from| (from.name, Some(from.address)));
            Ok(ValidRequest {
                fields: Fields {
                    from_name,
                    to,
                    cc,
                    bcc,
                    reply_to,
                    subject,
                    text,
                    html,
                    headers,
                    attachments,
                },
                from,
                user_id,
                plugin,
                send_at,
                metadata,
            })
        }
        _ => Err(Problem::fields(errors)),
    }
}

fn address(field: Cow<'static, str>, text: &str, errors: &mut Errors) -> Option<EmailAddress> {
    let address = EmailAddress::parse(text).ok();
    if address.is_none() {
        errors.push(FieldError::new(field, ONE_ADDRESS));
    }
    address
}

/// Up to `most` addresses; the first list that exceeds the message's limit is reported.
fn addresses(
    name: &'static str,
    given: Field<List<String>>,
    most: usize,
    errors: &mut Errors,
) -> Vec<EmailAddress> {
    let list = given.optional(name, errors).unwrap_or_default();
    if list.length > most {
        let detail = "has too many addresses: to, cc and bcc together exceed the gateway's limit";
        errors.push(FieldError::new(name, detail));
        return Vec::new();
    }
    let mut addresses = Vec::with_capacity(list.length);
    for (index, element) in list.kept.into_iter().enumerate() {
        let field = format!("{name}[{index}]");
        if let Some(text) = element.element(field.clone(), errors) {
            addresses.extend(address(field.into(), &text, errors));
        }
    }
    addresses
}

fn from(given: Field<String>, errors: &mut Errors) -> Option<NamedAddress> {
    let text = given.optional("from", errors)?;
    let parsed = NamedAddress::parse(&text);
    if let Err(error) = &parsed {
        let detail = format!("must be one email address, with or without a name: {error}");
        errors.push(FieldError::new("from", detail));
    }
    parsed.ok()
}

fn subject(given: Field<String>, errors: &mut Errors) -> Option<String> {
    let subject = given.required("subject", errors)?;
    let detail = if subject.contains(['\r', '\n', '\0']) {
        "must not contain a line break or NUL"
    } else if subject.chars().count() > SUBJECT_LENGTH {
        "must have at most 998 characters"
    } else {
        return Some(subject);
    };
    errors.push(FieldError::new("subject", detail));
    None
}

/// Text and HTML; at least one is required.
fn bodies(
    text: Field<String>,
    html: Field<String>,
    errors: &mut Errors,
) -> (Option<String>, Option<String>) {
    let right_before = errors.len();
    let mut body = |field: &'static str, given: Field<String>| {
        let body = given.optional(field, errors)?;
        if body.contains('\0') {
            errors.push(FieldError::new(field, "must not contain NUL"));
        }
        Some(body).filter(|body| !body.is_empty())
    };
    let (text, html) = (body("body", text), body("html", html));
    if text.is_none() && html.is_none() && errors.len() == right_before {
        errors.push(FieldError::new("body", "is required, unless html is given"));
    }
    (text, html)
}

fn headers(given: Field<Texts>, errors: &mut Errors) -> Vec<CustomHeader> {
    let texts = given.optional("headers", errors).unwrap_or_default();
    if texts.length > MOST_HEADERS {
        errors.push(FieldError::new("headers", "must have at most 50 names"));
        return Vec::new();
    }
    let mut headers: Vec<CustomHeader> = Vec::with_capacity(texts.length);
    for (name, value) in texts.kept {
        let shown: String = name.chars().take(SHOWN_NAME).collect();
        let field = format!("headers.{shown}");
        let Some(value) = value.element(field.clone(), errors) else {
            continue;
        };
        match CustomHeader::new(&name, &value) {
            Err(error) => errors.push(FieldError::new(field, error.to_string())),
            Ok(header) => {
                let mut others = headers.iter();
                if others.any(|other| other.name().eq_ignore_ascii_case(&name)) {
                    errors.push(FieldError::new(field, "is given twice"));
                }
                headers.push(header);
            }
        }
    }
    let length: usize = headers.iter().map(CustomHeader::length).sum();
    if length > HEADERS_LENGTH {
        let detail = format!("must have at most {HEADERS_LENGTH} characters in all");
        errors.push(FieldError::new("headers", detail));
    }
    headers
}

fn metadata(given: Field<Texts>, errors: &mut Errors) -> Metadata {
    let texts = given.optional("metadata", errors).unwrap_or_default();
    let mut metadata = Metadata::default();
    if texts.length > MOST {
        errors.push(FieldError::new(
            "metadata",
            InvalidMetadata::TooMany.to_string(),
        ));
        return metadata;
    }
    for (key, value) in texts.kept {
        let shown: String = key.chars().take(SHOWN_NAME).collect();
        let field = format!("metadata.{shown}");
        if let Some(value) = value.element(field.clone(), errors)
            && let Err(error) = metadata.insert(&key, &value)
        {
            errors.push(FieldError::new(field, error.to_string()));
        }
    }
    metadata
}

fn attachments(given: Field<List<AttachmentRequest>>, errors: &mut Errors) -> Vec<Attachment> {
    let list = given.optional("attachments", errors).unwrap_or_default();
    if list.length > MOST_ATTACHMENTS {
        let detail = "must have at most 100 elements";
        errors.push(FieldError::new("attachments", detail));
        return Vec::new();
    }
    let mut content_ids = HashSet::new();
    let mut attachments = Vec::with_capacity(list.length);
    for (index, element) in list.kept.into_iter().enumerate() {
        let place = format!("attachments[{index}]");
        let Some(request) = element.element(place.clone(), errors) else {
            continue;
        };
        let attachment = attachment(&place, request, errors);
        let repeated = attachment
            .as_ref()
            .and_then(|attachment| attachment.content_id.clone())
            .is_some_and(|id| !content_ids.insert(id));
        if repeated {
            errors.push(FieldError::new(
                format!("{place}.content_id"),
                "is given twice",
            ));
        }
        attachments.extend(attachment);
    }
    attachments
}

fn attachment(place: &str, request: AttachmentRequest, errors: &mut Errors) -> Option<Attachment> {
    let field = |name: &str| format!("{place}.{name}");
    let right_before = errors.len();
    let filename = request.filename.required(field("filename"), errors);
    let filename =
        filename.and_then(|name| checked(field("filename"), Filename::new(name), errors));
    let media_type = request.content_type.optional(field("content_type"), errors);
    let media_type =
        media_type.and_then(|text| checked(field("content_type"), MediaType::parse(&text), errors));
    let content = request.content.required(field("content"), errors);
    let content = content.and_then(|Base64Content(decoded)| {
        let decoded = decoded.ok_or("must be base64: the standard alphabet with padding");
        checked(field("content"), decoded, errors)
    });
    let content_id = request.content_id.optional(field("content_id"), errors);
    let content_id =
        content_id.and_then(|id| checked(field("content_id"), ContentId::new(id), errors));
    let attachment = Attachment {
        filename: filename?,
        media_type: media_type.unwrap_or_default(),
        content: content?,
        content_id,
    };
    (errors.len() == right_before).then_some(attachment)
}

fn checked<T>(field: String, result: Result<T, impl Display>, errors: &mut Errors) -> Option<T> {
    result
        .map_err(|error| errors.push(FieldError::new(field, error.to_string())))
        .ok()
}

fn user_id(given: Field<String>, multiuser: bool, errors: &mut Errors) -> Option<String> {
    let user_id = given.optional("user_id", errors);
    let user_id = user_id.filter(|user_id| !user_id.is_empty());
    let detail = match &user_id {
        None if multiuser => "is required: the app is multiuser",
        Some(user_id) if user_id.contains('\0') || user_id.chars().count() > USER_ID_LENGTH => {
            "must have at most 255 characters and no NUL"
        }
        // An app without multiuser has one user, whatever name it uses.
        _ => return user_id.filter(|_| multiuser),
    };
    errors.push(FieldError::new("user_id", detail));
    None
}

fn plugin(given: Field<String>, errors: &mut Errors) -> Option<Plugin> {
    let plugin = given.optional("plugin", errors)?;
    let parsed = plugin.parse().ok();
    if parsed.is_none() {
        errors.push(FieldError::new("plugin", "must be plugin_a or plugin_b"));
    }
    parsed
}

fn send_at(given: Field<String>, now: DateTime<Utc>, errors: &mut Errors) -> Option<SendAt> {
    let text = given.optional("send_at", errors)?;
    checked("send_at".to_owned(), SendAt::parse(&text, now), errors)
}
