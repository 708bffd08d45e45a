//! Handles submissions.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use secrecy::ExposeSecret;

use super::reply::{authentication_failed, refused, reply, unavailable};
use mailgate_domain::accounts::{
    Accounts, AppSession, AuthenticateError, Caller, PresentedKey, SendingApp,
};
use mailgate_domain::mailboxes::Wanted;
use mailgate_domain::reports::Refusals;
use mailgate_domain::sending::accept::budget::{Budget, Holder, Share};
use mailgate_domain::sending::accept::draft::{Draft, PrepareError};
use mailgate_domain::sending::accept::raw_message::{RawMessage, RawMessageError};
use mailgate_domain::sending::{Blocked, Refusal, Request, Sending};
use mailgate_settings::Limits;
use mailgate_smtp::connection::{Backend, Delivered};
use mailgate_smtp::protocol::authentication::{Credentials, Mechanism};
use mailgate_smtp::protocol::data::BareNewline;
use mailgate_smtp::protocol::reply::Reply;
use mailgate_smtp::protocol::session::{Envelope, SessionSettings};
use mailgate_storage::database::outage::trouble;
use mailgate_types::clock::SharedClock;
use mailgate_types::door::Door;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{AppId, SubscriberId};
use mailgate_types::refusal::RefusalReason;
use mailgate_types::shared_places::{Joined, SharedPlaces};

/// The reply text when there is no room for another message.
const OVERLOADED: &str = "The gateway is sending too many messages already, try again later";

/// The reply text when the subscriber has too many connections.
const TOO_MANY_SESSIONS: &str =
    "Your apps have too many connections open; close some of them and try again";

/// The backend of the SMTP sessions.
#[derive(Debug, Clone)]
pub struct SubmissionBackend {
    /// Authenticates callers.
    pub accounts: Accounts,
    /// Sends messages.
    pub sending: Sending,
    /// Records refusals.
    pub refusals: Refusals,
    /// The gateway's name in Received headers.
    pub hostname: Arc<str>,
    /// The clock.
    pub clock: SharedClock,
    /// The connections of each subscriber.
    pub sessions: SharedPlaces<SubscriberId>,
    /// The maximum number per subscriber.
    pub most_sessions: usize,
}

/// An authenticated app. Its key is checked again for each message; its sessions end with the key.
#[derive(Debug)]
pub struct AuthenticatedApp {
    _joined: Joined<SubscriberId>,
    subscriber: SubscriberId,
    app_id: String,
    key: PresentedKey,
    session: AppSession,
}

/// The settings of the gateway's sessions.
#[must_use]
pub fn session_settings(
    hostname: &str,
    limits: &Limits,
    bare_newline: BareNewline,
) -> SessionSettings {
    SessionSettings {
        hostname: hostname.to_owned(),
        maximum_line: limits.smtp_line_bytes,
        maximum_message: limits.message_bytes,
        bare_newline,
        maximum_recipients: limits.recipients,
        maximum_errors: limits.smtp_errors,
        maximum_authentication_failures: limits.smtp_authentication_failures,
        mechanisms: vec![Mechanism::Login, Mechanism::Plain],
        starttls: true,
        ask_for_recipients: false,
    }
}

/// A message being received.
#[derive(Debug, Default)]
pub struct Incoming {
    pieces: Vec<Bytes>,
    /// The total length of the pieces.
    length: usize,
    share: Option<Share>,
    /// Whether there was too little room for it.
    overloaded: bool,
}

impl Incoming {
    /// Reserves room for the pieces and `more` bytes; drops the pieces if there is none.
    fn hold(&mut self, budget: &Budget, holder: Holder, more: usize) -> bool {
        if self.overloaded {
            return false;
        }
        let share = self.share.get_or_insert_with(|| budget.share(holder));
        let has_room = share.hold(self.length.saturating_add(more)).is_ok();
        if !has_room {
            metrics::counter!("mailgate_overloaded_total").increment(1);
            *self = Self {
                overloaded: true,
                ..Self::default()
            };
        }
        has_room
    }

    /// Keeps a piece that has room reserved.
    fn add(&mut self, piece: Bytes) {
        if !self.overloaded {
            self.length += piece.len();
            self.pieces.push(piece);
        }
    }
}

