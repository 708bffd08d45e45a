//! The message itself, by DATA or by BDAT, and the end of its transaction.

use bytes::BytesMut;

use super::transaction::{Chunks, Transaction};
use super::{Envelope, Event, Session, State, too_large};
use crate::protocol::command::{Command, Verb};
use crate::protocol::data::{ChunkReceiver, RefusedContent, patience};
use crate::protocol::reply::Reply;

impl Session {
    /// Starts a chunk. The octets of a refused chunk are discarded, and the reply follows them.
    pub(super) fn bdat(&mut self, arguments: &str, output: &mut Vec<u8>) -> Option<Event> {
        let (remaining, last) = match Command::from_parts(Verb::Bdat, arguments) {
            Ok(Command::Bdat { size, last }) => (size, last),
            Ok(_) => return None,
            // The number of octets that follow is unknown, and none of them must be read as a command.
            Err(reply) => {
                reply.write_to(output);
                return Some(self.close());
            }
        };
        if let Err(refusal) = self.check_order(Verb::Bdat) {
            let patience = patience(self.settings.maximum_message) as u64;
            self.state = State::RefusedChunk {
                remaining,
                patience,
                refusal,
            };
            return None;
        }
        if let Some(transaction) = &mut self.transaction
            && matches!(transaction.chunks, Chunks::None)
        {
            let receiver = ChunkReceiver::new(
                self.settings.maximum_message,
                transaction.parameters.size,
                self.settings.bare_newline,
            );
            transaction.chunks = Chunks::Some(receiver);
        }
        self.state = State::Chunk { remaining, last };
        None
    }

    /// Receives octets of a chunk; returns whether the session can continue.
    pub(super) fn receive_chunk(&mut self, input: &mut BytesMut) -> bool {
        let before = input.len();
        let goes_on = match (&mut self.state, &mut self.transaction) {
            (
                State::Chunk { remaining, .. },
                Some(Transaction {
                    chunks: Chunks::Some(receiver),
                    ..
                }),
            ) => receiver.receive(input, remaining),
            _ => false,
        };
        self.content_octets += (before - input.len()) as u64;
        goes_on
    }

    pub(super) fn chunk_end(&mut self, last: bool, output: &mut Vec<u8>) -> Option<Event> {
        self.state = State::Command;
        let transaction = self.transaction.as_mut()?;
        if last {
            let Chunks::Some(receiver) = std::mem::replace(&mut transaction.chunks, Chunks::None)
            else {
                return None;
            };
            return self.content(receiver.finish(), output);
        }
        let Chunks::Some(receiver) = &transaction.chunks else {
            return None;
        };
        match receiver.verdict() {
            Ok(()) => Reply::new(250, "2.0.0", "Chunk received").write_to(output),
            Err(refused) => {
                transaction.chunks = Chunks::Failed;
                content_refusal(refused).write_to(output);
            }
        }
        None
    }

    pub(super) fn refused_chunk_end(&mut self, output: &mut Vec<u8>) -> Option<Event> {
        match std::mem::replace(&mut self.state, State::Command) {
            State::RefusedChunk { refusal, .. } => self.refuse(&refusal, output),
            _ => None,
        }
    }

    /// Ends the transaction with its content.
    pub(super) fn content(
        &mut self,
        content: Result<Vec<u8>, RefusedContent>,
        output: &mut Vec<u8>,
    ) -> Option<Event> {
        self.state = State::Command;
        let transaction = self.transaction.take()?;
        match content {
            Ok(content) => {
                self.state = State::AwaitMessage;
                let helo = self.client.as_ref().map(|client| client.name.clone());
                Some(Event::Message {
                    envelope: Envelope {
                        sender: transaction.sender,
                        recipients: transaction.recipients,
                        smtputf8: transaction.parameters.smtputf8,
                        body_8bit: transaction.parameters.body_8bit,
                        helo: helo.unwrap_or_default(),
                    },
                    content,
                    transaction: self.transactions,
                })
            }
            Err(refused) => {
                content_refusal(refused).write_to(output);
                None
            }
        }
    }

    /// The client sends far more than allowed: send the reason, so that its queue gives up.
    pub(super) fn endless(&mut self, output: &mut Vec<u8>) -> Event {
        too_large().write_to(output);
        self.close()
    }
}

fn content_refusal(refused: RefusedContent) -> Reply {
    match refused {
        RefusedContent::TooLarge => too_large(),
        RefusedContent::Malformed => Reply::new(
            550,
            "5.6.11",
            "Bare CR, bare LF or NUL in the message; end lines with CRLF",
        ),
    }
}
