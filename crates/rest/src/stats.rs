//! Statistics: key figures, and messages by day or month.

use axum::Json;
use axum::extract::State;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use crate::http::access::LogsRead;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::{FieldError, Problem};
use crate::http::query::Described;
use crate::openapi::enums::{StatsPeriod, inlined};
use mailgate_domain::reports::{
    AppReference, EmailStats, MessageCounts, Period, PeriodCounts, PluginStats, Stats,
};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// Your key figures. Days and months are UTC; a message counts in those of its first attempt.
#[derive(Serialize, ToSchema)]
pub(super) struct StatsShown {
    /// Number of apps.
    #[schema(minimum = 0)]
    apps_count: i64,
    /// Active mailboxes of all apps.
    #[schema(minimum = 0)]
    active_oauth_users: i64,
    /// Messages with the status `sent`, all time.
    #[schema(minimum = 0)]
    total_emails_sent: i64,
    /// Messages with the status `sent`, today.
    #[schema(minimum = 0)]
    emails_sent_today: i64,
    /// Messages with the status `sent`, this month.
    #[schema(minimum = 0)]
    emails_sent_month: i64,
    /// Messages that were sent and have hard-bounced for a recipient, all time.
    #[schema(minimum = 0)]
    total_emails_bounced: i64,
    /// The same, today, by the message's first attempt.
    #[schema(minimum = 0)]
    emails_bounced_today: i64,
    /// The same, this month, by the message's first attempt.
    #[schema(minimum = 0)]
    emails_bounced_month: i64,
    /// The share of messages with the status `sent`, all time; 1 if there are none.
    #[schema(minimum = 0, maximum = 1)]
    success_rate: f64,
    /// Both plugins.
    plugins: PluginsShown,
}

/// Both plugins, by name.
#[derive(Serialize, ToSchema)]
pub(super) struct PluginsShown {
    /// The first kind of provider.
    plugin_a: PluginShown,
    /// The second kind of provider.
    plugin_b_alt: PluginShown,
}

/// Figures of one plugin.
#[derive(Serialize, ToSchema)]
pub(super) struct PluginShown {
    /// Active mailboxes.
    #[schema(minimum = 0)]
    credentials_count: i64,
    /// Messages with the status `sent`, this month.
    #[schema(minimum = 0)]
    emails_sent_month: i64,
}

/// Messages by day or month.
#[derive(Serialize, ToSchema)]
pub(super) struct EmailStatsShown {
    /// Days or months.
    #[schema(schema_with = inlined::<StatsPeriod>)]
    period: &'static str,
    /// The last 30 days or 12 months (UTC) up to and including the current one, oldest first; those without
    /// messages are listed too.
    data: Vec<PeriodShown>,
    /// The twelve months together; only for `month`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    summary: Option<SummaryShown>,
}

/// The messages of a day or a month, by their first attempt.
#[derive(Serialize, ToSchema)]
pub(super) struct PeriodShown {
    /// `YYYY-MM-DD` for a day, `YYYY-MM` for a month.
    #[schema(pattern = r"^\d{4}-\d{2}(-\d{2})?$")]
    date: String,
    /// All messages.
    #[schema(minimum = 0)]
    total: i64,
    /// Messages that are `sent`.
    #[schema(minimum = 0)]
    sent: i64,
    /// Messages that the gateway still tries to send.
    #[schema(minimum = 0)]
    failed_temp: i64,
    /// Messages that were not sent.
    #[schema(minimum = 0)]
    failed_perm: i64,
    /// How many of the `sent` messages have hard-bounced for a recipient.
    #[schema(minimum = 0)]
    bounced: i64,
    /// All messages by plugin; only for months.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    by_plugin: Option<ByPlugin>,
}

/// Messages by plugin.
#[derive(Serialize, ToSchema)]
pub(super) struct ByPlugin {
    /// The first kind of provider.
    #[schema(minimum = 0)]
    plugin_a: i64,
    /// The second kind of provider.
    #[schema(minimum = 0)]
    plugin_b_alt: i64,
}

/// Twelve months together.
#[derive(Serialize, ToSchema)]
pub(super) struct SummaryShown {
    /// All messages.
    #[schema(minimum = 0)]
    total_12months: i64,
    /// The monthly average, rounded to a whole number.
    #[schema(minimum = 0)]
    avg_per_month: i64,
    /// `YYYY-MM` of the month with the most messages; the latest of several.
    #[schema(pattern = r"^\d{4}-\d{2}$")]
    best_month: String,
    /// The share of all messages that are `sent`; 1 if there are none.
    #[schema(minimum = 0, maximum = 1)]
    success_rate: f64,
    /// Messages that were sent and have hard-bounced for a recipient.
    #[schema(minimum = 0)]
    bounced_12months: i64,
}

