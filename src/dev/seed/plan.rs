//! What is written, to whom, and what becomes of it: the same on every run, whenever it is.

use super::fate::{Fate, Response, fate, response};
use super::people::{Company, PEOPLE, Person};
use super::random::Random;
use super::texts::{UNUSUAL, UNUSUAL_RECIPIENTS};
use mailgate_types::door::Door;
use mailgate_types::metadata::Metadata;

/// All messages that have been sent or tried.
pub(super) const MESSAGES: usize = 2_000;

/// Messages that are still to be sent.
pub(super) const SCHEDULED: usize = 10;

/// Mailboxes that have ended send none of the messages from this one on.
const LATER: usize = 1_200;

/// A message.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Its place in [`PEOPLE`].
    pub(super) person: usize,
    pub(super) to: String,
    pub(super) cc: Vec<String>,
    pub(super) bcc: Vec<String>,
    pub(super) subject: String,
    pub(super) text: String,
    /// The name of its attachment.
    pub(super) file: Option<String>,
    pub(super) metadata: Metadata,
    pub(super) door: Door,
    pub(super) fate: Fate,
    pub(super) response: Response,
    /// The message whose reply it answers.
    pub(super) follows: Option<usize>,
}

impl Plan {
    /// Who writes it.
    pub(super) fn person(&self) -> &'static Person {
        &PEOPLE[self.person]
    }
}

/// All messages, in the order in which they were sent.
pub(super) fn messages() -> Vec<Plan> {
    let mut plans: Vec<Plan> = Vec::with_capacity(MESSAGES);
    for number in 0..MESSAGES {
        let mut random = Random::of(10, number);
        let fate = fate(number);
        let person = author(number, fate, &mut random);
        let mut plan = written(number, person, &mut random);
        plan.fate = fate;
        plan.response = response(number, fate);
        if number % 17 == 3
            && let Some(earlier) = conversation(&plans, person)
        {
            let answered = &plans[earlier];
            plan.to.clone_from(&answered.to);
            plan.subject = format!("Re: {}", answered.subject.trim_start_matches("Re: "));
            plan.metadata = answered.metadata.clone();
            plan.follows = Some(earlier);
        }
        plans.push(plan);
    }
    plans
}

/// The messages that are scheduled, by which of [`PEOPLE`].
pub(super) fn scheduled() -> Vec<Plan> {
    let people = active_of(Company::Demo);
    let numbers = MESSAGES..MESSAGES + SCHEDULED;
    let plans = numbers.map(|number| {
        let person = people[number % people.len()];
        written(number, person, &mut Random::of(11, number))
    });
    plans.collect()
}

/// The places of those of a company that can still send.
fn active_of(company: Company) -> Vec<usize> {
    let people = PEOPLE.iter().enumerate();
    let active = people.filter(|(_, it)| it.company == company && it.ended.is_none());
    active.map(|(place, _)| place).collect()
}

fn author(number: usize, fate: Fate, random: &mut Random) -> usize {
    // The CRM's endpoints must stay healthy, so they get no new events.
    if matches!(fate, Fate::Waiting | Fate::Unknown) {
        let mut people = active_of(Company::Talentwerk);
        people.extend(active_of(Company::Demo));
        return people[number % people.len()];
    }
    let shares = || {
        let people = PEOPLE.iter().enumerate();
        people.filter(|(_, it)| it.ended.is_none() || number < LATER)
    };
    let mut left = random.below(shares().map(|(_, it)| it.share).sum());
    for (place, person) in shares() {
        match left.checked_sub(person.share) {
            Some(rest) => left = rest,
            None => return place,
        }
    }
    0
}

/// The last message but a few that this person has sent, and that was answered.
fn conversation(plans: &[Plan], person: usize) -> Option<usize> {
    let earlier = plans.len().saturating_sub(60);
    let answered = |plan: &Plan| {
        plan.person == person && plan.response == Response::Reply && !plan.subject.is_empty()
    };
    plans[..earlier].iter().rposition(answered)
}

