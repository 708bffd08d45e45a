//! The fuzz targets: each runs a parser of external input, and checks invariants that hold for any input. `make fuzz`
//! runs them; `fuzz/` has the fuzzer and the corpora that the tests replay.

use crate::smtp::reply::fuzzing::provider_refusals;
use mailgate_bounces::fuzzing::bounces;
use mailgate_domain::billing::notices::fuzzing::notice_texts;
use mailgate_domain::billing::{billing_events, billing_looks};
use mailgate_domain::sending::accept::raw_message::fuzzing::submitted_message;
use mailgate_providers::egress::fuzzing::web_addresses;
use mailgate_providers::mail::bcc_from_envelope::fuzzing::addressed_message;
use mailgate_providers::mail::gmail::gmail_answers;
use mailgate_providers::mail::graph::{graph_answers, graph_draft};
use mailgate_providers::mail::imap::fuzzing::imap_responses;
use mailgate_providers::mail::oauth::token_answers;
use mailgate_providers::mail::received::fuzzing::received_mail;
use mailgate_providers::mail::smtp::smtp_replies;
use mailgate_providers::payprov::client::fuzzing::payprov_answers;
use mailgate_providers::retry_after_header;
use mailgate_rest::fuzzing::{http_headers, queries, rest_bodies};
use mailgate_rest::send_request;
use mailgate_settings::fuzzing::settings;
use mailgate_smtp::connection::fuzzing::smtp_connection;
use mailgate_smtp::protocol::fuzzing::{proxy_header, smtp_commands, smtp_content, smtp_lines};
use mailgate_smtp::protocol::session::fuzzing::smtp_session;
use mailgate_types::fuzzing::{addresses, identifiers, sealed_values};

/// Takes any bytes, and panics if an invariant is violated.
pub type Target = fn(&[u8]);

/// Each target by name, which its corpus shares.
pub const TARGETS: [(&str, Target); 31] = [
    ("addressed_message", addressed_message),
    ("addresses", addresses),
    ("billing_events", billing_events),
    ("billing_looks", billing_looks),
    ("bounces", bounces),
    ("gmail_answers", gmail_answers),
    ("graph_answers", graph_answers),
    ("graph_draft", graph_draft),
    ("http_headers", http_headers),
    ("identifiers", identifiers),
    ("imap_responses", imap_responses),
    ("notice_texts", notice_texts),
    ("payprov_answers", payprov_answers),
    ("provider_refusals", provider_refusals),
    ("proxy_header", proxy_header),
    ("queries", queries),
    ("received_mail", received_mail),
    ("rest_bodies", rest_bodies),
    ("retry_after", retry_after_header),
    ("sealed_values", sealed_values),
    ("send_request", send_request),
    ("settings", settings),
    ("smtp_commands", smtp_commands),
    ("smtp_connection", smtp_connection),
    ("smtp_content", smtp_content),
    ("smtp_lines", smtp_lines),
    ("smtp_replies", smtp_replies),
    ("smtp_session", smtp_session),
    ("submitted_message", submitted_message),
    ("token_answers", token_answers),
    ("web_addresses", web_addresses),
];

#[cfg(test)]
mod tests;