/// The filters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EmailStatsQuery {
    /// `day` for the last 30 days, `month` (the default) for the last 12 months.
    #[param(value_type = Option<StatsPeriod>, inline)]
    period: Option<String>,
    /// Only messages of this app: its UUID, or its `app_id` (the slug). An app that isn't yours has zeros.
    #[param(pattern = "^[a-z0-9-]{1,69}$")]
    app_id: Option<String>,
}

/// Gets your key figures.
#[utoipa::path(
    get,
    path = "/stats",
    operation_id = "stats",
    tag = "Logs",
    security(("api_secret" = ["logs:read"])),
    responses(
        (status = 200, body = StatsShown),
    )
)]
pub(super) async fn stats(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<LogsRead>,
) -> Result<Json<StatsShown>, Problem> {
    let figures = state.reports.stats(caller.subscriber.id).await?;
    Ok(Json(StatsShown::new(&figures)))
}

/// Gets your messages by day or month.
#[utoipa::path(
    get,
    path = "/email-stats",
    operation_id = "email_stats",
    tag = "Logs",
    security(("api_secret" = ["logs:read"])),
    params(EmailStatsQuery),
    responses(
        (status = 200, body = EmailStatsShown),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(super) async fn email_stats(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<LogsRead>,
    Described(query): Described<EmailStatsQuery>,
) -> Result<Json<EmailStatsShown>, Problem> {
    let mut errors = Vec::new();
    let period = match query.period.as_deref() {
        Some("day") => Period::Day,
        None | Some("month") => Period::Month,
        Some(_) => {
            errors.push(FieldError::new("period", "must be day or month"));
            Period::Month
        }
    };
    let app = query.app_id.as_deref().map(AppReference::parse).transpose();
    let app = app.unwrap_or_else(|error| {
        errors.push(FieldError::new("app_id", error.to_string()));
        None
    });
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let figures = state
        .reports
        .email_stats(caller.subscriber.id, period, app.as_ref())
        .await?;
    Ok(Json(EmailStatsShown::new(period, &figures)))
}

impl StatsShown {
    fn new(stats: &Stats) -> Self {
        let [first, second] = stats.plugins;
        Self {
            apps_count: stats.apps,
            active_oauth_users: stats.mailboxes,
            total_emails_sent: stats.sent,
            emails_sent_today: stats.sent_today,
            emails_sent_month: stats.sent_this_month,
            total_emails_bounced: stats.bounced,
            emails_bounced_today: stats.bounced_today,
            emails_bounced_month: stats.bounced_this_month,
            success_rate: stats.success_rate,
            plugins: PluginsShown {
                plugin_a: PluginShown::new(first),
                plugin_b_alt: PluginShown::new(second),
            },
        }
    }
}

impl PluginShown {
    fn new(plugin: PluginStats) -> Self {
        Self {
            credentials_count: plugin.mailboxes,
            emails_sent_month: plugin.sent_this_month,
        }
    }
}

impl EmailStatsShown {
    fn new(period: Period, stats: &EmailStats) -> Self {
        Self {
            period: match period {
                Period::Day => "day",
                Period::Month => "month",
            },
            data: (stats.data.iter())
                .map(|data| PeriodShown::new(period, data))
                .collect(),
            summary: stats.summary.as_ref().map(|summary| SummaryShown {
                total_12months: summary.total,
                avg_per_month: summary.average,
                best_month: date(Period::Month, summary.best),
                success_rate: summary.success_rate,
                bounced_12months: summary.bounced,
            }),
        }
    }
}

impl PeriodShown {
    fn new(period: Period, data: &PeriodCounts) -> Self {
        let of = |status| data.counts.sum(None, Some(status));
        Self {
            date: date(period, data.start),
            total: data.counts.sum(None, None),
            sent: of(LogStatus::Sent),
            failed_temp: of(LogStatus::FailedTemp),
            failed_perm: of(LogStatus::FailedPerm),
            bounced: data.counts.bounced(None),
            by_plugin: (period == Period::Month).then(|| ByPlugin::new(&data.counts)),
        }
    }
}

impl ByPlugin {
    fn new(counts: &MessageCounts) -> Self {
        Self {
            plugin_a: counts.sum(Some(Plugin::A), None),
            plugin_b_alt: counts.sum(Some(Plugin::B), None),
        }
    }
}

fn date(period: Period, start: NaiveDate) -> String {
    let form = match period {
        Period::Day => "%Y-%m-%d",
        Period::Month => "%Y-%m",
    };
    start.format(form).to_string()
}
