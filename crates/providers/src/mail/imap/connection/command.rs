//! Runs a command: sends it, answers the server's continuations, and reads the responses until it completes.

use tokio::io::AsyncWriteExt;
use tokio::time::timeout_at;
use zeroize::Zeroizing;

use super::super::framing::NotAResponse;
use super::super::response::{Condition, Response};
use super::{Connection, ImapError};

impl Connection {
    /// Runs one command, waiting for a continuation before each further part, and passes on the responses until it
    /// completes.
    pub(super) async fn run(
        &mut self,
        parts: &[&[u8]],
        each: impl FnMut(Response),
    ) -> Result<(), ImapError> {
        let (first, further) = parts.split_first().ok_or(ImapError::Unspeakable)?;
        let mut further = further.iter();
        let answer = |_: &str| further.next().map(|part| Zeroizing::new(part.to_vec()));
        self.converse(first, answer, each).await
    }

    /// Sends a command, answers each of the server's continuations, and passes on the responses until it completes.
    pub(super) async fn converse(
        &mut self,
        command: &[u8],
        answer: impl FnMut(&str) -> Option<Zeroizing<Vec<u8>>>,
        each: impl FnMut(Response),
    ) -> Result<(), ImapError> {
        let end = self.end_of_command();
        timeout_at(end, self.exchange(command, answer, each))
            .await
            .map_err(|_| ImapError::TimedOut)?
    }

    async fn exchange(
        &mut self,
        command: &[u8],
        mut answer: impl FnMut(&str) -> Option<Zeroizing<Vec<u8>>>,
        mut each: impl FnMut(Response),
    ) -> Result<(), ImapError> {
        let tag = self.begin(command).await?;
        loop {
            match self.response().await? {
                Response::Continue(text) => {
                    let answer = answer(&text).ok_or(NotAResponse)?;
                    self.send("", &answer).await?;
                }
                Response::Tagged(its, status) if its == tag => {
                    return match status.condition {
                        Condition::Ok => Ok(()),
                        _ => Err(ImapError::Refused(status)),
                    };
                }
                Response::Tagged(..) => return Err(NotAResponse.into()),
                response => each(response),
            }
        }
    }

    /// Sends a command, or the beginning of one; returns its tag.
    pub(in crate::mail::imap) async fn begin(
        &mut self,
        command: &[u8],
    ) -> Result<String, ImapError> {
        self.tag += 1;
        let tag = format!("A{}", self.tag);
        self.send(&format!("{tag} "), command).await?;
        Ok(tag)
    }

    async fn send(&mut self, tag: &str, part: &[u8]) -> Result<(), ImapError> {
        let line = Zeroizing::new([tag.as_bytes(), part, b"\r\n"].concat());
        self.stream.write_all(&line).await?;
        Ok(self.stream.flush().await?)
    }
}
