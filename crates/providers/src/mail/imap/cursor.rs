//! Where the next check of a mailbox begins: a place in the inbox, and one in the junk folder.

use std::fmt;

/// A place in a folder: a UID, valid as long as the folder keeps its UIDVALIDITY (RFC 9051 §2.3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) uid_validity: u32,
    /// The first UID that has not been read.
    pub(super) uid: u32,
}

impl Place {
    fn read(text: &str) -> Option<Self> {
        let (uid_validity, uid) = text.split_once(':')?;
        Some(Self {
            uid_validity: uid_validity.parse().ok()?,
            uid: uid.parse().ok()?,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.uid_validity, self.uid)
    }
}

/// `7:11`, or `7:11;9:3` with a junk folder. Older releases, which read only the inbox, wrote the former and ignore the
/// latter: they then read by time, and report nothing twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) inbox: Place,
    pub(super) junk: Option<Place>,
}

impl Cursor {
    pub(super) fn read(text: &str) -> Option<Self> {
        let (inbox, junk) = match text.split_once(';') {
            Some((inbox, junk)) => (inbox, Some(Place::read(junk)?)),
            None => (text, None),
        };
        Some(Self {
            inbox: Place::read(inbox)?,
            junk,
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inbox.fmt(formatter)?;
        match self.junk {
            Some(junk) => write!(formatter, ";{junk}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors() {
        let inbox = Place {
            uid_validity: 4_294_967_295,
            uid: 7,
        };
        let junk = Place {
            uid_validity: 9,
            uid: 3,
        };
        for (text, junk) in [("4294967295:7", None), ("4294967295:7;9:3", Some(junk))] {
            let cursor = Cursor { inbox, junk };
            assert_eq!(cursor.to_string(), text);
            assert_eq!(Cursor::read(text), Some(cursor));
        }
        for text in [
            "",
            "7",
            ":",
            "1:",
            "1:2:3",
            "-1:2",
            "1:4294967296",
            "a:b",
            ";1:2",
            "1:2;",
            "1:2;3",
            "1:2;3:4;5:6",
        ] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
    }
}