impl Backend for SubmissionBackend {
    type Identity = AuthenticatedApp;
    type Incoming = Incoming;

    async fn authenticate(
        &self,
        credentials: Credentials,
        peer: IpAddr,
    ) -> Result<AuthenticatedApp, Reply> {
        let Credentials::Password {
            username, password, ..
        } = credentials
        else {
            return Err(authentication_failed());
        };
        let key = self.accounts.present(password.expose_secret(), Some(peer));
        let app = match &key {
            Some(key) => {
                let _place = self.accounts.hold_back(peer, key).await;
                self.caller(key, &username).await
            }
            None => Err(AuthenticateError::Wrong),
        };
        match (app, key) {
            (Ok(caller), Some(key)) => self.authenticated(caller.app(), key),
            (Err(AuthenticateError::Database(error)), _) => {
                trouble!(
                    error,
                    error,
                    "authentication is impossible: the database can't be reached"
                );
                Err(Reply::new(
                    454,
                    "4.7.0",
                    "Temporary authentication failure, please try again",
                ))
            }
            _ => {
                self.accounts.slow_down(peer, "smtp").await;
                Err(authentication_failed())
            }
        }
    }

    async fn revoked(&self, identity: &AuthenticatedApp) {
        identity.session.ended().await;
    }

    async fn recipient(&self, _: &AuthenticatedApp, _: &EmailAddress) -> Result<(), Reply> {
        Ok(())
    }

    fn has_room(&self, app: &AuthenticatedApp, incoming: &mut Incoming, octets: usize) -> bool {
        incoming.hold(
            self.sending.budget(),
            Holder::Subscriber(app.subscriber),
            octets,
        )
    }

    async fn receive(&self, incoming: &mut Incoming, piece: Bytes) -> std::io::Result<()> {
        incoming.add(piece);
        Ok(())
    }

    async fn deliver(
        &self,
        identity: &AuthenticatedApp,
        envelope: Envelope,
        mut incoming: Incoming,
        rest: Bytes,
    ) -> Delivered {
        let has_room = self.has_room(identity, &mut incoming, rest.len());
        incoming.add(rest);
        let (true, Some(share)) = (has_room, incoming.share) else {
            return Delivered::Reply(Reply::new(451, "4.3.1", OVERLOADED));
        };
        let caller = match self.accounts.remembered(&identity.key) {
            Some(caller) if caller.app().slug == identity.app_id => Ok(caller),
            _ => self.caller(&identity.key, &identity.app_id).await,
        };
        let mut caller = match caller {
            Ok(caller) => caller,
            Err(error) => return not_let_in(&error),
        };
        let to = envelope.recipients.first().map(EmailAddress::as_str);
        match self.read(&caller, &envelope, incoming.pieces) {
            Ok(submitted) => self.submit(caller, submitted, share, to).await,
            // The error in a message isn't disclosed if its key is no longer valid.
            Err((reply, reason)) => match self.accounts.prove(&mut caller).await {
                Ok(()) => {
                    self.note(caller.app().id, reason, None, to);
                    Delivered::Reply(reply)
                }
                Err(error) => not_let_in(&error),
            },
        }
    }
}

impl SubmissionBackend {
    fn authenticated(
        &self,
        app: &SendingApp,
        key: PresentedKey,
    ) -> Result<AuthenticatedApp, Reply> {
        self.accounts.remember(&key);
        let joined = self.sessions.join(app.subscriber, self.most_sessions);
        Ok(AuthenticatedApp {
            _joined: joined.ok_or_else(|| Reply::new(454, "4.7.0", TOO_MANY_SESSIONS))?,
            subscriber: app.subscriber,
            session: self.accounts.begin_session(app.id),
            app_id: app.slug.clone(),
            key,
        })
    }

    /// The app of a key, if it is the one with this `app_id`.
    async fn caller(&self, key: &PresentedKey, app_id: &str) -> Result<Caller, AuthenticateError> {
        let caller = self.accounts.caller(key).await?;
        if caller.app().slug == app_id {
            Ok(caller)
        } else {
            Err(AuthenticateError::Wrong)
        }
    }

