//! One mail transaction: its envelope, and its message.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::super::reply::Reply;
use super::{Connection, StageError};
use crate::mail::transport::SendPermit;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::message::Message;

/// How long to wait for a reply that may explain a failed write.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The last command of an envelope, pipelined if possible (RFC 2920 §3.1).
const DATA: &str = "DATA\r\n";

/// Minimum size of a write, while there is more.
const WRITE_BYTES: usize = 64 * 1024;

/// An address as a server takes it: in ASCII, if it has one such form, where SMTPUTF8 isn't offered (RFC 6531 §3.2).
fn written(address: &str, offers_smtputf8: bool) -> Cow<'_, str> {
    EmailAddress::parse(address).map_or(Cow::Borrowed(address), |address| {
        let written = if offers_smtputf8 {
            address.to_standard()
        } else {
            address.to_ascii()
        };
        Cow::Owned(written.to_string())
    })
}

/// The outcome of a transaction up to DATA's 354.
pub(crate) enum Envelope {
    /// The message may follow.
    Accepted,
    /// Refused.
    Refused {
        reply: Reply,
        /// The connection can be used for another transaction.
        reusable: bool,
    },
}

/// The outcome of the message itself.
#[derive(Debug)]
pub(crate) enum Content {
    /// The server's reply to the whole message.
    Replied(Reply),
    /// The server refused before it had the whole message; the connection is unusable.
    RefusedEarly(Reply),
    /// The end of the message was never sent: the server can't have it.
    NotSent(StageError),
    /// The message was or may have been sent, and no reply was received.
    Unknown(StageError),
}

impl Connection {
    /// MAIL, RCPT and DATA, up to the server's 354, the only reply that allows the message (RFC 5321 §4.3.2). One
    /// refused recipient fails the whole transaction: a message goes to all of its recipients or to none.
    pub(crate) async fn begin(
        &mut self,
        sender: &str,
        recipients: &[String],
        smtputf8: bool,
        message: &Message,
    ) -> Result<Envelope, StageError> {
        // It would pass for the reply to MAIL, and each reply after it for the next command's.
        if !self.is_quiet() {
            return Err(StageError::Unsolicited);
        }
        let offers_smtputf8 = self.extensions.smtputf8;
        let sender = written(sender, offers_smtputf8);
        let recipients: Vec<Cow<'_, str>> = (recipients.iter())
            .map(|recipient| written(recipient, offers_smtputf8))
            .collect();
        let mut mail = format!("MAIL FROM:<{sender}>");
        if self.extensions.size {
            mail = format!("{mail} SIZE={}", message.size());
        }
        if !message.is_ascii() {
            if !self.extensions.eight_bit_mime {
                return Ok(own_refusal("5.6.3 The provider takes no 8-bit messages"));
            }
            mail.push_str(" BODY=8BITMIME");
        }
        let is_ascii = sender.is_ascii() && recipients.iter().all(|it| it.is_ascii());
        if offers_smtputf8 {
            if smtputf8 || !is_ascii {
                mail.push_str(" SMTPUTF8");
            }
        } else if !is_ascii {
            return Ok(own_refusal(
                "5.6.7 The provider takes no addresses whose part before the @ isn't ASCII",
            ));
        }
        mail.push_str("\r\n");
        let recipients: Vec<String> = recipients
            .iter()
            .map(|recipient| format!("RCPT TO:<{recipient}>\r\n"))
            .collect();
        // A 354 after the refusal of one recipient among several could only be answered by disconnecting.
        let pipelines_data = self.extensions.pipelining && recipients.len() == 1;
        let replies = if self.extensions.pipelining {
            let data = if pipelines_data { DATA } else { "" };
            self.send(format!("{mail}{}{data}", recipients.concat()).as_bytes())
                .await?;
            let mut replies = Vec::with_capacity(1 + recipients.len());
            for _ in 0..=recipients.len() {
                match self.reply(self.command).await {
                    Ok(reply) => replies.push(reply),
                    // A server may disconnect after its refusal, which still counts.
                    Err(_) if replies.iter().any(|reply: &Reply| !reply.is_positive()) => break,
                    Err(error) => return Err(error),
                }
            }
            replies
        } else {
            let mut replies = Vec::new();
            for command in std::iter::once(&mail).chain(&recipients) {
                self.send(command.as_bytes()).await?;
                let reply = self.reply(self.command).await?;
                let refused = !reply.is_positive();
                replies.push(reply);
                if refused {
                    break;
                }
            }
            replies
        };
        if let Some(refusal) = refusal_among(&replies).cloned() {
            // If the server accepts DATA all the same, nothing of the message is sent.
            let is_refused_too = !pipelines_data
                || (self.reply(self.command).await).is_ok_and(|reply| reply.code >= 400);
            return self.refused(refusal, is_refused_too).await;
        }
        if !pipelines_data {
            self.send(DATA.as_bytes()).await?;
        }
        let reply = self.reply(self.command).await?;
        if reply.code == 354 {
            return Ok(Envelope::Accepted);
        }
        self.refused(reply, true).await
    }

    /// The refusal counts whatever happens to the connection. `in_step`: the server is waiting for a command.
    async fn refused(&mut self, reply: Reply, in_step: bool) -> Result<Envelope, StageError> {
        // Nothing of the message was sent: this is no success, whatever it says.
        if reply.is_positive() {
            return Err(StageError::OutOfTurn(reply));
        }
        let reset = async {
            self.send(b"RSET\r\n").await?;
            self.expect(250).await
        };
        let reusable = in_step && reply.code != 421 && reset.await.is_ok();
        Ok(Envelope::Refused { reply, reusable })
    }

