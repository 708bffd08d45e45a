//! Connects the mailboxes, as their users would have.

use super::SeedError;
use super::apps::Apps;
use super::people::{PEOPLE, Person};
use super::period::Period;
use super::stopped_clock::StoppedClock;
use crate::daemon::Daemon;
use crate::dev::demo::Demo;
use mailgate_domain::mailboxes::NewConnection;
use mailgate_sandbox::provider::SandboxProvider;
use mailgate_server::http::connectable;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, CredentialId};

/// A connected mailbox.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) app: AppId,
    pub(super) credential: CredentialId,
    pub(super) email: String,
}

/// Connects all mailboxes but the demo's own; one for each of [`PEOPLE`].
pub(super) async fn connect(
    daemon: &Daemon,
    provider: &SandboxProvider,
    demo: &Demo,
    apps: &Apps,
    period: &Period,
) -> Result<Vec<Seat>, SeedError> {
    let mut seats = Vec::with_capacity(PEOPLE.len());
    for (minutes, person) in (0..).zip(&PEOPLE) {
        let app = apps.of(person.company);
        if app == demo.app.app {
            seats.push(Seat {
                app,
                credential: demo.mailbox.credential,
                email: demo.mailbox.email.clone(),
            });
            continue;
        }
        let at = StoppedClock::at(period.set_up(180 + 37 * minutes));
        seats.push(connect_one(daemon, provider, app, person, at).await?);
    }
    for (person, seat) in PEOPLE.iter().zip(&seats) {
        if let Some((reason, hours)) = person.ended {
            let at = StoppedClock::at(period.ago(hours, 0));
            let mailboxes = daemon.mailboxes.by_clock(at);
            mailboxes.end_refused(seat.credential, None, reason).await?;
        }
    }
    Ok(seats)
}

async fn connect_one(
    daemon: &Daemon,
    provider: &SandboxProvider,
    app: AppId,
    person: &Person,
    at: SharedClock,
) -> Result<Seat, SeedError> {
    let redirect_uri = format!("http://{}/oauth/callback", connectable(daemon.http_address));
    let granted = provider.authorize(&redirect_uri, person.address).await?;
    let connected = daemon
        .mailboxes
        .by_clock(at)
        .connect(&NewConnection {
            app,
            user_id: person.user_id,
            plugin: person.plugin,
            code: &granted.code,
            redirect_uri: &redirect_uri,
            code_verifier: &granted.code_verifier,
        })
        .await?;
    Ok(Seat {
        app,
        credential: connected.credential,
        email: connected.email,
    })
}
