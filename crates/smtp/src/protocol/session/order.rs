//! Which commands are allowed when (RFC 5321 §4.1.4), before their arguments are parsed.

use super::transaction::Chunks;
use super::{Encryption, Refusal, Session, out_of_order};
use crate::protocol::command::Verb;
use crate::protocol::reply::Reply;

impl Session {
    /// Checks whether the verb is allowed in the current state, before its arguments are parsed.
    pub(super) fn check_order(&self, verb: Verb) -> Result<(), Refusal> {
        let needs_tls = matches!(
            verb,
            Verb::Auth | Verb::Mail | Verb::Rcpt | Verb::Data | Verb::Bdat | Verb::Vrfy
        );
        if needs_tls && self.encryption == Encryption::Clear {
            return Err(Reply::new(530, "5.7.0", "TLS required").into());
        }
        match verb {
            Verb::StartTls if self.encryption == Encryption::Tls => {
                Err(out_of_order("TLS is on already"))
            }
            Verb::StartTls if !self.settings.starttls => {
                Err(Reply::new(502, "5.5.1", "STARTTLS is not available").into())
            }
            Verb::Auth if self.authenticated => Err(out_of_order("Authenticated already")),
            Verb::Auth if self.transaction.is_some() => Err(out_of_order(
                "AUTH is not allowed during a mail transaction",
            )),
            Verb::Auth if !self.client.as_ref().is_some_and(|client| client.extended) => {
                Err(out_of_order("Send EHLO first"))
            }
            Verb::Mail if !self.authenticated => {
                Err(Reply::new(530, "5.7.0", "Authentication required").into())
            }
            Verb::Mail if self.transaction.is_some() => {
                Err(out_of_order("Sender given already; RSET to start anew"))
            }
            Verb::Rcpt | Verb::Data | Verb::Bdat => self.check_transaction(verb),
            _ => Ok(()),
        }
    }

    pub(super) fn check_transaction(&self, verb: Verb) -> Result<(), Refusal> {
        let Some(transaction) = &self.transaction else {
            return Err(out_of_order("Send MAIL first"));
        };
        match (&transaction.chunks, verb) {
            (Chunks::Failed, _) => return Err(out_of_order("A chunk was refused; send RSET")),
            (Chunks::Some(_), Verb::Bdat) => return Ok(()),
            (Chunks::Some(_), _) => {
                return Err(out_of_order("Chunks have begun; send BDAT or RSET"));
            }
            (Chunks::None, _) => {}
        }
        match (
            verb,
            transaction.recipients.is_empty(),
            transaction.refused_recipients,
        ) {
            (Verb::Rcpt, ..) | (_, false, _) => Ok(()),
            // A pipelining client sends DATA before it knows; this is not another error.
            (_, true, true) => Err(Refusal {
                reply: Reply::new(554, "5.5.1", "No valid recipients"),
                counted: false,
            }),
            (_, true, false) => Err(out_of_order("Send RCPT first")),
        }
    }
}
