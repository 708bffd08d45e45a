//! Gauges of the largest subscribers. Their ids are labels that come and go, so these gauges are not recorded, as they
//! would stay: each scrape shows only the latest measurement.

use std::fmt::{Display, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use mailgate_types::ids::SubscriberId;

/// Maximum number of subscribers per measure.
pub const MOST: u8 = 10;

/// The metrics, which are gauges: name, description, and labels.
pub(super) const METRICS: [(&str, &str, &[&str]); 3] = [
    (
        "mailgate_top_subscriber_messages",
        "Messages of this hour and the one before, of the ten subscribers of whom most were sent, and of the ten of whom most failed for good",
        &["subscriber", "outcome"],
    ),
    (
        "mailgate_top_subscriber_waiting_messages",
        "Scheduled and waiting messages of the ten subscribers that have most",
        &["subscriber"],
    ),
    (
        "mailgate_top_subscriber_waiting_ratio",
        "Share of what may wait for them, by messages or bytes, of the ten subscribers that use most of theirs",
        &["subscriber"],
    ),
];

/// The largest subscribers by each measure, in descending order.
#[derive(Debug, Clone, Default)]
pub struct Largest {
    /// Messages sent.
    pub sent: Vec<(SubscriberId, i64)>,
    /// Messages that have failed permanently.
    pub failed: Vec<(SubscriberId, i64)>,
    /// Waiting messages.
    pub waiting: Vec<(SubscriberId, i64)>,
    /// The used share of the quota for waiting messages.
    pub waiting_share: Vec<(SubscriberId, f64)>,
}

/// The latest measurement.
#[derive(Debug, Clone, Default)]
pub struct TopSubscribers(Arc<Mutex<Largest>>);

impl TopSubscribers {
    /// Replaces the measurement.
    pub fn set(&self, largest: Largest) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = largest;
    }

    /// All series, in Prometheus's text format.
    #[must_use]
    pub(super) fn render(&self) -> String {
        let largest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [messages, waiting, waiting_ratio] = METRICS.map(|(name, _, _)| name);
        let series = [
            lines(messages, ",outcome=\"sent\"", &largest.sent)
                + &lines(messages, ",outcome=\"failed_perm\"", &largest.failed),
            lines(waiting, "", &largest.waiting),
            lines(waiting_ratio, "", &largest.waiting_share),
        ];
        let mut text = String::new();
        for ((name, help, _), series) in METRICS.iter().zip(series) {
            // Writing to a `String` can't fail.
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{series}\n"
            );
        }
        text
    }
}

/// The series of one measure.
fn lines(name: &str, label: &str, largest: &[(SubscriberId, impl Display)]) -> String {
    let mut text = String::new();
    for (id, value) in largest.iter().take(MOST.into()) {
        let _ = writeln!(text, "{name}{{subscriber=\"{id}\"{label}}} {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn series(top: &TopSubscribers) -> Vec<String> {
        let text = top.render();
        let lines = text.lines().filter(|line| line.starts_with("mailgate_"));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn there_are_ten_by_each_measure_and_who_drops_out_vanishes() {
        let top = TopSubscribers::default();
        assert_eq!(series(&top), Vec::<String>::new());
        assert_eq!(top.render().matches("# TYPE mailgate_top_").count(), 3);
        let ids: Vec<_> = (1..=15)
            .map(|id| SubscriberId(Uuid::from_u128(id)))
            .collect();
        top.set(Largest {
            sent: ids.iter().map(|id| (*id, 7)).collect(),
            failed: vec![(ids[0], 3)],
            waiting: ids.iter().map(|id| (*id, 7)).collect(),
            waiting_share: ids.iter().map(|id| (*id, 0.25)).collect(),
        });
        let shown = series(&top);
        assert_eq!(shown.len(), 31, "{shown:?}");
        let first = ids[0];
        for line in [
            format!(
                "mailgate_top_subscriber_messages{{subscriber=\"{first}\",outcome=\"sent\"}} 7"
            ),
            format!(
                "mailgate_top_subscriber_messages{{subscriber=\"{first}\",outcome=\"failed_perm\"}} 3"
            ),
            format!("mailgate_top_subscriber_waiting_messages{{subscriber=\"{first}\"}} 7"),
            format!("mailgate_top_subscriber_waiting_ratio{{subscriber=\"{first}\"}} 0.25"),
        ] {
            assert!(shown.contains(&line), "{line} in {shown:?}");
        }
        top.set(Largest {
            waiting: vec![(ids[14], 8)],
            ..Largest::default()
        });
        let last = ids[14];
        let left = format!("mailgate_top_subscriber_waiting_messages{{subscriber=\"{last}\"}} 8");
        assert_eq!(series(&top), [left]);
    }
}
