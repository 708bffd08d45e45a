//! The apps, and who owns them.

use std::net::IpAddr;

use super::SeedError;
use super::people::Company;
use super::period::Period;
use super::stopped_clock::StoppedClock;
use crate::daemon::Daemon;
use crate::dev::demo::Demo;
use mailgate_domain::accounts::AppFields;
use mailgate_types::audit::{Author, Credential};
use mailgate_types::ids::{AppId, SubscriberId};

/// Where the subscriber works (RFC 5737).
pub(super) const OFFICE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 23));
pub(super) const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 77));

/// The subscriber, with its API secret.
pub(super) fn subscriber(of: SubscriberId, address: IpAddr) -> Author {
    Author::subscriber(address, of, Credential::ApiSecret { since: None })
}

/// The apps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Apps {
    demo: AppId,
    northwind: AppId,
    talentwerk: AppId,
}

impl Apps {
    /// That of a company.
    pub(super) const fn of(&self, company: Company) -> AppId {
        match company {
            Company::Demo => self.demo,
            Company::Northwind => self.northwind,
            Company::Talentwerk => self.talentwerk,
        }
    }
}

/// Creates the apps besides the demo's.
pub(super) async fn create(
    daemon: &Daemon,
    demo: &Demo,
    period: &Period,
) -> Result<Apps, SeedError> {
    let owner = demo.app.subscriber;
    let author = subscriber(owner, OFFICE);
    let northwind = AppFields {
        name: "Northwind CRM".to_owned(),
        logo_url: "https://northwind.example/logo.png".to_owned(),
        multiuser: true,
        suppress_bounced: true,
        callback_url: "https://crm.northwind.example/mail/connected".to_owned(),
        ..AppFields::default()
    };
    let talentwerk = AppFields {
        name: "Talentwerk Recruiting".to_owned(),
        multilink: true,
        require_connect_session: Some(true),
        callback_url: "https://app.talentwerk.example/postfach".to_owned(),
        ..AppFields::default()
    };
    let create = async |fields: &AppFields, minutes| {
        let accounts = daemon
            .accounts
            .by_clock(StoppedClock::at(period.set_up(minutes)));
        accounts.create_own_app(owner, fields, author).await
    };
    Ok(Apps {
        demo: demo.app.app,
        northwind: create(&northwind, 25).await?.id,
        talentwerk: create(&talentwerk, 150).await?.id,
    })
}
