//! Asks the reader of a mailbox, with a token that opens it.

use super::{Mailboxes, TokenError};
use crate::providers::mail::reader::ReadError;
use crate::providers::mail::transport::MailboxAccess;
use crate::storage::mailboxes::Mailbox;
use crate::storage::outage::Outage;

/// A question that no answer came to.
#[derive(Debug, thiserror::Error)]
pub enum MailboxReadError {
    /// There is no token to ask with.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The reader.
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
    /// Asks with the mailbox's token. One that the provider refuses is refreshed, once.
    pub async fn ask_reader<T, Answer>(
        &self,
        mailbox: &Mailbox,
        question: impl Fn(MailboxAccess) -> Answer,
    ) -> Result<T, MailboxReadError>
    where
        Answer: Future<Output = Result<T, ReadError>>,
    {
        let account = self.account(mailbox, None).await?;
        let generation = account.generation;
        match question(account).await {
            Err(ReadError::TokenRefused(_)) => {
                let account = self.account(mailbox, Some(generation)).await?;
                Ok(question(account).await?)
            }
            answer => Ok(answer?),
        }
    }
}