    fn read(
        &self,
        caller: &Caller,
        envelope: &Envelope,
        pieces: Vec<Bytes>,
    ) -> Result<RawMessage, (Reply, Option<RefusalReason>)> {
        let counted = (self.accounts).count_call(caller.called_by(), caller.own_rate());
        if let Some(wait) = counted.retry_after {
            let text = format!("Too many messages, please wait {} s", wait.as_secs() + 1);
            return Err((Reply::new(451, "4.7.0", &text), None));
        }
        RawMessage::read(
            pieces,
            &envelope.recipients,
            envelope.smtputf8,
            &self.hostname,
            self.clock.now(),
        )
        .map_err(|error| {
            let text = error.to_string();
            let (reply, reason) = match error {
                RawMessageError::From(error) => (
                    Reply::new(550, "5.7.1", &text),
                    if error.is_ambiguous() {
                        RefusalReason::FromNotAuthorized
                    } else {
                        RefusalReason::MalformedMessage
                    },
                ),
                RawMessageError::OtherSender(_) => (
                    Reply::new(550, "5.7.1", &text),
                    RefusalReason::FromNotAuthorized,
                ),
                RawMessageError::TooManyHeaders => (
                    Reply::new(552, "5.3.4", &text),
                    RefusalReason::MessageTooLarge,
                ),
                RawMessageError::Malformed
                | RawMessageError::SignedByClient
                | RawMessageError::IdempotencyKey
                | RawMessageError::Metadata(_)
                | RawMessageError::SendAtTwice
                | RawMessageError::SendAt(_)
                | RawMessageError::MessageId => (
                    Reply::new(550, "5.6.0", &text),
                    RefusalReason::MalformedMessage,
                ),
            };
            (reply, Some(reason))
        })
    }

    async fn submit(
        &self,
        caller: Caller,
        submitted: RawMessage,
        share: Share,
        to: Option<&str>,
    ) -> Delivered {
        let (app, from) = (caller.app().id, submitted.from.clone());
        let wanted = Wanted {
            app: caller.app().id,
            user: None,
            plugin: None,
            address_lookup: Some(submitted.from.lookup_key()),
            only: None,
        };
        let request = Request {
            caller,
            still_means: |before, now| before.slug == now.slug,
            wanted,
            key: submitted.idempotency_key.clone(),
            send_at: submitted.send_at,
            draft: Draft::of_raw(submitted),
            share,
        };
        match self.sending.submit(request).await {
            Ok(answer) => Delivered::Reply(reply(&answer.outcome)),
            Err(Refusal::Key | Refusal::Changed(_)) => {
                Delivered::ReplyAndClose(authentication_failed())
            }
            Err(refusal) => {
                self.note(app, reason(&refusal), Some(from.as_str()), to);
                Delivered::Reply(refused(refusal))
            }
        }
    }

    fn note(
        &self,
        app: AppId,
        reason: Option<RefusalReason>,
        from: Option<&str>,
        to: Option<&str>,
    ) {
        if let Some(reason) = reason {
            self.refusals.note(app, Door::Smtp, reason, from, to);
        }
    }
}

/// The reason recorded for a refusal; `None` if it isn't recorded.
fn reason(refusal: &Refusal) -> Option<RefusalReason> {
    match refusal {
        Refusal::Blocked(Blocked::ByOperator(_)) => Some(RefusalReason::SubscriberSuspended),
        Refusal::Blocked(_) => Some(RefusalReason::SubscriptionBlocked),
        Refusal::NoMailbox
        | Refusal::OtherSender(_)
        | Refusal::Unpreparable(PrepareError::Address) => Some(RefusalReason::FromNotAuthorized),
        Refusal::MailboxNotAllowed => Some(RefusalReason::MailboxNotAllowed),
        Refusal::SendAtPast => Some(RefusalReason::MalformedMessage),
        Refusal::Unpreparable(PrepareError::TooLarge(_)) => Some(RefusalReason::MessageTooLarge),
        Refusal::Suppressed(_) => Some(RefusalReason::RecipientSuppressed),
        _ => None,
    }
}

fn not_let_in(error: &AuthenticateError) -> Delivered {
    match error {
        AuthenticateError::Wrong => Delivered::ReplyAndClose(authentication_failed()),
        AuthenticateError::Database(error) => Delivered::Reply(unavailable(error)),
    }
}
