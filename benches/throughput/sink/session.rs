//! One SMTP connection of the provider. It takes whatever it is told: its clients are known.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BytesMut};
use memchr::{memchr, memmem};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What one read takes.
const READ: usize = 16 * 1024;

/// What ends a message (RFC 5321 §4.1.1.4).
const END: &[u8] = b"\r\n.\r\n";

/// What EHLO offers beside the common extensions.
#[derive(Debug, Clone, Copy)]
pub enum Extras {
    None,
    Xoauth2,
}

/// What comes next.
enum State {
    Command,
    Content,
    Closed,
}

/// Serves a connection until its client leaves.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    extras: Extras,
    count: &AtomicU64,
) -> std::io::Result<()> {
    let mut input = BytesMut::with_capacity(READ);
    let mut output = b"220 sink ESMTP\r\n".to_vec();
    let mut state = State::Command;
    loop {
        while let Some(next) = advance(&state, &mut input, &mut output, extras, count) {
            state = next;
        }
        if !output.is_empty() {
            stream.write_all(&output).await?;
            stream.flush().await?;
            output.clear();
        }
        if matches!(state, State::Closed) {
            return stream.shutdown().await;
        }
        input.reserve(READ);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}

/// Takes one command, or the rest of a message. `None` when more has to come first.
fn advance(
    state: &State,
    input: &mut BytesMut,
    output: &mut Vec<u8>,
    extras: Extras,
    count: &AtomicU64,
) -> Option<State> {
    match state {
        State::Closed => None,
        State::Command => {
            let line = input.split_to(memchr(b'\n', input)? + 1);
            let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
            let (reply, next): (&[u8], _) = match verb.as_slice() {
                b"EHLO" => (capabilities(extras), State::Command),
                b"AUTH" => (b"235 2.7.0 Accepted\r\n", State::Command),
                b"DATA" => (b"354 Go on\r\n", State::Content),
                b"QUIT" => (b"221 2.0.0 Bye\r\n", State::Closed),
                _ => (b"250 2.0.0 OK\r\n", State::Command),
            };
            output.extend_from_slice(reply);
            Some(next)
        }
        State::Content => {
            let Some(position) = memmem::find(input, END) else {
                // The end may have begun.
                input.advance(input.len().saturating_sub(END.len() - 1));
                return None;
            };
            input.advance(position + END.len());
            count.fetch_add(1, Ordering::Relaxed);
            output.extend_from_slice(b"250 2.0.0 Taken\r\n");
            Some(State::Command)
        }
    }
}

fn capabilities(extras: Extras) -> &'static [u8] {
    match extras {
        Extras::None => b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 62914560\r\n",
        Extras::Xoauth2 => {
            b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SIZE 62914560\r\n250 AUTH XOAUTH2\r\n"
        }
    }
}
