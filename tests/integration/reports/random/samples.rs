//! The messages and the filters that chance makes.

use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;
use proptest::prelude::*;
use proptest::sample::select;

use super::{DAYS, MESSAGES};

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Sent,
    FailedPerm,
    /// Fails once, and ends at the next attempt.
    Retried(LogStatus),
    /// Is being submitted: nobody sees it.
    Open,
}

#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) app: usize,
    pub(super) plugin: Plugin,
    pub(super) fate: Fate,
    pub(super) back: i64,
    pub(super) bounces: bool,
}

/// Milliseconds before now: everywhere, crowded in two hours, and about the bounds of hours.
fn moments() -> impl Strategy<Value = i64> {
    let all = i64::try_from(DAYS).unwrap() * 86_400_000;
    prop_oneof![
        4 => 1..all,
        6 => 40_000_000..47_000_000_i64,
        3 => 60_000_000..60_100_000_i64,
        1 => (1..1_600_i64, -2..2_i64).prop_map(|(hours, by)| hours * 3_600_000 + by),
    ]
}

fn plugins() -> impl Strategy<Value = Plugin> {
    prop_oneof![9 => Just(Plugin::A), 1 => Just(Plugin::B)]
}

pub(super) fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let fates = prop_oneof![
        10 => Just(Fate::Sent),
        1 => Just(Fate::FailedPerm),
        2 => Just(Fate::Retried(LogStatus::Sent)),
        1 => Just(Fate::Retried(LogStatus::FailedPerm)),
        1 => Just(Fate::Open),
    ];
    let bounces = prop_oneof![4 => Just(false), 1 => Just(true)];
    let sample = (0..4_usize, plugins(), fates, moments(), bounces).prop_map(
        |(app, plugin, fate, back, bounces)| Sample {
            app,
            plugin,
            fate,
            back,
            bounces,
        },
    );
    proptest::collection::vec(sample, MESSAGES)
}

pub(super) fn samples_of_one() -> impl Strategy<Value = Vec<Sample>> {
    samples().prop_map(|samples| {
        samples
            .into_iter()
            .take(100)
            .map(|sample| Sample { app: 1, ..sample })
            .collect()
    })
}

/// A filter with the app by its place, and moments before now.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) app: Option<usize>,
    pub(super) status: Option<LogStatus>,
    pub(super) plugin: Option<Plugin>,
    pub(super) bounced: Option<bool>,
    pub(super) from: Option<i64>,
    pub(super) before: Option<i64>,
    pub(super) limit: i64,
    pub(super) offset: i64,
}

pub(super) fn asked() -> impl Strategy<Value = Asked> {
    (
        proptest::option::of(0..4_usize),
        proptest::option::of(select(&LogStatus::ALL[..])),
        proptest::option::of(select(&Plugin::ALL[..])),
        proptest::option::of(any::<bool>()),
        proptest::option::of(moments()),
        proptest::option::of(moments()),
        1..=100_i64,
        prop_oneof![Just(0), 0..50_i64, 0..3_000_i64],
    )
        .prop_map(
            |(app, status, plugin, bounced, from, before, limit, offset)| Asked {
                app,
                status,
                plugin,
                bounced,
                from,
                before,
                limit,
                offset,
            },
        )
}
