//! The filters that chance makes, and what a look at every row finds with them.

use chrono::TimeDelta;
use mailgate_domain::reports::{AppReference, Filter, Search, Start};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::LogId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;
use rand::RngExt;
use rand::rngs::StdRng;

use super::{ADDRESSES, DAYS, FILTERS, Sample, World};

const PARTS: [&str; 8] = [
    "order",
    "ORDER 100%",
    "gr\u{dc}",
    "_B [",
    "\\D",
    ".",
    "\u{e9}",
    "zzz",
];

impl World {
    fn filter(&mut self) -> Filter {
        let mut search = Search::default();
        while search.is_empty() {
            if self.random.random_bool(0.3) {
                let address = self.one(&ADDRESSES);
                let address = if self.random.random_bool(0.5) {
                    address.to_ascii_uppercase()
                } else {
                    address.to_owned()
                };
                search.recipient = Some(EmailAddress::parse(&address).unwrap());
            }
            if self.random.random_bool(0.15) {
                let samples = self.samples.clone();
                let id = self.one(&samples).message_id.unwrap_or_default();
                search.message_id = Some(id.trim_matches(['<', '>']).to_owned());
            }
            if self.random.random_bool(0.05) {
                let samples = self.samples.clone();
                search.log = Some(self.one(&samples).id);
            }
            if self.random.random_bool(0.2) {
                let mailbox = self.random.random_range(0..self.mailboxes.len());
                let mailbox = &self.mailboxes[mailbox];
                search.user = Some(if self.random.random_bool(0.5) {
                    mailbox.user_id.to_owned()
                } else {
                    mailbox.user.to_string()
                });
            }
            if self.random.random_bool(0.2) {
                let mailbox = self.random.random_range(0..self.mailboxes.len());
                search.credential = Some(self.mailboxes[mailbox].id);
            }
            if self.random.random_bool(0.3) {
                search.subject = Some(self.one(&PARTS).to_owned());
            }
        }
        let mut rarely = |chance: f64| self.random.random_bool(chance);
        let (app, status, plugin) = (rarely(0.2), rarely(0.2), rarely(0.2));
        let (from, before, bounced) = (rarely(0.2), rarely(0.2), rarely(0.3));
        let app = app.then(|| self.random.random_range(0..self.apps.len()));
        let back = |random: &mut StdRng| {
            TimeDelta::milliseconds(
                random.random_range(0..i64::try_from(DAYS).unwrap() * 86_400_000),
            )
        };
        Filter {
            app: app.map(|app| AppReference::parse(&self.apps[app].to_string()).unwrap()),
            status: status.then(|| self.one(&LogStatus::ALL)),
            plugin: plugin.then(|| self.one(&Plugin::ALL)),
            bounced: bounced.then(|| self.random.random_bool(0.5)),
            from: from.then(|| self.now - back(&mut self.random)),
            before: before.then(|| self.now - back(&mut self.random)),
            search,
        }
    }

    /// Looks at every message.
    fn expected(&self, filter: &Filter) -> Vec<LogId> {
        let search = &filter.search;
        let of_app = |app: &AppReference, sample: &Sample| {
            *app == AppReference::parse(&self.apps[sample.app].to_string()).unwrap()
        };
        let lower = |text: &str| text.to_lowercase();
        let matches = |sample: &&Sample| {
            let mailbox = &self.mailboxes[sample.mailbox];
            let everybody = sample.to.iter().chain(&sample.cc).chain(&sample.bcc);
            let mut everybody = everybody.map(|it| ADDRESSES[*it]);
            let message_id = sample.message_id.as_deref();
            sample.app < 2
                && filter.app.as_ref().is_none_or(|app| of_app(app, sample))
                && filter.status.is_none_or(|it| it == sample.status)
                && filter.plugin.is_none_or(|it| it == sample.plugin)
                && filter.bounced.is_none_or(|it| it == sample.bounced)
                && filter.from.is_none_or(|from| sample.at >= from)
                && filter.before.is_none_or(|before| sample.at < before)
                && (search.recipient.as_ref())
                    .is_none_or(|it| everybody.any(|one| one.eq_ignore_ascii_case(it.as_str())))
                && (search.message_id.as_ref()).is_none_or(|it| {
                    message_id == Some(it) || message_id == Some(&format!("<{it}>"))
                })
                && search.log.is_none_or(|it| it == sample.id)
                && search.credential.is_none_or(|it| it == mailbox.id)
                && (search.user.as_ref())
                    .is_none_or(|it| *it == mailbox.user.to_string() || it == mailbox.user_id)
                && (search.subject.as_ref())
                    .is_none_or(|it| lower(sample.subject).contains(&lower(it)))
        };
        let matching = self.samples.iter().filter(matches);
        matching.map(|sample| sample.id).collect()
    }

    /// Searches page by page; `arriving`: with newer rows that come in between.
    pub(super) async fn check(&mut self, stage: &str, arriving: bool) {
        for _ in 0..FILTERS {
            let filter = self.filter();
            let expected = self.expected(&filter);
            let limit = self.random.random_range(1..=100);
            let offset = if self.random.random_bool(0.3) {
                self.random.random_range(0..50)
            } else {
                0
            };
            let place = format!("{stage}: {filter:?}, {limit}, {offset}");
            let mut found = Vec::new();
            let mut start = Start::Offset(i64::try_from(offset).unwrap());
            loop {
                let page = self
                    .reports
                    .logs(self.gateway.subscriber, &filter, limit, start)
                    .await
                    .unwrap();
                assert_eq!(page.total, None, "{place}");
                assert_eq!(page.has_more, page.next.is_some(), "{place}");
                let is_whole = page.searched_until.is_none();
                assert!(
                    page.logs.len() == limit || !is_whole || !page.has_more,
                    "{place}"
                );
                found.extend(page.logs.iter().map(|log| log.id));
                let Some(next) = page.next else { break };
                start = Start::At(next);
                if arriving {
                    // Newer than all that came before.
                    self.arrived += 1;
                    let at = self.now + TimeDelta::milliseconds(self.arrived);
                    let sample = self.sample(at);
                    self.log(&[sample]).await;
                }
            }
            let wanted: Vec<LogId> = expected.into_iter().skip(offset).collect();
            assert_eq!(found, wanted, "{place}");
        }
    }
}
