//! When a certificate is renewed, and when a failed attempt is retried. The time of renewal is stored when a
//! certificate is issued; `storage::certificates::store` sets a minimum distance for it.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The wait after the first failure; it doubles with each further one, up to the longest. Let's Encrypt permits five
/// failed validations of a name in an hour.
const FIRST: Duration = Duration::from_mins(5);
const LONGEST: Duration = Duration::from_hours(6);

/// At two thirds of the lifetime, or up to a fiftieth of it earlier: `random` (0 to 1) spreads certificates issued
/// together.
pub(super) fn renew_at(
    not_before: DateTime<Utc>,
    not_after: DateTime<Utc>,
    random: f64,
) -> DateTime<Utc> {
    let life = not_after - not_before;
    let seconds = life.num_seconds().max(0);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a spread needs no precision"
    )]
    let spread = (seconds as f64 * random.clamp(0.0, 1.0) / 50.0) as i64;
    let until = chrono::TimeDelta::seconds(seconds / 3 * 2 - spread);
    not_before.checked_add_signed(until).unwrap_or(not_after)
}

/// The wait after a failed attempt, with `failures` before it, up to a fifth longer by `random` (0 to 1); never shorter
/// than the server's Retry-After.
pub(super) fn wait_after(failures: i32, retry_after: Option<Duration>, random: f64) -> Duration {
    let doublings = u32::try_from(failures).unwrap_or(0).min(16);
    let wait = (FIRST * 2_u32.pow(doublings)).min(LONGEST);
    let asked = retry_after.unwrap_or_default();
    let wait = wait.max(asked);
    wait + wait.min(LONGEST).mul_f64(0.2 * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn it_is_renewed_at_two_thirds_of_its_life() {
        let begin = DateTime::UNIX_EPOCH;
        let days = |days| begin + TimeDelta::days(days);
        assert_eq!(renew_at(begin, days(90), 0.0), days(60));
        assert_eq!(
            renew_at(begin, days(90), 1.0),
            days(60) - TimeDelta::minutes(90 * 24 * 60 / 50)
        );
        assert_eq!(renew_at(begin, begin, 0.5), begin);
        assert_eq!(renew_at(days(1), begin, 0.5), days(1));
        let end = DateTime::<Utc>::MAX_UTC;
        assert!(renew_at(begin, end, 0.0) < end);
    }

    #[test]
    fn waits_grow_and_have_an_end() {
        let minutes = |failures| wait_after(failures, None, 0.0).as_secs() / 60;
        assert_eq!([-1, 0, 1, 2, 3, 6].map(minutes), [5, 5, 10, 20, 40, 320]);
        assert_eq!([7, 30, i32::MAX].map(minutes), [360; 3]);
        assert_eq!(wait_after(0, None, 1.0), Duration::from_mins(6));
    }

    #[test]
    fn the_servers_wish_is_honoured() {
        let day = Duration::from_hours(24);
        assert_eq!(wait_after(0, Some(day), 0.0), day);
        assert!(wait_after(0, Some(day), 1.0) > day);
        assert_eq!(wait_after(0, Some(Duration::ZERO), 0.0), FIRST);
    }
}
