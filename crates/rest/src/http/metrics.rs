//! Counts requests by route, method and status, and measures the time until their responses begin. A request whose
//! client left before its response is not counted.
//!
//! The number of series is bounded, whatever strangers send: a path counts as its matched pattern or as
//! `unmatched`, and a method that the route doesn't support, or that is unknown, as `other`.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::{Method, StatusCode};
use metrics::{Counter, Histogram, counter, histogram};

use super::failures::Answered;

/// The route of a request that matched none.
const UNMATCHED: &str = "unmatched";

/// The series of one route and method.
#[derive(Default)]
struct Series {
    /// One for each status returned.
    counters: Vec<(StatusCode, Counter)>,
    /// Of requests that reached their handler.
    seconds: Option<Histogram>,
}

/// The series so far, by route and method. A handle is requested from the registry only once, so that a request costs a
/// map lookup under a shared lock, and no allocation.
type Known = HashMap<Box<str>, Vec<(&'static str, Series)>>;

/// Counts requests.
#[derive(Clone, Default)]
pub(crate) struct RequestMetrics {
    known: Arc<RwLock<Known>>,
}

impl std::fmt::Debug for RequestMetrics {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RequestMetrics")
    }
}

impl RequestMetrics {
    /// Counts a request, and measures it if it `was_admitted`: early refusals would make a route seem
    /// fast.
    pub(crate) fn count(&self, answered: &Answered<'_>, was_admitted: bool) {
        let route = answered.route.unwrap_or(UNMATCHED);
        let is_measured = was_admitted && answered.status != StatusCode::METHOD_NOT_ALLOWED;
        let method = if answered.status == StatusCode::METHOD_NOT_ALLOWED {
            "other"
        } else {
            method_label(answered.method)
        };
        let is_counted = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            find(&known, route, method)
                .is_some_and(|series| series.count(answered, is_measured).is_some())
        };
        if !is_counted {
            self.begin(answered, is_measured, route, method);
        }
    }

    /// Counts the first request of its kind.
    fn begin(&self, answered: &Answered<'_>, is_measured: bool, route: &str, method: &'static str) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let methods = known.entry(route.into()).or_default();
        let place = methods.iter().position(|(known, _)| *known == method);
        let place = place.unwrap_or_else(|| {
            methods.push((method, Series::default()));
            methods.len() - 1
        });
        let Some((_, series)) = methods.get_mut(place) else {
            return;
        };
        let status = answered.status;
        if series.counter(status).is_none() {
            let counter = counter!(
                "mailgate_http_requests_total",
                "route" => route.to_owned(),
                "method" => method,
                "status" => status.as_str().to_owned(),
            );
            series.counters.push((status, counter));
        }
        if is_measured && series.seconds.is_none() {
            series.seconds = Some(histogram!(
                "mailgate_http_request_seconds",
                "route" => route.to_owned(),
                "method" => method,
            ));
        }
        series.count(answered, is_measured);
    }
}

impl Series {
    fn counter(&self, status: StatusCode) -> Option<&Counter> {
        let mut counters = self.counters.iter();
        let found = counters.find(|(known, _)| *known == status);
        found.map(|(_, counter)| counter)
    }

    /// `None`, and nothing counted, if one of the handles is missing.
    fn count(&self, answered: &Answered<'_>, is_measured: bool) -> Option<()> {
        let counter = self.counter(answered.status)?;
        if is_measured {
            self.seconds.as_ref()?.record(answered.took);
        }
        counter.increment(1);
        Some(())
    }
}

fn find<'a>(known: &'a Known, route: &str, method: &str) -> Option<&'a Series> {
    let mut methods = known.get(route)?.iter();
    let found = methods.find(|(known, _)| *known == method);
    found.map(|(_, series)| series)
}

/// A method's label.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn count(metrics: &RequestMetrics, method: &str, route: Option<&str>, status: u16) {
        let answered = Answered {
            method: &method.parse().unwrap_or_default(),
            route,
            status: StatusCode::from_u16(status).unwrap_or_default(),
            authenticated: false,
            took: Duration::from_millis(1),
        };
        metrics.count(&answered, status != 429);
    }

    /// Route, method, statuses, and whether it is measured.
    fn known(metrics: &RequestMetrics) -> Vec<(String, &'static str, Vec<u16>, bool)> {
        let known = metrics.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = known
            .iter()
            .flat_map(|(route, methods)| {
                methods.iter().map(move |(method, series)| {
                    let statuses = series.counters.iter().map(|(status, _)| status.as_u16());
                    let statuses = statuses.collect();
                    (
                        route.to_string(),
                        *method,
                        statuses,
                        series.seconds.is_some(),
                    )
                })
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn series_are_begun_once() {
        let metrics = RequestMetrics::default();
        for _ in 0..3 {
            count(&metrics, "GET", Some("/apps"), 200);
            count(&metrics, "GET", Some("/apps"), 429);
            count(&metrics, "POST", Some("/apps"), 429);
        }
        let apps = || "/apps".to_owned();
        assert_eq!(
            known(&metrics),
            [
                (apps(), "GET", vec![200, 429], true),
                (apps(), "POST", vec![429], false),
            ]
        );
        count(&metrics, "POST", Some("/apps"), 201);
        assert_eq!(known(&metrics)[1], (apps(), "POST", vec![429, 201], true));
    }

    #[test]
    fn strange_methods_and_paths_are_one_each() {
        let metrics = RequestMetrics::default();
        for method in ["DELETE", "OPTIONS", "TRACE", "X-1", "X-2", "get"] {
            count(&metrics, method, Some("/send"), 405);
        }
        for method in ["X-1", "X-2", "get", "OPTIONS"] {
            count(&metrics, method, None, 404);
        }
        assert_eq!(
            known(&metrics),
            [
                ("/send".to_owned(), "other", vec![405], false),
                ("unmatched".to_owned(), "other", vec![404], true),
            ]
        );
    }
}
