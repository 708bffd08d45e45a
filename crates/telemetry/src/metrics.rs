//! All metrics by name, so that each exists from the first scrape, at zero; except those of requests, which begin with
//! the first request of their kind.

#[cfg(test)]
mod tests;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Buckets for durations of database and provider calls, in seconds.
const SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// Buckets for response times, in seconds: fewer, as there is one histogram per route.
const ANSWER_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// Buckets for the entries of one commit.
const ENTRIES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// The type of a metric.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    /// With these buckets.
    Histogram(&'static [f64], Unit),
}

/// A label, and the values that exist from the start: none if they come with requests.
type Label = (&'static str, &'static [&'static str]);

const ROUTE: Label = ("route", &[]);
const METHOD: Label = (
    "method",
    &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other"],
);
const STATUS: Label = ("status", &[]);
const PLUGIN: Label = ("plugin", &["plugin_a", "plugin_b"]);
const BOUNCE_TYPE: Label = ("bounce_type", &["permanent", "temporary"]);
const QUEUE: Label = ("queue", &["events", "jobs", "notices"]);
const WEBHOOK: Label = ("outcome", &["delivered", "failed", "given_up"]);
const CERTIFICATES: Label = (
    "setting",
    &[
        "tls.certificate",
        "smtp.host",
        "http.base_url",
        "plugins.plugin_a.ca_file",
        "plugins.plugin_b.ca_file",
        "relay.ca_file",
        "acme.ca_file",
    ],
);
const LISTENER: Label = ("listener", &["starttls", "tls"]);

/// Why no mailbox was connected, as shown on the pages.
const CONNECT_FAILURES: &[&str] = &[
    "access_denied",
    "already_connected",
    "app_suspended",
    "insufficient_scope",
    "internal_error",
    "invalid_grant",
    "link_used",
    "no_address",
    "no_refresh_token",
    "not_completed",
    "plugin_off",
    "provider_error",
    "provider_unavailable",
    "session_required",
    "sign_in_required",
    "too_many_for_app",
    "too_many_mailboxes",
    "unavailable",
    "unverified_address",
    "user_id_missing",
    "wrong_account",
];

/// Name, type, description, and labels.
#[rustfmt::skip]
const METRICS: &[(&str, Kind, &str, &[Label])] = &[
    ("mailgate_messages_total", Kind::Counter, "Attempts to send a message, by outcome", &[("outcome", &["sent", "failed_temp", "failed_perm"]), PLUGIN]),
    ("mailgate_provider_seconds", Kind::Histogram(SECONDS, Unit::Seconds), "Duration of one submission to a provider", &[PLUGIN]),
    ("mailgate_spool_messages", Kind::Gauge, "Messages in the spool: being sent, waiting for another attempt, or scheduled; 100,000 at most", &[("state", &["open", "deferred", "scheduled"])]),
    ("mailgate_spool_oldest_seconds", Kind::Gauge, "Age of the oldest message in the spool", &[]),
    ("mailgate_spool_overdue_seconds", Kind::Gauge, "How long the most overdue retry has been due", &[]),
    ("mailgate_journal_batch_entries", Kind::Histogram(ENTRIES, Unit::Count), "Entries in one commit of the journal", &[]),
    ("mailgate_journal_commit_seconds", Kind::Histogram(SECONDS, Unit::Seconds), "Duration of one commit of the journal", &[]),
    ("mailgate_journal_refused_total", Kind::Counter, "Messages that the database accepted only without the texts that their senders wrote", &[]),
    ("mailgate_unlogged_total", Kind::Counter, "Messages without a row in the log, since they were older than it when they ended", &[]),
    ("mailgate_waiting_refused_total", Kind::Counter, "Messages refused because limits.waiting_messages_per_subscriber or limits.waiting_bytes_per_subscriber, or the subscriber's own limit, was used up", &[]),
    ("mailgate_waiting_fullest_ratio", Kind::Gauge, "Share of these two limits, or of its own, used by the subscriber that uses most; above 1 only after they were lowered", &[]),
    ("mailgate_overloaded_total", Kind::Counter, "Messages refused because limits.in_flight_bytes, or one subscriber's share of it, was used up", &[]),
    ("mailgate_http_requests_total", Kind::Counter, "HTTP requests answered, by the pattern of the path (`unmatched` if there is none), method (`other` if the route doesn't take it) and status", &[ROUTE, METHOD, STATUS]),
    ("mailgate_http_request_seconds", Kind::Histogram(ANSWER_SECONDS, Unit::Seconds), "Time to the answer of an HTTP request, but for those refused before their handler", &[ROUTE, METHOD]),
    ("mailgate_http_overloaded_total", Kind::Counter, "HTTP requests and connections refused because limits.unauthenticated_bytes was used up", &[]),
    ("mailgate_http_cut_bodies_total", Kind::Counter, "HTTP bodies that arrived too slowly, or not before the process ended", &[]),
    ("mailgate_http_stalled_total", Kind::Counter, "HTTP connections closed because the client did not read the response", &[]),
    ("mailgate_smtp_sessions_total", Kind::Counter, "SMTP sessions started", &[LISTENER]),
    ("mailgate_smtp_sessions_open", Kind::Gauge, "Open SMTP sessions", &[LISTENER]),
    ("mailgate_smtp_refused_connections_total", Kind::Counter, "SMTP connections beyond the limits", &[]),
    ("mailgate_smtp_proxy_header_failures_total", Kind::Counter, "Connections of balancers without a PROXY protocol header", &[]),
    ("mailgate_http_refused_connections_total", Kind::Counter, "HTTP connections and requests beyond the limits", &[]),
    ("mailgate_authentication_failures_total", Kind::Counter, "Failed authentications", &[("door", &["rest", "smtp", "portal"])]),
    ("mailgate_token_refreshes_total", Kind::Counter, "Refreshes of access tokens, by outcome", &[("outcome", &["refreshed", "invalid_grant", "failed"])]),
    ("mailgate_token_refresh_failures_total", Kind::Counter, "Refreshes that a provider did not answer with tokens, by reason", &[PLUGIN, ("reason", &["invalid_client", "provider_error", "refused", "unreachable", "nonsense"])]),
    ("mailgate_provider_switched_off_total", Kind::Counter, "Messages waiting because the provider's API is not enabled for the OAuth client, which the operator has to do", &[PLUGIN]),
    ("mailgate_oauth_client_refused", Kind::Gauge, "1 if the provider's last answer refused the OAuth client itself: its secret has expired, or it is refused for another reason", &[PLUGIN, ("reason", &["expired", "refused"])]),
    ("mailgate_client_secret_expiry_timestamp_seconds", Kind::Gauge, "When plugins.*.client_secret_expires is, in seconds since 1970; NaN where it isn't set", &[PLUGIN]),
    ("mailgate_mailboxes", Kind::Gauge, "Mailboxes of all apps, counted every minute; 100,000 at most of each", &[PLUGIN, ("state", &["active", "disconnected"])]),
    ("mailgate_mailboxes_connected_total", Kind::Counter, "Mailboxes connected, or connected again, by their users", &[PLUGIN]),
    ("mailgate_connect_failures_total", Kind::Counter, "Users who came back from their provider and got no mailbox connected, by reason", &[PLUGIN, ("reason", CONNECT_FAILURES)]),
    ("mailgate_replies_total", Kind::Counter, "Replies found", &[PLUGIN]),
    ("mailgate_bounces_total", Kind::Counter, "Bounces found: recipients and notifications", &[PLUGIN, BOUNCE_TYPE]),
    ("mailgate_reply_looks_failed_total", Kind::Counter, "Failed checks for replies", &[]),
    ("mailgate_sent_copies_total", Kind::Counter, "Sent messages to be filed in their mailbox's sent mail, by outcome", &[("outcome", &["filed", "found", "failed", "left_out"])]),
    ("mailgate_address_reads_total", Kind::Counter, "Requests to providers for the addresses that a mailbox may send as, by outcome", &[("outcome", &["read", "forbidden", "failed"])]),
    ("mailgate_webhook_attempts_total", Kind::Counter, "Attempts to deliver a webhook: delivered, failed, or failed for good", &[WEBHOOK]),
    ("mailgate_webhook_seconds", Kind::Histogram(SECONDS, Unit::Seconds), "Duration of one attempt to deliver a webhook", &[WEBHOOK]),
    ("mailgate_webhook_unrecorded_total", Kind::Counter, "Attempts to deliver a webhook that were not recorded and may be repeated", &[]),
    ("mailgate_webhook_queue_deliveries", Kind::Gauge, "Deliveries in the queue, those that are ready, and those under way or put off; 100,000 at most of each", &[("state", &["ready", "later"])]),
    ("mailgate_webhook_queue_oldest_seconds", Kind::Gauge, "Age of the oldest event with a delivery in the queue", &[]),
    ("mailgate_webhook_queue_overdue_seconds", Kind::Gauge, "How long the most overdue delivery has been due, of 1,000 endpoints", &[]),
    ("mailgate_payprov_events_total", Kind::Counter, "Events of the payment provider: new ones, repeats, and those of no consequence", &[("new", &["yes", "no", "ignored"])]),
    ("mailgate_payprov_refused_events_total", Kind::Counter, "Events refused because they were not signed by the payment provider", &[]),
    ("mailgate_payprov_failures_total", Kind::Counter, "Failed calls to the payment provider, by reason", &[("reason", &["away", "refused", "nonsense"])]),
    ("mailgate_billing_doubly_charged_subscribers", Kind::Gauge, "Subscribers with more than one living subscription at the payment provider, who are charged for each; 100,000 at most", &[]),
    ("mailgate_billing_jobs_total", Kind::Counter, "Attempts at jobs at the payment provider, by outcome", &[("kind", &["provision", "quantity", "end"]), ("outcome", &["done", "failed"])]),
    ("mailgate_billing_quantity_drift_total", Kind::Counter, "Times that the payment provider billed a different number of mailboxes than were connected", &[]),
    ("mailgate_billing_queue_entries", Kind::Gauge, "Billing's queues: events to process, jobs at the payment provider, notices to send; 100,000 at most of each", &[QUEUE]),
    ("mailgate_billing_queue_overdue_seconds", Kind::Gauge, "How long the most overdue entry of the queue has been due", &[QUEUE]),
    ("mailgate_notices_total", Kind::Counter, "Notices to subscribers, by outcome", &[("outcome", &["sent", "skipped", "given_up", "unknown"])]),
    ("mailgate_report_changes", Kind::Gauge, "Message counts not yet aggregated for the reports, 100,000 at most", &[]),
    ("mailgate_database_connections", Kind::Gauge, "Connections of the pool, those in use and idle ones", &[("state", &["used", "idle"])]),
    ("mailgate_database_acquire_seconds", Kind::Histogram(SECONDS, Unit::Seconds), "How long a probe every 15 seconds waited for a connection of the pool", &[]),
    ("mailgate_database_up", Kind::Gauge, "1 if the last probe was answered", &[]),
    ("mailgate_clock_offset_seconds", Kind::Gauge, "How far this machine's clock is ahead of the database's; negative if behind", &[]),
    ("mailgate_database_wal_archive_overdue_seconds", Kind::Gauge, "For how long Postgres should have archived its write-ahead log; NaN where it archives none, or only full segments", &[]),
    ("mailgate_deletions_held", Kind::Gauge, "1 while nothing is deleted by its age, since the database's clock has moved on by more than a week after a gateway last ran", &[]),
    ("mailgate_certificate_expiry_timestamp_seconds", Kind::Gauge, "When the first certificate of a setting's file, or the one from the ACME server for a setting's name, expires, in seconds since 1970; NaN where there is none", &[CERTIFICATES]),
    ("mailgate_certificate_refused", Kind::Gauge, "1 while tls.certificate and tls.key hold what can't be used, such as a certificate for another name, and the former pair is shown", &[]),
    ("mailgate_acme_orders_total", Kind::Counter, "Orders of certificates at the ACME server, by outcome", &[("outcome", &["issued", "failed", "rate_limited", "superseded"])]),
    ("mailgate_acme_failed_attempts", Kind::Gauge, "Orders in a row that brought no certificate, by the setting that the name is from", &[("setting", &["smtp.host", "http.base_url"])]),
    ("mailgate_build_info", Kind::Gauge, "1; the version is the label", &[("version", &[env!("CARGO_PKG_VERSION")])]),
];

/// Starts collecting metrics.
///
/// # Errors
///
/// If this process already collects them.
pub fn start() -> Result<PrometheusHandle, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for (name, kind, _, _) in METRICS {
        if let Kind::Histogram(buckets, _) = kind {
            builder = builder.set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets)?;
        }
    }
    let handle = builder.install_recorder()?;
    for (name, kind, help, labels) in METRICS {
        match kind {
            Kind::Counter => describe_counter!(*name, *help),
            Kind::Gauge => describe_gauge!(*name, *help),
            Kind::Histogram(_, unit) => describe_histogram!(*name, *unit, *help),
        }
        for labels in combinations(labels) {
            match kind {
                Kind::Counter => counter!(*name, &labels).absolute(0),
                Kind::Gauge => gauge!(*name, &labels).set(0),
                Kind::Histogram(..) => drop(histogram!(*name, &labels)),
            }
        }
    }
    gauge!("mailgate_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1);
    Ok(handle)
}

/// All combinations of the labels' values.
fn combinations(labels: &[Label]) -> Vec<Vec<(&'static str, &'static str)>> {
    labels
        .iter()
        .fold(vec![Vec::new()], |all, (label, values)| {
            all.iter()
                .flat_map(|before| {
                    values.iter().map(|value| {
                        let mut with = before.clone();
                        with.push((*label, *value));
                        with
                    })
                })
                .collect()
        })
}
