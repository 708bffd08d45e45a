//! The mail transaction: MAIL, RCPT, and the replies to both. Its content is received elsewhere.

use super::{Event, Outcome, Refusal, Session, State, out_of_order, too_large};
use crate::protocol::command::needs_smtputf8;
use crate::protocol::data::ChunkReceiver;
use crate::protocol::parameters::MailParameters;
use crate::protocol::reply::Reply;
use mailgate_types::email_address::EmailAddress;

/// A mail transaction (RFC 5321 §3.3).
pub(super) struct Transaction {
    pub(super) sender: String,
    pub(super) parameters: MailParameters,
    pub(super) recipients: Vec<EmailAddress>,
    /// Some recipient was refused.
    pub(super) refused_recipients: bool,
    pub(super) chunks: Chunks,
}

/// The content received by BDAT.
pub(super) enum Chunks {
    None,
    Some(ChunkReceiver),
    /// One was refused: only RSET is allowed now (RFC 3030 §2).
    Failed,
}

impl Session {
    /// Accepts or refuses the recipient that the driver was asked about.
    pub fn answer_recipient(&mut self, answer: Result<(), Reply>, output: &mut Vec<u8>) {
        match std::mem::replace(&mut self.state, State::Command) {
            State::AwaitRecipient(recipient) => match answer {
                Ok(()) => self.accept_recipient(recipient, output),
                Err(reply) => {
                    self.recipient_refused();
                    reply.write_to(output);
                }
            },
            other => self.state = other,
        }
    }

    /// Replies to the delivered message: 250, or the refusal.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the answer is used up, as in the other answers"
    )]
    pub fn answer_message(&mut self, reply: Reply, output: &mut Vec<u8>) {
        if matches!(self.state, State::AwaitMessage) {
            self.state = State::Command;
            // A connection may be kept for thousands of messages.
            if reply.code() == 250 {
                self.errors = 0;
            }
            reply.write_to(output);
        }
    }

    pub(super) fn mail(
        &mut self,
        sender: String,
        parameters: MailParameters,
        output: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if parameters
            .size
            .is_some_and(|size| size > self.settings.maximum_message as u64)
        {
            return Err(Refusal {
                reply: too_large(),
                counted: false,
            });
        }
        self.transactions += 1;
        self.transaction = Some(Transaction {
            sender,
            parameters,
            recipients: Vec::new(),
            refused_recipients: false,
            chunks: Chunks::None,
        });
        Reply::new(250, "2.1.0", "OK").write_to(output);
        Ok(())
    }

    pub(super) fn rcpt(&mut self, recipient: EmailAddress, output: &mut Vec<u8>) -> Outcome {
        let Some(transaction) = &mut self.transaction else {
            return Err(out_of_order("Send MAIL first"));
        };
        if !recipient.is_ascii() && !transaction.parameters.smtputf8 {
            transaction.refused_recipients = true;
            return Err(Refusal {
                reply: needs_smtputf8(),
                counted: false,
            });
        }
        if transaction.recipients.len() >= self.settings.maximum_recipients {
            transaction.refused_recipients = true;
            return Err(Refusal {
                reply: Reply::new(
                    452,
                    "4.5.3",
                    "Too many recipients; send a separate message to the others",
                ),
                counted: false,
            });
        }
        if self.settings.ask_for_recipients {
            self.state = State::AwaitRecipient(recipient.clone());
            return Ok(Some(Event::Recipient(recipient)));
        }
        self.accept_recipient(recipient, output);
        Ok(None)
    }

    pub(super) fn accept_recipient(&mut self, recipient: EmailAddress, output: &mut Vec<u8>) {
        if let Some(transaction) = &mut self.transaction {
            transaction.recipients.push(recipient);
        }
        Reply::new(250, "2.1.5", "OK").write_to(output);
    }

    pub(super) fn recipient_refused(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.refused_recipients = true;
        }
    }
}
