use super::banner::banner;
use super::expiry::expiry;
use super::*;
use chrono::TimeDelta;
use mailgate_types::billing_details::{BillingDetails, UnitPrice};
use mailgate_types::money::AmountDue;

fn now() -> DateTime<Utc> {
    // 25 Nov 2026, 12:00.
    DateTime::from_timestamp(1_795_608_000, 0).unwrap_or_default()
}

fn in_days(days: i64) -> Option<DateTime<Utc>> {
    now().checked_add_signed(TimeDelta::days(days))
}

fn euros(minor_units: i64) -> AmountDue {
    AmountDue {
        minor_units,
        currency: "eur".to_owned(),
    }
}

/// What is known: nothing yet; no card and no amount; no card; a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Bare,
    NoCard,
    Card,
}

fn stored(status: Option<SubscriptionStatus>, known: Known) -> StoredSubscription {
    use SubscriptionStatus as S;
    let due = OpenAmount {
        amount: euros(5_500),
        since: in_days(0),
        is_failed: true,
    };
    let details = BillingDetails {
        price: Some(UnitPrice {
            amount: euros(500),
            interval: "month".to_owned(),
            interval_count: 1,
            is_adjusted: false,
        }),
        payment_method: (known == Known::Card).then(SavedPaymentMethod::default),
        due: Some(due).filter(|_| matches!(status, Some(S::PastDue | S::Unpaid))),
        ..BillingDetails::default()
    };
    StoredSubscription {
        has_payprov: true,
        subscription: Some(LiveSubscription {
            status,
            id: "sub_1".to_owned(),
            current_period_end: in_days(14),
            cancel_at_period_end: false,
            trial_end: in_days(14).filter(|_| status == Some(S::Trialing)),
        }),
        billed_quantity: Some(11),
        quantity: 12,
        fetched_at: Some(now()),
        grace_ends_at: None,
        allowed: matches!(status, Some(S::Trialing | S::Active)),
        details: match known {
            Known::Nothing => None,
            Known::Bare => Some(BillingDetails::default()),
            Known::NoCard | Known::Card => Some(details),
        },
    }
}

fn label(action: &Action) -> &str {
    match action {
        Action::AddCard => "Add a card",
        Action::Pay(label) => label,
        Action::Resume => "Resume",
        Action::None => "",
    }
}

