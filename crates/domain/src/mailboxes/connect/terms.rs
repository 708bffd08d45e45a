//! What the link that was opened demands of a mailbox, and what it permits.

use sqlx::PgConnection;

use super::{ConnectError, MOST_BY_BARE_LINKS};
use crate::mailboxes::connect_session::ConnectSession;
use mailgate_storage::end_users::EndUser;
use mailgate_storage::mailboxes::{Upserted, end};
use mailgate_types::email_address::EmailAddress;

/// The constraints of an opened link.
#[derive(Debug)]
pub(in crate::mailboxes) struct Terms<'a> {
    /// The pushable key, which must still be the app's current one.
    pub(in crate::mailboxes) pushable_key: &'a str,
    /// The connect session; `None` for a bare link, which anyone can write.
    pub(in crate::mailboxes) session: Option<&'a ConnectSession>,
}

impl Terms<'_> {
    /// Checks that this is the account that the session expects.
    pub(super) fn check(&self, email: &EmailAddress) -> Result<(), ConnectError> {
        let expected = self
            .session
            .and_then(|session| session.expected_email.as_ref());
        match expected {
            Some(expected)
                if EmailAddress::parse(expected)
                    .is_ok_and(|expected| expected.lookup_key() != email.lookup_key()) =>
            {
                Err(ConnectError::WrongAccount {
                    expected: expected.clone(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Checks that a bare link, which anyone can write, may have connected this mailbox for the user.
pub(super) async fn allows_bare(
    connection: &mut PgConnection,
    user: &EndUser,
    mailbox: &Upserted,
) -> Result<(), ConnectError> {
    // Also after the session's own mailbox has ended: anyone with the link could connect a replacement.
    if user.is_vouched && !mailbox.by_session {
        return Err(ConnectError::WouldReplace);
    }
    let others = end::count_others(connection, user.key, mailbox.id).await?;
    if others.by_session > 0 {
        return Err(ConnectError::WouldReplace);
    }
    if others.count >= MOST_BY_BARE_LINKS {
        return Err(ConnectError::TooMany);
    }
    Ok(())
}
