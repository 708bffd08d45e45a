//! A MIME message in base64, as Graph takes it.

use std::io::Write;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderStringWriter;

use mailgate_types::message::Message;

/// The base64 length of this many bytes.
pub(super) fn in_base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

pub(super) fn base64(message: &Message) -> String {
    let mut encoded = String::with_capacity(in_base64(message.size()));
    let mut writer = EncoderStringWriter::from_consumer(&mut encoded, &STANDARD);
    for chunk in message.chunks() {
        // Writing to memory can't fail.
        let _ = writer.write_all(chunk);
    }
    writer.into_inner();
    encoded
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use bytes::Bytes;

    use super::*;
    use crate::mail::own_headers::own_message_id;

    #[test]
    fn base64_over_the_seams_of_pieces() {
        let message = Message::from_pieces(vec![
            Bytes::from("Subject: x\r\n"),
            Bytes::from("M"),
            Bytes::from("essage-ID: <a@x.org>\r\n\r"),
            Bytes::from("\nMessage-ID: <b@x.org>\r\n"),
        ]);
        let whole = message.chunks().collect::<Vec<_>>().concat();
        let encoded = base64(&message);
        assert_eq!(encoded, STANDARD.encode(whole));
        assert_eq!(encoded.len(), in_base64(message.size()));
        assert_eq!(own_message_id(&message).as_deref(), Some("<a@x.org>"));
    }
}
