//! The limits on requests, messages and connections: their ranges. The defaults are in `config/default.toml`.

use std::time::Duration;

use super::reader::Reader;

/// Limits on requests, messages and connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest message in bytes.
    pub message_bytes: usize,
    /// Largest REST body in bytes.
    pub body_bytes: usize,
    /// Requests per key and second.
    pub requests_per_second: u32,
    /// Requests that a key may make in a burst.
    pub requests_burst: u32,
    /// Bytes of messages held in memory.
    pub in_flight_bytes: usize,
    /// The percentage that one subscriber's apps may hold.
    pub in_flight_share: usize,
    /// Bytes held in memory for unauthenticated HTTP clients.
    pub unauthenticated_bytes: usize,
    /// Waiting messages per subscriber.
    pub waiting_messages_per_subscriber: u32,
    /// Bytes of waiting messages per subscriber.
    pub waiting_bytes_per_subscriber: i64,
    /// Apps per subscriber.
    pub apps_per_subscriber: u32,
    /// Maximum number of recipients of a message.
    pub recipients: usize,
    /// Longest SMTP command line in bytes, CRLF included.
    pub smtp_line_bytes: usize,
    /// Invalid SMTP commands before a connection is closed.
    pub smtp_errors: usize,
    /// Failed logins before an SMTP connection is closed.
    pub smtp_authentication_failures: usize,
    /// Failed logins per address and minute before it is slowed down.
    pub authentication_failures_per_minute: u32,
    /// The timeout for an SMTP client's next command.
    pub smtp_command: Duration,
    /// Longest pause of an SMTP client within a message.
    pub smtp_data_idle: Duration,
    /// Minimum rate of a message or a body, in bytes per second.
    pub minimum_bytes_per_second: u32,
    /// Longest pause of an HTTP client within a body.
    pub http_body_idle: Duration,
    /// Visits of connect links per address and minute.
    pub connect_visits_per_minute: u32,
    /// Visits of connect links per app and minute.
    pub connect_visits_per_minute_per_app: u32,
    /// Concurrent HTTP connections per listener.
    pub http_connections: usize,
    /// Concurrent HTTP connections per listener and address.
    pub http_connections_per_address: usize,
    /// Concurrent SMTP connections.
    pub smtp_connections: usize,
    /// Concurrent SMTP connections per address.
    pub smtp_connections_per_address: usize,
    /// Concurrent authenticated SMTP connections per subscriber.
    pub smtp_connections_per_subscriber: usize,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Limits {
    let message_bytes: usize = reader.number("limits.message_bytes", 1_024, 1 << 30);
    let in_flight_bytes = reader.number("limits.in_flight_bytes", 1 << 12, 1 << 40);
    if in_flight_bytes < message_bytes * 4 {
        let text = "must be four times limits.message_bytes or more, else the largest message finds no room";
        reader.problem("limits.in_flight_bytes", text);
    }
    let waiting_bytes_per_subscriber =
        reader.number("limits.waiting_bytes_per_subscriber", 1_024, 1 << 50);
    if usize::try_from(waiting_bytes_per_subscriber).is_ok_and(|bytes| bytes < message_bytes) {
        let text =
            "must be limits.message_bytes or more, else the largest message could never wait";
        reader.problem("limits.waiting_bytes_per_subscriber", text);
    }
    Limits {
        message_bytes,
        in_flight_bytes,
        in_flight_share: reader.number("limits.in_flight_share", 1, 100),
        unauthenticated_bytes: reader.number("limits.unauthenticated_bytes", 1 << 16, 1 << 40),
        waiting_messages_per_subscriber: reader.number(
            "limits.waiting_messages_per_subscriber",
            1,
            100_000_000,
        ),
        waiting_bytes_per_subscriber,
        body_bytes: reader.number("limits.body_bytes", 1_024, 1 << 30),
        requests_per_second: reader.number("limits.requests_per_second", 1, 1_000_000),
        requests_burst: reader.number("limits.requests_burst", 1, 1_000_000),
        apps_per_subscriber: reader.number("limits.apps_per_subscriber", 1, 1_000_000),
        recipients: reader.number("limits.recipients", 1, 10_000),
        // RFC 5321 §4.5.3.1.4: at least 512.
        smtp_line_bytes: reader.number("limits.smtp_line_bytes", 512, 65_536),
        smtp_errors: reader.number("limits.smtp_errors", 1, 1_000),
        smtp_authentication_failures: reader.number("limits.smtp_authentication_failures", 1, 100),
        authentication_failures_per_minute: reader.number(
            "limits.authentication_failures_per_minute",
            1,
            1_000_000,
        ),
        smtp_command: reader.seconds("limits.smtp_command_seconds"),
        smtp_data_idle: reader.seconds("limits.smtp_data_idle_seconds"),
        minimum_bytes_per_second: reader.number("limits.minimum_bytes_per_second", 1, 1 << 30),
        http_body_idle: reader.seconds("limits.http_body_idle_seconds"),
        connect_visits_per_minute: reader.number("limits.connect_visits_per_minute", 1, 1_000_000),
        connect_visits_per_minute_per_app: reader.number(
            "limits.connect_visits_per_minute_per_app",
            1,
            100_000_000,
        ),
        http_connections: reader.number("limits.http_connections", 1, 1_000_000),
        http_connections_per_address: reader.number(
            "limits.http_connections_per_address",
            1,
            1_000_000,
        ),
        smtp_connections: reader.number("limits.smtp_connections", 1, 1_000_000),
        smtp_connections_per_subscriber: reader.number(
            "limits.smtp_connections_per_subscriber",
            1,
            1_000_000,
        ),
        smtp_connections_per_address: reader.number(
            "limits.smtp_connections_per_address",
            1,
            1_000_000,
        ),
    }
}
