//! The payment provider's pages: plain forms that work without scripts.

pub(super) mod checkout;
pub(super) mod invoice;
pub(super) mod overview;
pub(super) mod portal;

use askama::Template;
use axum::http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};

use super::ledger::Ledger;
use super::objects::{Invoice, Subscription};
use crate::card::Card;
use mailgate_server::page::Page;

/// A page with forms. They send their own site's origin, and nothing to other sites.
fn page(status: StatusCode, title: &str, body: impl Template) -> Response {
    let mut response = Page::new(status, title, body)
        .with_redirecting_forms()
        .into_response();
    let policy = HeaderValue::from_static("same-origin");
    response.headers_mut().insert(REFERRER_POLICY, policy);
    response
}

fn missing(what: &str) -> Response {
    let content = Card::new(what).with_link("/payprov", "See all subscribers");
    page(StatusCode::NOT_FOUND, "There is nothing here", content)
}

/// Sends the browser to another page after a form.
fn go_to(address: &str) -> Response {
    let headers = [
        (LOCATION, address),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// A human-readable date and time.
fn moment(seconds: i64) -> String {
    DateTime::<Utc>::from_timestamp(seconds, 0).map_or_else(String::new, |moment| {
        moment.format("%-d %B %Y, %H:%M UTC").to_string()
    })
}

/// An amount in a currency with cents.
fn amount(cents: i64, currency: &str) -> String {
    let currency = currency.to_uppercase();
    format!("{}.{:02} {currency}", cents / 100, (cents % 100).abs())
}

/// A subscription's details.
fn subscription_facts(ledger: &Ledger, subscription: &Subscription) -> Vec<(&'static str, String)> {
    let price = amount(subscription.amount(), &subscription.currency);
    let mut facts = vec![
        ("Status", subscription.status.as_str().to_owned()),
        ("Mailboxes", subscription.quantity().to_string()),
        ("Price", format!("{price} a month")),
    ];
    if let Some(end) = subscription.trial_end {
        facts.push(("Trial", format!("until {}", moment(end))));
    }
    let end = moment(subscription.current_period_end);
    facts.push(("Period", format!("until {end}")));
    if subscription.cancel_at_period_end {
        facts.push(("Cancellation", "at the end of the period".to_owned()));
    }
    let card = ledger.payment_method_for(&subscription.id);
    let card = card.map_or_else(
        || "none".to_owned(),
        |method| format!("{} ending in {}", method.card.brand, method.card.last4),
    );
    facts.push(("Card", card));
    facts
}

/// A customer's subscriptions, newest first.
fn subscriptions<'a>(ledger: &'a Ledger, of: &str) -> impl Iterator<Item = &'a Subscription> {
    let newest_first = ledger.subscriptions.values().rev();
    newest_first.filter(move |found| found.customer == of)
}

/// A customer's invoices, newest first.
fn invoices<'a>(ledger: &'a Ledger, of: &str) -> impl Iterator<Item = &'a Invoice> {
    let newest_first = ledger.invoices.values().rev();
    newest_first.filter(move |found| found.customer == of)
}

/// The customer's name on a page.
fn customer_name(ledger: &Ledger, id: &str) -> String {
    let customer = ledger.customers.get(id);
    let name = customer.and_then(|customer| customer.name.clone().or(customer.email.clone()));
    name.unwrap_or_else(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_moments() {
        for (cents, expected) in [(500, "5.00 EUR"), (5, "0.05 EUR"), (123_456, "1234.56 EUR")] {
            assert_eq!(amount(cents, "eur"), expected);
        }
        assert_eq!(moment(0), "1 January 1970, 00:00 UTC");
    }
}
