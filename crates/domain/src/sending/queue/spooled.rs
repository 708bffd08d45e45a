//! Reads a stored message back.

use bytes::Bytes;

use crate::sending::Sending;
use mailgate_storage::spool;
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;

impl Sending {
    /// The raw message of a spool row; `None` when it was never stored, because its process died
    /// during the first attempt.
    pub(in crate::sending) async fn spooled(
        &self,
        id: LogId,
    ) -> Result<Option<Message>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let mut pieces = Vec::new();
        for position in 0.. {
            match spool::chunk(&mut connection, id, position).await? {
                Some(content) => pieces.push(Bytes::from(content)),
                None => break,
            }
        }
        Ok((!pieces.is_empty()).then(|| Message::from_pieces(pieces)))
    }
}
