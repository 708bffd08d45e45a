//! A connection that counts the bytes of incomplete request headers, which are held for a client that hasn't
//! authenticated.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::in_hand::InHand;
use mailgate_types::budget::Share;

/// Bytes per connection that aren't counted.
const FREE: usize = 4 * 1024;

/// A client's connection, in plaintext or under TLS.
pub(super) struct Metered<S> {
    socket: S,
    in_hand: Arc<InHand>,
    /// The number of requests when counting began.
    begun: u64,
    /// Bytes read since then, while no request was in progress.
    unbegun: usize,
    /// Their share of the budget; none for a trusted proxy.
    share: Option<Share<IpAddr>>,
}

impl<S> Metered<S> {
    pub(super) fn new(socket: S, in_hand: Arc<InHand>, share: Option<Share<IpAddr>>) -> Self {
        Self {
            socket,
            in_hand,
            begun: 0,
            unbegun: 0,
            share,
        }
    }

    /// Reserves room for the counted bytes.
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.unbegun = bytes;
        match &mut self.share {
            Some(share) => share
                .hold(bytes.saturating_sub(FREE))
                .map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let begun = self.in_hand.begun();
        if self.begun != begun {
            self.begun = begun;
            self.count(0)?;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        if self.in_hand.is_empty() {
            let unbegun = self.unbegun.saturating_add(read);
            if let Err(error) = self.count(unbegun) {
                metrics::counter!("mailgate_http_overloaded_total").increment(1);
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
