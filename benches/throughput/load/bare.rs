//! The gateway's own submission client with no gateway around it: no log-in to look up, no journal.

use std::sync::Arc;

use bytes::Bytes;
use mailgate_providers::mail::MailProviders;
use mailgate_providers::mail::transport::{
    AlwaysPermitted, MailTransport, MailboxAccess, Recipients,
};
use mailgate_providers::mail::verdict::Verdict;
use mailgate_types::clock::{SharedClock, SystemClock};
use mailgate_types::ids::CredentialId;
use mailgate_types::message::Message;
use mailgate_types::plugin::Plugin;
use secrecy::SecretString;

use super::message::{self, RECIPIENT, SENDER};
use super::{Client, Outcome};

/// A message that is ready to go out, and how it goes.
struct Ready {
    transport: Arc<dyn MailTransport>,
    account: MailboxAccess,
    recipients: Recipients,
    message: Message,
}

pub(super) struct BareClient(Arc<Ready>);

impl Client for BareClient {
    async fn send(&mut self) -> Outcome<()> {
        let ready = &self.0;
        let verdict = ready
            .transport
            .submit(
                &ready.account,
                &ready.recipients,
                &ready.message,
                &AlwaysPermitted,
            )
            .await;
        match verdict {
            Verdict::Sent { .. } => Ok(()),
            other => Err(format!("the provider did not take a message: {other:?}").into()),
        }
    }
}

pub(super) fn clients(clients: usize) -> Outcome<Vec<BareClient>> {
    let settings = mailgate_settings::load_operator(None, std::env::vars_os())?;
    let clock: SharedClock = Arc::new(SystemClock);
    let providers = MailProviders::new(
        &settings.plugins,
        &settings.sending,
        &settings.smtp_host,
        &clock,
    )?;
    let provider = providers
        .get(Plugin::A)
        .ok_or("the environment sets no provider up")?;
    let ready = Arc::new(Ready {
        transport: Arc::clone(&provider.transport),
        account: MailboxAccess {
            credential: CredentialId::at(clock.now()),
            address: SENDER.to_owned(),
            generation: 1,
            access_token: SecretString::from("access-token-of-the-bench"),
            scopes: Arc::from([]),
        },
        recipients: Recipients {
            addresses: vec![RECIPIENT.to_owned()],
            smtputf8: false,
        },
        message: Message::from_pieces(vec![Bytes::from(message::raw())]),
    });
    Ok((0..clients)
        .map(|_| BareClient(Arc::clone(&ready)))
        .collect())
}
