//! Requests that were refused.

use chrono::TimeDelta;

use super::apps::Apps;
use super::people::Company;
use super::period::Period;
use super::random::Random;
use mailgate_domain::history::Refused;
use mailgate_types::door::Door;
use mailgate_types::ids::RefusalId;
use mailgate_types::refusal::RefusalReason;

/// How many.
const REFUSED: usize = 36;

/// Refused requests over the period.
pub(super) fn past(apps: &Apps, period: &Period) -> Vec<Refused> {
    let refused = (0..REFUSED).map(|number| {
        let mut random = Random::of(50, number);
        let ago = TimeDelta::minutes(random.between(9, 13 * 24 * 60));
        let ago = ago.min(period.now - period.start());
        let (company, door, reason, from) = match number % 6 {
            0 => (
                Company::Northwind,
                Door::Rest,
                RefusalReason::InvalidRequest,
                None,
            ),
            1 => (
                Company::Northwind,
                Door::Rest,
                RefusalReason::RecipientSuppressed,
                Some("emma.clarke@northwind.example"),
            ),
            2 => (
                Company::Northwind,
                Door::Rest,
                RefusalReason::NoMailbox,
                Some("o.kovalenko@northwind.example"),
            ),
            3 => (
                Company::Talentwerk,
                Door::Smtp,
                RefusalReason::FromNotAuthorized,
                Some("info@talentwerk.example"),
            ),
            4 => (
                Company::Talentwerk,
                Door::Rest,
                RefusalReason::MailboxNotAllowed,
                Some("anna.schuster@talentwerk.example"),
            ),
            _ => (
                Company::Talentwerk,
                Door::Smtp,
                RefusalReason::MessageTooLarge,
                Some("jobs@talentwerk.example"),
            ),
        };
        let to = random.word(&[
            "einkauf@example.com",
            "olivia.bennett@example.org",
            "lena.schaefer@example.net",
        ]);
        Refused {
            app: apps.of(company),
            id: RefusalId::at(period.now - ago),
            door,
            reason,
            from: from.map(str::to_owned),
            to: (reason != RefusalReason::InvalidRequest).then(|| to.to_owned()),
        }
    });
    refused.collect()
}
