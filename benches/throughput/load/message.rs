//! The message that everybody sends.

/// The mailbox that it goes out from.
pub const SENDER: &str = "ada@bench.example";

/// Whom it goes to.
pub const RECIPIENT: &str = "bob@example.com";

/// Its size in bytes.
const SIZE: usize = 5_000;

/// What its headers take of that, in a message that the gateway composes.
const HEADERS: usize = 400;

const LINE: &str = "A line of text as it stands in many messages, neither long nor short.\r\n";

/// Some text of the length of the message's body.
pub fn text() -> String {
    LINE.repeat((SIZE - HEADERS) / LINE.len())
}

/// The message in wire form.
pub fn raw() -> String {
    let mut raw = format!(
        "From: Ada <{SENDER}>\r\nTo: <{RECIPIENT}>\r\nSubject: How fast is it?\r\n\
         Date: Fri, 02 Jan 2026 10:00:00 +0000\r\nMessage-ID: <one@bench.example>\r\n\
         MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    );
    while raw.len() + LINE.len() <= SIZE {
        raw.push_str(LINE);
    }
    raw
}