fn said(stored: &StoredSubscription, is_updated: bool) -> (String, String, String) {
    let Some(reading) = Reading::new(stored, now(), is_updated) else {
        return Default::default();
    };
    let head = reading.head();
    (
        head.sentence.plain(),
        head.amount.clone(),
        label(&head.action).to_owned(),
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_status_with_and_without_a_card() {
    use Known as K;
    use SubscriptionStatus as S;
    let stop = "Sending is stopped: ";
    for (status, known, is_updated, sentence, amount, action) in [
        (
            Some(S::Trialing),
            K::NoCard,
            false,
            "Trial ends 9 Dec (14 days left). Add a card to keep sending.",
            "",
            "Add a card",
        ),
        (
            Some(S::Trialing),
            K::Nothing,
            false,
            "Trial ends 9 Dec (14 days left). Add a card to keep sending.",
            "",
            "Add a card",
        ),
        (
            Some(S::Trialing),
            K::NoCard,
            true,
            "Trial ends 9 Dec (14 days left). Card saved: the paid plan starts by itself then.",
            "",
            "",
        ),
        (
            Some(S::Active),
            K::Card,
            false,
            "Next payment: €55.00 on 9 Dec.",
            "€55.00",
            "",
        ),
        (
            Some(S::Active),
            K::Card,
            true,
            "Card saved. Next payment: €55.00 on 9 Dec.",
            "€55.00",
            "",
        ),
        (
            Some(S::Active),
            K::Bare,
            false,
            "Next invoice on 9 Dec.",
            "",
            "",
        ),
        (
            Some(S::Active),
            K::Nothing,
            false,
            "Next invoice on 9 Dec.",
            "",
            "",
        ),
        (
            Some(S::PastDue),
            K::Card,
            false,
            "Sending is stopped: the payment of €55.00 failed on 25 Nov.",
            "€55.00",
            "Pay €55.00",
        ),
        (
            Some(S::PastDue),
            K::NoCard,
            false,
            "Sending is stopped: the payment of €55.00 failed on 25 Nov. Add a card, then pay to resume sending.",
            "€55.00",
            "Add a card",
        ),
        (
            Some(S::PastDue),
            K::Card,
            true,
            "Card saved. Pay €55.00 to resume sending.",
            "€55.00",
            "Pay €55.00",
        ),
        (
            Some(S::PastDue),
            K::NoCard,
            true,
            "Card saved. Pay €55.00 to resume sending.",
            "€55.00",
            "Pay €55.00",
        ),
        (
            Some(S::PastDue),
            K::Nothing,
            false,
            "Sending is stopped: a payment is due.",
            "",
            "Pay open invoices",
        ),
        (
            Some(S::PastDue),
            K::Nothing,
            true,
            "Card saved. Pay open invoices to resume sending.",
            "",
            "Pay open invoices",
        ),
        (
            Some(S::PastDue),
            K::Bare,
            false,
            "Sending is stopped: a payment is due. Add a card, then pay to resume sending.",
            "",
            "Add a card",
        ),
        (
            Some(S::Unpaid),
            K::Card,
            false,
            "Sending is stopped: the payment of €55.00 failed on 25 Nov.",
            "€55.00",
            "Pay €55.00",
        ),
        (
            Some(S::Canceled),
            K::Card,
            false,
            "Sending is stopped: the subscription has ended. Restart it to send again.",
            "€60.00",
            "Restart for €60.00",
        ),
        (
            Some(S::Canceled),
            K::NoCard,
            false,
            "Sending is stopped: the subscription has ended. Add a card, then restart it.",
            "€60.00",
            "Add a card",
        ),
        (
            Some(S::Canceled),
            K::NoCard,
            true,
            "Card saved. Restart the subscription to resume sending.",
            "€60.00",
            "Restart for €60.00",
        ),
        (
            Some(S::Canceled),
            K::Nothing,
            false,
            "Sending is stopped: the subscription has ended. Restart it to send again.",
            "",
            "Restart subscription",
        ),
        (
            None,
            K::Card,
            false,
            "The payment provider reports a status that this gateway doesn't know. Sending is stopped.",
            "",
            "",
        ),
    ] {
        let stored = stored(status, known);
        let expected = (sentence.to_owned(), amount.to_owned(), action.to_owned());
        assert_eq!(
            said(&stored, is_updated),
            expected,
            "{status:?} {known:?} {is_updated}"
        );
        let blocked = !stored.allowed;
        assert_eq!(
            sentence.contains("stopped") || is_updated,
            blocked || is_updated,
            "{stop}"
        );
        assert!(
            !(is_updated && sentence.contains("Add a card")),
            "{sentence}"
        );
        assert!(!sentence.contains("customer portal"), "{sentence}");
    }
}

#[test]
fn trials_cancellations_and_grace() {
    use SubscriptionStatus as S;
    let mut trial = stored(Some(S::Active), Known::Card);
    trial
        .subscription
        .iter_mut()
        .for_each(|it| it.trial_end = in_days(1));
    let (sentence, amount, _) = said(&trial, false);
    assert_eq!(
        sentence,
        "Trial ends 26 Nov (1 day left). Your card is saved: the paid plan starts by itself then, with a payment of €55.00."
    );
    assert_eq!(amount, "€55.00");
    trial
        .subscription
        .iter_mut()
        .for_each(|it| it.cancel_at_period_end = true);
    let expected = "The subscription is cancelled: sending stops on 9 Dec.";
    assert_eq!(
        said(&trial, false),
        (expected.to_owned(), String::new(), "Resume".to_owned())
    );

    let mut late = stored(Some(S::PastDue), Known::Card);
    late.allowed = true;
    late.grace_ends_at = in_days(3);
    let (sentence, ..) = said(&late, false);
    assert_eq!(
        sentence,
        "The payment of €55.00 failed on 25 Nov. Sending stops on 28 Nov."
    );
    assert_eq!(
        said(&late, true).0,
        "Card saved. Pay €55.00 to keep sending."
    );

    // The first invoice of a subscription that begins unpaid.
    late.allowed = false;
    if let Some(due) = late.details.as_mut().and_then(|it| it.due.as_mut()) {
        due.is_failed = false;
    }
    assert_eq!(
        said(&late, false).0,
        "Sending is stopped: €55.00 is due since 25 Nov."
    );

    // Discounts and taxes make another amount.
    let mut taxed = stored(Some(S::Active), Known::Card);
    if let Some(price) = taxed.details.as_mut().and_then(|it| it.price.as_mut()) {
        price.is_adjusted = true;
    }
    assert_eq!(
        said(&taxed, false),
        (
            "Next invoice on 9 Dec.".to_owned(),
            String::new(),
            String::new()
        )
    );
}

#[test]
fn banners_say_what_to_do() {
    use Known as K;
    use SubscriptionStatus as S;
    for (status, known, sentence, link) in [
        (
            Some(S::PastDue),
            K::Card,
            "Sending is stopped: payment failed.",
            "Pay €55.00",
        ),
        (
            Some(S::PastDue),
            K::NoCard,
            "Sending is stopped: payment failed.",
            "Add a card",
        ),
        (
            Some(S::PastDue),
            K::Nothing,
            "Sending is stopped: a payment is due.",
            "Pay open invoices",
        ),
        (
            Some(S::Unpaid),
            K::Card,
            "Sending is stopped: payment failed.",
            "Pay €55.00",
        ),
        (
            Some(S::Canceled),
            K::Card,
            "Sending is stopped: the subscription has ended.",
            "Restart for €60.00",
        ),
        (
            Some(S::Canceled),
            K::NoCard,
            "Sending is stopped: the subscription has ended.",
            "Add a card",
        ),
        (
            Some(S::Trialing),
            K::NoCard,
            "Trial ends 9 Dec (14 days left).",
            "Add a card",
        ),
    ] {
        let shown = banner(&stored(status, known), now());
        let found = (shown.sentence.plain(), shown.link);
        assert_eq!(
            found,
            (sentence.to_owned(), link.to_owned()),
            "{status:?} {known:?}"
        );
    }
    let mut none = stored(None, K::Nothing);
    none.subscription = None;
    let none = banner(&none, now()).sentence.plain();
    assert_eq!(none, "Sending is stopped: there is no subscription yet.");
}

#[test]
fn cards_expire_with_their_month() {
    let word = |expires| {
        expiry(expires, now()).map(|(text, status)| (text, status.map_or("", |status| status.word)))
    };
    for (expires, text, expected) in [
        ((2026, 10), "10/2026", "Expired"),
        ((2026, 11), "11/2026", "Expires soon"),
        ((2026, 12), "12/2026", "Expires soon"),
        ((2027, 2), "02/2027", ""),
        ((2099, 12), "12/2099", ""),
    ] {
        assert_eq!(word(expires), Some((text.to_owned(), expected)));
    }
    assert_eq!(word((2026, 13)), None);
    assert_eq!(word((i32::MAX, 12)), None);
    assert_eq!(word((2026, u32::MAX)), None);
}
