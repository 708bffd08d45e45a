//! Billing: the subscription's status in plain words with the one next step, the payment method, the price, the latest
//! invoices, and the end.

pub(super) mod actions;
pub(super) mod words;

use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use tokio::time::timeout;

use self::words::expiry::expiry;
use self::words::{Action, Card, Head, Reading};
use super::PortalState;
use super::page::{LeadsAway, page};
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::sentence::{Day, day};
use crate::page::session::Session;
use crate::page::words::{Moment, Status, number};
use mailgate_domain::billing::{BillingError, ListedInvoice, StoredSubscription};
use mailgate_types::billing_details::{Recipient, SavedPaymentMethod, UnitPrice};

/// How long the page waits for the payment provider; then it shows the last known status.
const PATIENCE: Duration = Duration::from_secs(3);

/// The parameter that the payment provider's page adds on return.
#[derive(Default, Deserialize)]
pub(super) struct Coming {
    #[serde(default)]
    payment: String,
}

/// How many of the latest invoices are shown.
const INVOICES: u32 = 6;

/// What is shown of a subscription.
struct Shown {
    head: Head,
    /// The payment method; `None`: there is none, or it isn't known.
    card: Option<SavedCard>,
    /// The payment method isn't known.
    is_unknown: bool,
    /// The form that changes the card: its label and path; `None` where the head's button does it.
    change_card: Option<(&'static str, &'static str)>,
    /// The price, in words.
    price: Vec<String>,
    /// Billed mailboxes.
    billed: String,
    /// Connected mailboxes.
    connected: String,
    recipient: Recipient,
    can_cancel: bool,
    can_visit: bool,
}

/// A payment method, as it is shown.
struct SavedCard {
    name: String,
    expires: String,
    status: Option<Status>,
}

/// A row of the invoices.
struct Row {
    number: String,
    status: Status,
    total: String,
    at: Option<Day>,
    url: Option<String>,
}

/// The page.
#[derive(Template)]
#[template(path = "billing.html")]
struct BillingPage {
    frame: Frame,
    said: Said,
    /// `false`: there is no payment provider.
    is_billed: bool,
    /// `None` without a subscription.
    shown: Option<Shown>,
    /// The latest invoices; `None`: they can't be had at the moment.
    invoices: Option<Vec<Row>>,
    /// The payment provider can't be reached.
    is_unavailable: bool,
    /// When the shown status was fetched.
    fetched_at: Option<Moment>,
}

/// Shows the page.
pub(super) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
    Asked(coming): Asked<Coming>,
) -> Result<Response, PortalProblem> {
    let (billing, id) = (&state.billing, session.id());
    let is_billed = billing.is_configured();
    let mut is_unavailable = false;
    let mut invoices = None;
    if is_billed {
        let (live, latest) = tokio::join!(
            timeout(PATIENCE, billing.live(id)),
            timeout(PATIENCE, billing.latest_invoices(id, INVOICES)),
        );
        invoices = latest.ok().and_then(Result::ok);
        is_unavailable = match live {
            Ok(Ok(_)) => false,
            Ok(Err(BillingError::Gone)) => return Err(PortalProblem::signed_out()),
            Ok(Err(BillingError::Database(error))) => return Err(error.into()),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the payment provider can't be reached for the portal");
                true
            }
            Err(_) => true,
        };
    }
    // The fetched status is stored.
    let stored = billing.stored(id).await;
    let stored = stored.map_err(|error| match error {
        BillingError::Gone => PortalProblem::signed_out(),
        BillingError::Database(error) => PortalProblem::database(&error),
        error => PortalProblem::internal(&error),
    })?;
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Billing,
        "Billing",
        None,
    );
    let now = state.clock.now();
    let body = BillingPage {
        frame: frame.await,
        said: common.said(),
        is_billed,
        is_unavailable,
        invoices: invoices.map(|found| found.into_iter().map(|it| Row::new(it, now)).collect()),
        fetched_at: stored.fetched_at.map(Moment::new),
        shown: Shown::new(&stored, now, coming.payment == "updated"),
    };
    let mut response = page(StatusCode::OK, &body);
    response.extensions_mut().insert(LeadsAway);
    Ok(response)
}