fn written(number: usize, place: usize, random: &mut Random) -> Plan {
    let person = &PEOPLE[place];
    let texts = person.tongue.texts();
    let letters = match person.company {
        Company::Talentwerk => texts.recruiting,
        Company::Demo | Company::Northwind => texts.business,
    };
    let (name, local) = random.pick(texts.names).copied().unwrap_or_default();
    let reference = (10_000 + number).to_string();
    let (subject, text) = match random.pick(letters) {
        Some(letter) => (letter.subject, letter.text),
        None => ("", ""),
    };
    let subject = if number % 61 == 8 {
        UNUSUAL[number / 61 % UNUSUAL.len()]
    } else {
        subject
    };
    let with = |text: &str| text.replace("{n}", &reference);
    let to = if number % 97 == 12 {
        UNUSUAL_RECIPIENTS[number / 97 % UNUSUAL_RECIPIENTS.len()].to_owned()
    } else {
        format!("{local}@{}", random.word(texts.domains))
    };
    let mut copies = |percent| {
        let copied = random.percent(percent).then(|| {
            let (_, local) = random.pick(texts.names).copied().unwrap_or_default();
            format!("{local}@{}", random.word(texts.domains))
        });
        copied.filter(|copied| *copied != to).into_iter().collect()
    };
    let (cc, bcc) = (copies(9), copies(2));
    let door = if random.percent(28) {
        Door::Smtp
    } else {
        Door::Rest
    };
    Plan {
        person: place,
        cc,
        bcc,
        subject: with(subject),
        text: with(text)
            .replace("{name}", name)
            .replace("{sender}", person.name),
        file: random.percent(11).then(|| with(texts.file)),
        metadata: metadata(person.company, number, random),
        door,
        fate: Fate::Sent(0),
        response: Response::Nothing,
        follows: None,
        to,
    }
}

fn metadata(company: Company, number: usize, random: &mut Random) -> Metadata {
    let mut metadata = Metadata::default();
    let mut insert = |key, value: &str| {
        // Both are valid.
        let _ = metadata.insert(key, value);
    };
    match company {
        Company::Northwind => {
            insert("order", &format!("NW-{}", 10_000 + number));
            if random.percent(35) {
                insert(
                    "campaign",
                    random.word(&["spring-2026", "renewals", "onboarding"]),
                );
            }
        }
        Company::Talentwerk => {
            insert("candidate", &format!("C-{}", 10_000 + number));
            insert("stage", random.word(&["applied", "interview", "offer"]));
        }
        Company::Demo if random.percent(40) => insert("source", "demo"),
        Company::Demo => {}
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dev::seed::fate::{CANCELLED, WAITING};
    use crate::dev::seed::texts::Tongue;
    use mailgate_types::email_address::EmailAddress;

    #[test]
    fn all_of_it_is_there() {
        let plans = messages();
        assert_eq!(plans.len(), MESSAGES);
        let count = |of: fn(&Plan) -> bool| plans.iter().filter(|plan| of(plan)).count();
        let sent = count(|plan| matches!(plan.fate, Fate::Sent(_)));
        assert!((1_820..1_880).contains(&sent), "{sent} sent");
        let waiting = count(|plan| matches!(plan.fate, Fate::Waiting | Fate::Unknown));
        assert_eq!(waiting, WAITING.len());
        assert_eq!(count(|plan| plan.fate == Fate::Cancelled), CANCELLED.len());
        assert!(count(|plan| plan.response == Response::Bounce) > 20);
        assert!(count(|plan| plan.response == Response::Reply) > 100);
        assert!(count(|plan| plan.follows.is_some()) > 30);
        assert!(count(|plan| plan.subject.is_empty()) > 0);
        for tongue in [
            Tongue::English,
            Tongue::German,
            Tongue::French,
            Tongue::Spanish,
            Tongue::Japanese,
        ] {
            let written = plans.iter().filter(|plan| plan.person().tongue == tongue);
            assert!(written.count() > 50, "{tongue:?}");
        }
        assert!(
            plans[LATER..]
                .iter()
                .all(|plan| plan.person().ended.is_none())
        );
        let longest = plans.iter().filter_map(|plan| plan.to.split('@').next());
        assert_eq!(longest.map(str::len).max(), Some(64));
    }

    #[test]
    fn nothing_goes_to_a_real_address() {
        for plan in messages().iter().chain(&scheduled()) {
            for address in std::iter::once(&plan.to).chain(&plan.cc).chain(&plan.bcc) {
                assert!(EmailAddress::parse(address).is_ok(), "{address}");
                let domain = address.rsplit('@').next().unwrap_or_default();
                let is_reserved = domain.ends_with(".example")
                    || ["example.com", "example.org", "example.net"]
                        .iter()
                        .any(|it| domain == *it || domain.ends_with(&format!(".{it}")));
                assert!(is_reserved, "{address}");
            }
        }
    }
}
