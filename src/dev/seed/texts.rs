//! What people write, in five languages.

mod english;
mod french;
mod german;
mod japanese;
mod spanish;

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tongue {
    English,
    German,
    French,
    Spanish,
    Japanese,
}

/// A letter: `{name}` is who it is to, `{sender}` who it is from, and `{n}` a number.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) subject: &'static str,
    pub(super) text: &'static str,
}

/// What is written in a language.
#[derive(Debug)]
pub(super) struct Texts {
    /// Names, each with the local part of its address.
    pub(super) names: &'static [(&'static str, &'static str)],
    /// Domains of addresses.
    pub(super) domains: &'static [&'static str],
    /// To customers.
    pub(super) business: &'static [Letter],
    /// To applicants.
    pub(super) recruiting: &'static [Letter],
    /// A file's name, with `{n}`.
    pub(super) file: &'static str,
}

impl Tongue {
    /// Its texts.
    pub(super) const fn texts(self) -> &'static Texts {
        match self {
            Self::English => &english::TEXTS,
            Self::German => &german::TEXTS,
            Self::French => &french::TEXTS,
            Self::Spanish => &spanish::TEXTS,
            Self::Japanese => &japanese::TEXTS,
        }
    }
}

/// Subjects that pages must cope with: emoji, right-to-left text, a long one, markup, and none at all.
pub(super) const UNUSUAL: [&str; 8] = [
    "🎉 You're in! Your early access starts today 🚀",
    "تأكيد حجزكم رقم {n} لدى نورث ويند",
    "אישור הזמנה {n} – תודה שבחרת בנו",
    "",
    "Re: Fwd: Re: Minutes of the steering committee on the migration of the regional ordering systems, with all open \
     points, the decisions that are still to be confirmed by procurement, the revised timetable for the third and the \
     fourth quarter, and the list of everyone who has not yet answered the questionnaire of last month ({n})",
    "Quote <{n}> & \"terms\" – 100 % confirmed",
    "👋 Schnelle Frage zu Ihrer Bestellung {n}",
    "½ price until Sunday – 50€ off your next order (№ {n})",
];

/// Recipients whose addresses are as long as RFC 5321 allows, or have what addresses rarely have.
pub(super) const UNUSUAL_RECIPIENTS: [&str; 5] = [
    "procurement-department-of-the-regional-office-for-eastern-europe@example.com",
    "o'brien+orders/2026@example.org",
    "first.middle.last-name_with.many.parts@mail.customers.division.example",
    "x@example.net",
    "accounts_payable+invoice=10482@very-long-subdomain-of-a-customer.shared-services.example",
];