impl Shown {
    fn new(stored: &StoredSubscription, now: DateTime<Utc>, is_updated: bool) -> Option<Self> {
        let reading = Reading::new(stored, now, is_updated)?;
        let head = reading.head();
        let (is_good, card) = (reading.is_good(), reading.card());
        let can_visit = is_good && stored.has_payprov;
        let change_card = match card {
            _ if head.action == Action::AddCard => None,
            Card::Missing | Card::Unknown => Some(("Add a card", "card")),
            // A card that is entered beside one that is charged isn't charged: the customer portal replaces it.
            Card::Entered | Card::Saved(_) if can_visit => Some(("Replace card", "visit")),
            Card::Entered | Card::Saved(_) => Some(("Replace card", "card")),
        };
        let details = stored.details.as_ref();
        let billed = stored.billed_quantity.unwrap_or(stored.quantity);
        let price = details.and_then(|details| details.price.as_ref());
        Some(Self {
            card: match card {
                Card::Saved(method) => Some(SavedCard::new(method, now)),
                Card::Entered => Some(SavedCard::new(&SavedPaymentMethod::default(), now)),
                Card::Missing | Card::Unknown => None,
            },
            is_unknown: card == Card::Unknown,
            change_card,
            price: price
                .map(|price| price_words(price, billed))
                .unwrap_or_default(),
            billed: number(billed),
            connected: number(stored.quantity),
            recipient: details
                .map(|details| details.recipient.clone())
                .unwrap_or_default(),
            can_cancel: is_good && !reading.is_ending(),
            can_visit,
            head,
        })
    }
}

/// The price in words: of a mailbox, of all of them, and what else changes an invoice.
fn price_words(price: &UnitPrice, mailboxes: i64) -> Vec<String> {
    let per = match price.interval_count {
        1 => format!("per {}", price.interval),
        count => format!("every {count} {}s", price.interval),
    };
    let unit = price.amount.short();
    let before = if price.is_adjusted {
        ", before discounts and taxes"
    } else {
        ""
    };
    let sum = price.amount.times(mailboxes).filter(|_| mailboxes > 0);
    let mut words = match sum {
        Some(sum) => {
            let noun = if mailboxes == 1 {
                "mailbox"
            } else {
                "mailboxes"
            };
            let (count, sum) = (number(mailboxes), sum.short());
            vec![format!("{count} {noun} × {unit} = {sum} {per}{before}")]
        }
        None => vec![format!("{unit} per connected mailbox {per}{before}")],
    };
    words.push(
        "Mailboxes connected or disconnected during a period are billed pro rata.".to_owned(),
    );
    words
}

impl SavedCard {
    fn new(method: &SavedPaymentMethod, now: DateTime<Utc>) -> Self {
        let name = match (method.kind.as_str(), method.brand.as_str()) {
            ("card", "") => "Card".to_owned(),
            ("card", brand) => brand_name(brand),
            ("sepa_debit", _) => "SEPA Direct Debit".to_owned(),
            ("us_bank_account", _) => "Bank account".to_owned(),
            ("", _) => "Saved payment method".to_owned(),
            (kind, _) => capitalized(kind),
        };
        let name = if method.last4.is_empty() {
            name
        } else {
            format!("{name} ending in {}", method.last4)
        };
        let until = method.expires.and_then(|expires| expiry(expires, now));
        let (expires, status) = until.unwrap_or_default();
        Self {
            name,
            expires,
            status,
        }
    }
}

fn brand_name(brand: &str) -> String {
    match brand {
        "amex" => "American Express".to_owned(),
        "diners" => "Diners Club".to_owned(),
        "jcb" => "JCB".to_owned(),
        "unionpay" => "UnionPay".to_owned(),
        "unknown" => "Card".to_owned(),
        other => capitalized(other),
    }
}

/// A word of the provider's as a name: `cash_app` is "Cash app".
fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first
        .into_iter()
        .chain(letters)
        .collect::<String>()
        .replace('_', " ")
}

impl Row {
    fn new(invoice: ListedInvoice, now: DateTime<Utc>) -> Self {
        let (word, class) = match invoice.status.as_str() {
            "paid" => ("Paid", "good"),
            "open" => ("Open", "bad"),
            "void" => ("Void", "plain"),
            "uncollectible" => ("Uncollectible", "plain"),
            _ => ("Unknown", "plain"),
        };
        let number = Some(invoice.number).filter(|number| !number.is_empty());
        Self {
            number: number.unwrap_or_else(|| "Invoice".to_owned()),
            status: Status { word, class },
            total: invoice.total.map(|total| total.short()).unwrap_or_default(),
            at: invoice.at.map(|at| day(at, now)),
            url: invoice
                .url
                .filter(|url| url.starts_with("https://") || url.starts_with("http://")),
        }
    }
}
