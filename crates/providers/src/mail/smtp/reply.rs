//! Splits a submission server's byte stream into replies, however it is fragmented.

use bytes::{Buf, BytesMut};

use crate::mail::verdict::Failure;

/// RFC 5321 §4.5.3.1.5 limits a reply line to 512; some servers exceed that.
const MAXIMUM_REPLY: usize = 64 * 1024;

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) lines: Vec<String>,
}

/// The received bytes are not a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server's answer isn't an SMTP reply")]
pub(crate) struct NotAReply;

impl Reply {
    pub(crate) fn is_positive(&self) -> bool {
        self.code < 400
    }

    pub(crate) fn is_permanent(&self) -> bool {
        self.code >= 500
    }

    pub(crate) fn failure(&self) -> Failure {
        Failure::new(Some(self.code), &self.lines.join(" "))
    }

    /// The enhanced status code (RFC 3463) at the start of the text, if there is one.
    pub(crate) fn enhanced(&self) -> Option<&str> {
        let word = self.lines.first()?.split(' ').next()?;
        let is_enhanced = word.split('.').count() == 3
            && word
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        is_enhanced.then_some(word)
    }
}

/// Removes one complete reply from the front of `buffer`; `None` while it is incomplete.
pub(crate) fn take_reply(buffer: &mut BytesMut) -> Result<Option<Reply>, NotAReply> {
    let mut lines = Vec::new();
    let mut code = None;
    let mut start = 0;
    while let Some(length) = memchr::memchr(b'\n', &buffer[start..]) {
        let line = &buffer[start..start + length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        start += length + 1;
        let (digits, rest) = line.split_at_checked(3).ok_or(NotAReply)?;
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse::<u16>().ok())
            .filter(|number| (200..600).contains(number))
            .ok_or(NotAReply)?;
        if *code.get_or_insert(number) != number {
            return Err(NotAReply);
        }
        // RFC 5321 §4.2: a code without text must be accepted too.
        let (is_last, text) = match rest.split_first() {
            None => (true, &b""[..]),
            Some((b' ', text)) => (true, text),
            Some((b'-', text)) => (false, text),
            Some(_) => return Err(NotAReply),
        };
        let text = String::from_utf8_lossy(text);
        lines.push(text.chars().filter(|letter| !letter.is_control()).collect());
        if is_last {
            buffer.advance(start);
            return Ok(Some(Reply {
                code: number,
                lines,
            }));
        }
    }
    if buffer.len() > MAXIMUM_REPLY {
        return Err(NotAReply);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn take_all(bytes: &[u8], splits: &[usize]) -> Result<Vec<Reply>, NotAReply> {
        let mut buffer = BytesMut::new();
        let mut replies = Vec::new();
        let mut rest = bytes;
        for split in splits.iter().copied().chain([usize::MAX]) {
            let (now, later) = rest.split_at(split.min(rest.len()));
            buffer.extend_from_slice(now);
            rest = later;
            while let Some(reply) = take_reply(&mut buffer)? {
                replies.push(reply);
            }
        }
        Ok(replies)
    }

    #[test]
    fn replies() {
        let replies = take_all(
            b"250-a\r\n250-b c\r\n250 d\r\n354\r\n550 5.1.1 no\r\n22",
            &[],
        )
        .unwrap();
        assert_eq!(replies.len(), 3);
        assert_eq!(replies[0].lines, ["a", "b c", "d"]);
        assert_eq!(replies[1].code, 354);
        assert_eq!(replies[2].enhanced(), Some("5.1.1"));
        assert_eq!(replies[2].failure().to_string(), "550 5.1.1 no");
        assert_eq!(replies[0].enhanced(), None);
    }

    #[test]
    fn what_is_no_reply() {
        for bytes in [
            &b"hello\r\n"[..],
            b"25\r\n",
            b"099 x\r\n",
            b"600 x\r\n",
            b"250_x\r\n",
            b"250-a\r\n251 b\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
        ] {
            assert_eq!(take_all(bytes, &[]), Err(NotAReply));
        }
        assert_eq!(
            take_all(&vec![b'2'; MAXIMUM_REPLY + 1], &[]),
            Err(NotAReply)
        );
    }

    proptest! {
        #[test]
        fn any_split_reads_the_same(splits in proptest::collection::vec(0_usize..12, 0..20)) {
            let bytes = b"220 hi\r\n250-a\r\n250 b\r\n334 \r\n535-5.7.8 x\r\n535 5.7.8 y\r\n";
            prop_assert_eq!(take_all(bytes, &splits), take_all(bytes, &[]));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = take_all(&bytes, &[]);
        }
    }
}
