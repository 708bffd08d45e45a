//! Queries the reader of a mailbox with a valid token.

use super::{Mailboxes, TokenError};
use mailgate_providers::mail::reader::ReadError;
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_storage::database::outage::Outage;
use mailgate_storage::mailboxes::Mailbox;

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum MailboxReadError {
    /// No token is available.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The reader failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Outage for MailboxReadError {
    fn is_outage(&self) -> bool {
        match self {
            Self::Token(error) => error.is_outage(),
            Self::Read(_) => false,
        }
    }
}

impl Mailboxes {
    /// Queries with the mailbox's token. A token that may have been rejected is refreshed once.
    pub async fn ask_reader<T, Answer>(
        &self,
        mailbox: &Mailbox,
        question: impl Fn(MailboxAccess) -> Answer,
    ) -> Result<T, MailboxReadError>
    where
        Answer: Future<Output = Result<T, ReadError>>,
    {
        let account = self.access(mailbox, None).await?;
        let generation = account.generation;
        match question(account).await {
            Err(ReadError::TokenRefused(_) | ReadError::Unexplained(_)) => {
                let account = self.access(mailbox, Some(generation)).await?;
                Ok(question(account).await?)
            }
            answer => Ok(answer?),
        }
    }
}
