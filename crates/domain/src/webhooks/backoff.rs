//! The retry schedule of failed deliveries.

use std::time::Duration;

use super::attempt::Attempt;

/// The time to wait after a failed attempt; `None` if it was the last one. `attempt_number` counts from 1, `retry`
/// holds the wait after each, and `random` (0 to 1) spreads deliveries that failed together.
pub(super) fn wait_after(
    attempt: &Attempt,
    attempt_number: i32,
    retry: &[Duration],
    random: f64,
) -> Option<Duration> {
    if attempt.success || attempt.is_final {
        return None;
    }
    let position = usize::try_from(attempt_number.checked_sub(1)?).ok()?;
    let wait = *retry.get(position)?;
    let spread = wait + wait.mul_f64(0.1 * random.clamp(0.0, 1.0));
    Some(spread.max(attempt.retry_after.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: [Duration; 2] = [Duration::from_secs(5), Duration::from_mins(5)];

    fn answered(status: u16, retry_after: Option<u64>) -> Attempt {
        Attempt {
            http_status: Some(status),
            response_body: String::new(),
            duration_ms: 1,
            success: status == 200,
            error_message: None,
            retry_after: retry_after.map(Duration::from_secs),
            is_final: status == 410,
        }
    }

    #[test]
    fn waits() {
        for (status, retry_after, number, random, expected) in [
            (200, None, 1, 0.0, None),
            (410, None, 1, 0.0, None),
            (500, None, 1, 0.0, Some(5.0)),
            (302, None, 1, 0.0, Some(5.0)),
            (500, None, 1, 1.0, Some(5.5)),
            (500, None, 2, 0.5, Some(315.0)),
            (500, None, 3, 0.0, None),
            (500, None, 0, 0.0, None),
            (500, None, i32::MIN, 0.0, None),
            (500, None, i32::MAX, 0.0, None),
            (429, Some(60), 1, 0.0, Some(60.0)),
            (503, Some(1), 1, 0.0, Some(5.0)),
            // The receiver's Retry-After can't extend the schedule.
            (503, Some(60), 3, 0.0, None),
        ] {
            let wait = wait_after(&answered(status, retry_after), number, &RETRY, random);
            let expected = expected.map(Duration::from_secs_f64);
            assert_eq!(wait, expected, "{status} {retry_after:?} {number} {random}");
        }
    }
}