    /// Sends the message, dot-stuffed, and waits for the reply: one timeout for both. `permit` is checked before the
    /// end is sent.
    pub(crate) async fn content(&mut self, message: &Message, permit: &dyn SendPermit) -> Content {
        // A success before the end of the message doesn't count; a refusal does.
        if !self.is_quiet() {
            return match self.reply(LAST_WORDS).await {
                Ok(reply) if !reply.is_positive() => Content::RefusedEarly(reply),
                Ok(reply) => Content::NotSent(StageError::OutOfTurn(reply)),
                Err(error) => Content::NotSent(error),
            };
        }
        let limit = self.data;
        let started = Instant::now();
        let mut end_is_leaving = false;
        let writing = self.write_content(message, permit, &mut end_is_leaving);
        let error = match timeout(limit, writing).await {
            Ok(Ok(())) => None,
            Ok(Err(error @ StageError::Withheld(_))) => return Content::NotSent(error),
            Ok(Err(error)) => Some(error),
            Err(_) => Some(StageError::TimedOut(limit)),
        };
        if let Some(error) = error {
            return match self.reply(LAST_WORDS).await {
                Ok(reply) if !reply.is_positive() => Content::RefusedEarly(reply),
                _ if end_is_leaving => Content::Unknown(error),
                _ => Content::NotSent(error),
            };
        }
        match self.reply(limit.saturating_sub(started.elapsed())).await {
            Ok(reply) => Content::Replied(reply),
            Err(error) => Content::Unknown(error),
        }
    }

    /// Sets `end_is_leaving` before the first byte of the end of the message may be sent.
    async fn write_content(
        &mut self,
        message: &Message,
        permit: &dyn SendPermit,
        end_is_leaving: &mut bool,
    ) -> Result<(), StageError> {
        let mut stuffed = Vec::with_capacity(WRITE_BYTES.min(message.size() + 64));
        let (mut at_line_start, mut is_long) = (true, false);
        for chunk in message.chunks() {
            at_line_start = stuff_dots(chunk, at_line_start, &mut stuffed);
            if stuffed.len() >= WRITE_BYTES {
                self.stream.write_all(&stuffed).await?;
                stuffed.clear();
                is_long = true;
            }
        }
        // Flush everything that may block first, so that the end is sent right after permission is given.
        if is_long {
            self.stream.write_all(&stuffed).await?;
            self.stream.flush().await?;
            stuffed.clear();
        }
        stuffed.extend_from_slice(if at_line_start {
            b".\r\n"
        } else {
            b"\r\n.\r\n"
        });
        permit.check().await.map_err(StageError::Withheld)?;
        *end_is_leaving = true;
        self.stream.write_all(&stuffed).await?;
        Ok(self.stream.flush().await?)
    }
}

/// The refusal of a pipelined MAIL and its RCPTs. After a refused MAIL each RCPT is merely out of order; among refused
/// recipients a permanent refusal outweighs a temporary one, since a retry would fail the same way.
fn refusal_among(replies: &[Reply]) -> Option<&Reply> {
    let is_refusal = |reply: &&Reply| !matches!(reply.code, 250..=252);
    let (mail, recipients) = replies.split_first()?;
    Some(mail)
        .filter(is_refusal)
        .or_else(|| recipients.iter().find(|reply| reply.is_permanent()))
        .or_else(|| recipients.iter().find(is_refusal))
}

/// Nothing has been sent to the server yet.
fn own_refusal(text: &str) -> Envelope {
    Envelope::Refused {
        reply: Reply {
            code: 550,
            lines: vec![text.to_owned()],
        },
        reusable: true,
    }
}

/// Doubles each dot at the beginning of a line (RFC 5321 §4.5.2); returns whether the next byte begins a line.
fn stuff_dots(bytes: &[u8], mut at_line_start: bool, stuffed: &mut Vec<u8>) -> bool {
    stuffed.reserve(bytes.len() + 16);
    let mut rest = bytes;
    while !rest.is_empty() {
        if at_line_start && rest[0] == b'.' {
            stuffed.push(b'.');
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |position| position + 1);
        stuffed.extend_from_slice(&rest[..end]);
        at_line_start = rest[end - 1] == b'\n';
        rest = &rest[end..];
    }
    at_line_start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_that_counts() {
        for (codes, expected) in [
            (vec![250, 250, 251], None),
            (vec![451, 503, 503], Some(451)),
            (vec![421], Some(421)),
            (vec![550, 503], Some(550)),
            (vec![250, 451, 250], Some(451)),
            (vec![250, 451, 550], Some(550)),
            (vec![250, 354], Some(354)),
        ] {
            let replies: Vec<Reply> = codes
                .into_iter()
                .map(|code| Reply {
                    code,
                    lines: Vec::new(),
                })
                .collect();
            assert_eq!(refusal_among(&replies).map(|reply| reply.code), expected);
        }
    }

    #[test]
    fn dots_are_stuffed_at_any_split() {
        let content = b".a\r\nb.\r\n..\r\n.\r\nend";
        let expected = b"..a\r\nb.\r\n...\r\n..\r\nend";
        for split in 0..=content.len() {
            let mut stuffed = Vec::new();
            let at_line_start = stuff_dots(&content[..split], true, &mut stuffed);
            stuff_dots(&content[split..], at_line_start, &mut stuffed);
            assert_eq!(stuffed, expected, "split at {split}");
        }
    }
}
