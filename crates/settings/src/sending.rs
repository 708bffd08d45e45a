//! The settings of sending.

use std::time::Duration;

use super::reader::Reader;

/// The handling of a message whose outcome stays unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverifiable {
    /// Report it as failed.
    Fail,
    /// Send it again.
    Retry,
}

/// The settings of sending.
#[derive(Debug, Clone)]
pub struct SendingSettings {
    /// The handling of messages with an unknown outcome.
    pub unverifiable: Unverifiable,
    /// The delay before the next attempt, after each temporary failure.
    pub retry: Vec<Duration>,
    /// How long a message may wait in total before it fails.
    pub maximum_age: Duration,
    /// The timeout for TCP and TLS to the provider.
    pub connect: Duration,
    /// The timeout for each reply of the provider.
    pub command: Duration,
    /// The timeout for the message and its reply.
    pub data: Duration,
    /// How long an unused connection is kept.
    pub idle_connection: Duration,
    /// The timeout of a request to an OAuth endpoint.
    pub oauth: Duration,
}

/// `None` only if the reader has recorded a problem.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<SendingSettings> {
    let unverifiable = reader.choice(
        "sending.unverifiable",
        &[("fail", Unverifiable::Fail), ("retry", Unverifiable::Retry)],
    );
    Some(SendingSettings {
        retry: reader.list_of_seconds("sending.retry_seconds"),
        maximum_age: Duration::from_secs(reader.number(
            "sending.maximum_age_seconds",
            60,
            365 * 86_400,
        )),
        connect: reader.seconds("sending.connect_seconds"),
        command: reader.seconds("sending.command_seconds"),
        data: reader.seconds("sending.data_seconds"),
        idle_connection: reader.seconds("sending.idle_connection_seconds"),
        oauth: reader.seconds("sending.oauth_seconds"),
        unverifiable: unverifiable?,
    })
}
