//! The payment provider's pages: plain forms that work without scripts.

pub(super) mod checkout;
pub(super) mod invoice;
pub(super) mod overview;
pub(super) mod portal;

use std::fmt::Write as _;

use axum::http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};

use super::ledger::Ledger;
use super::objects::{Invoice, Subscription};
use mailgate_server::page::{Page, escaped};

/// A page with forms. They name their own site as where they come from, and no other site learns of it.
fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let mut response = Page::new(status, title, body)
        .with_redirecting_forms()
        .into_response();
    let policy = HeaderValue::from_static("same-origin");
    response.headers_mut().insert(REFERRER_POLICY, policy);
    response
}

fn missing(what: &str) -> Response {
    page(
        StatusCode::NOT_FOUND,
        "There is nothing here",
        &format!(
            "<p class=\"card\">{} <a href=\"/payprov\">See all subscribers</a>.</p>",
            escaped(what)
        ),
    )
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

/// How a button looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Plain,
    /// What the page is for.
    Main,
    /// It ends something for good.
    Danger,
}

/// One button: a form of its own, that posts `name` = `value` to `to`.
fn button(to: &str, name: &str, value: &str, label: &str, look: Look) -> String {
    let class = match look {
        Look::Plain => "",
        Look::Main => " class=\"main\"",
        Look::Danger => " class=\"danger\"",
    };
    format!(
        "<form method=\"post\" action=\"{to}\"><button{class} name=\"{name}\" value=\"{value}\">{label}</button></form>",
        to = escaped(to),
        label = escaped(label),
    )
}

/// A day and a time that people can read.
fn moment(seconds: i64) -> String {
    DateTime::<Utc>::from_timestamp(seconds, 0).map_or_else(String::new, |moment| {
        moment.format("%-d %B %Y, %H:%M UTC").to_string()
    })
}

/// An amount of a currency with cents.
fn amount(cents: i64, currency: &str) -> String {
    let currency = currency.to_uppercase();
    format!("{}.{:02} {currency}", cents / 100, (cents % 100).abs())
}

/// What there is to say of a subscription.
fn subscription_facts(ledger: &Ledger, subscription: &Subscription) -> String {
    let mut facts = String::from("<dl>");
    let mut fact = |name: &str, value: &str| {
        // Writing to a String can't fail.
        let _ = write!(facts, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    };
    fact("Status", subscription.status.as_str());
    fact("Mailboxes", &subscription.quantity().to_string());
    let price = amount(subscription.amount(), &subscription.currency);
    fact("Price", &format!("{price} a month"));
    if let Some(end) = subscription.trial_end {
        fact("Trial", &format!("until {}", moment(end)));
    }
    let end = moment(subscription.current_period_end);
    fact("Period", &format!("until {end}"));
    if subscription.cancel_at_period_end {
        fact("Cancellation", "at the end of the period");
    }
    let card = ledger.payment_method_for(&subscription.id);
    let card = card.map_or_else(
        || "none".to_owned(),
        |method| format!("{} ending in {}", method.card.brand, method.card.last4),
    );
    fact("Card", &card);
    facts.push_str("</dl>");
    facts
}

/// A customer's invoices, newest first.
fn invoices(ledger: &Ledger, customer: &str) -> String {
    let of_customer = |invoice: &&Invoice| invoice.customer == customer;
    let mut list = String::new();
    for invoice in ledger.invoices.values().rev().filter(of_customer) {
        let _ = write!(
            list,
            "<li><a href=\"/payprov/invoices/{id}\">{number}</a> · {amount} · {status} · {date}</li>",
            id = escaped(&invoice.id),
            number = escaped(&invoice.number),
            amount = amount(invoice.amount_due, &invoice.currency),
            status = invoice.status.as_str(),
            date = moment(invoice.created),
        );
    }
    if list.is_empty() {
        "<p class=\"soft\">No invoices yet.</p>".to_owned()
    } else {
        format!("<ul>{list}</ul>")
    }
}

/// Whom a page speaks of.
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

    #[test]
    fn nothing_foreign_is_markup() {
        let button = button("/x?\"><b>", "action", "pay", "<i>", Look::Main);
        assert!(
            !button.contains("<b>") && !button.contains("<i>"),
            "{button}"
        );
    }
}
