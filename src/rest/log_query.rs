//! The query of `GET /logs`, and what is right of it.

use serde::Deserialize;
use utoipa::IntoParams;

use super::date::Date;
use super::enums::{LogPlugin, SCHEDULED, ShownStatus};
use super::problem::Problem;
use super::query::{take, whole_number};
use crate::reports::{AppReference, Filter};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// Rows of a page, unless the caller says how many, and at most.
const LIMIT: u32 = 20;
const LARGEST: u32 = 100;

/// Which messages.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// Messages at most.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20)]
    limit: Option<String>,
    /// Messages to skip.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 4_294_967_295_i64, default = 0)]
    offset: Option<String>,
    /// Only messages of this app: its UUID, or its `app_id` (the slug). An app that isn't yours has no messages.
    #[param(pattern = "^[a-z0-9-]{1,69}$")]
    app_id: Option<String>,
    /// Of one status. `scheduled` lists the messages that are still to leave, the next one first; no other list or
    /// total has them.
    #[param(value_type = Option<ShownStatus>, inline)]
    status: Option<String>,
    /// Of one plugin.
    #[param(value_type = Option<LogPlugin>, inline)]
    plugin: Option<String>,
    /// From this moment on: ISO 8601, with an offset or else in UTC; without a time, from the beginning
    /// of that day (UTC).
    #[param(
        example = "2026-11-01",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    from_date: Option<String>,
    /// Up to this moment, itself included: ISO 8601, with an offset or else in UTC; without a time, to the
    /// end of that day (UTC).
    #[param(
        example = "2026-11-30T12:00:00+01:00",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    to_date: Option<String>,
}

/// The page that is wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) filter: Filter,
    /// Those that are still to leave, and none of the log.
    pub(super) is_scheduled: bool,
    pub(super) limit: i64,
    pub(super) offset: i64,
}

impl LogQuery {
    /// Checks all of it; tells everything that is wrong at once.
    pub(super) fn validate(self) -> Result<Wanted, Problem> {
        let mut errors = Vec::new();
        let limit = whole_number("limit", self.limit, 1..=LARGEST, &mut errors);
        let offset = whole_number("offset", self.offset, 0..=u32::MAX, &mut errors);
        let is_scheduled = self.status.as_deref() == Some(SCHEDULED);
        let status = self.status.filter(|_| !is_scheduled);
        let filter = Filter {
            app: take(&mut errors, "app_id", self.app_id, AppReference::parse),
            status: take(&mut errors, "status", status, shown_status),
            plugin: take(&mut errors, "plugin", self.plugin, Plugin::from_log_name),
            from: take(&mut errors, "from_date", self.from_date, Date::parse).map(Date::first),
            before: take(&mut errors, "to_date", self.to_date, Date::parse).map(Date::behind),
        };
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(Wanted {
            filter,
            is_scheduled,
            limit: limit.unwrap_or(LIMIT).into(),
            offset: offset.unwrap_or(0).into(),
        })
    }
}

/// The status of a row of the log.
fn shown_status(text: &str) -> Result<LogStatus, &'static str> {
    let status = text.parse();
    status.map_err(|_| "must be sent, failed_temp, failed_perm or scheduled")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let wrong = |text: &str| Some(text.to_owned());
        let query = LogQuery {
            limit: wrong("101"),
            offset: wrong("-1"),
            app_id: wrong("Demo"),
            status: wrong("open"),
            plugin: wrong("plugin_b"),
            from_date: wrong("x"),
            to_date: wrong(""),
        };
        let problem = query.validate().err().map(|problem| format!("{problem:?}"));
        let problem = problem.unwrap_or_default();
        for field in [
            "limit",
            "offset",
            "app_id",
            "status",
            "plugin",
            "from_date",
            "to_date",
        ] {
            assert!(
                problem.contains(&format!("field: \"{field}\"")),
                "{field}: {problem}"
            );
        }
    }

    #[test]
    fn what_is_not_given() {
        let wanted = LogQuery::default().validate().map_err(|_| ());
        let page = wanted.as_ref().map(|it| (it.limit, it.offset));
        assert_eq!(page, Ok((20, 0)));
        assert!(wanted.is_ok_and(|it| it.filter.from.is_none() && it.filter.before.is_none()));
    }
}
