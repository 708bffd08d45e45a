//! The settings of how mail leaves.

use std::time::Duration;

use super::reader::Reader;

/// What to do with a message whose outcome stays unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverifiable {
    /// Report it as failed.
    Fail,
    /// Send it again.
    Retry,
}

/// How mail leaves.
#[derive(Debug, Clone)]
pub struct SendingSettings {
    /// What to do with an outcome that stays unknown.
    pub unverifiable: Unverifiable,
    /// Time to the next attempt, after each temporary failure.
    pub retry: Vec<Duration>,
    /// How long a message may wait in all; past it, it has failed.
    pub maximum_age: Duration,
    /// For TCP and TLS to the provider.
    pub connect: Duration,
    /// For each reply of the provider.
    pub command: Duration,
    /// For the message itself and the reply to it.
    pub data: Duration,
    /// How long an unused connection is kept.
    pub idle_connection: Duration,
    /// For one answer of an OAuth endpoint.
    pub oauth: Duration,
}

/// `None` only where the reader has a problem to tell.
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
