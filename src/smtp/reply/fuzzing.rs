//! The fuzz target for a provider's reply as passed on to the client.

use super::rejected;
use mailgate_providers::mail::verdict::Failure;
use mailgate_types::fuzzing::Input;

/// A provider's refusal becomes exactly one reply, of the 5yz kind, whatever its text contains.
pub(crate) fn provider_refusals(data: &[u8]) {
    let mut input = Input::new(data);
    let code = match input.number() {
        0 => None,
        number => u16::try_from(number).ok(),
    };
    let text = String::from_utf8_lossy(input.rest()).into_owned();
    let mut output = Vec::new();
    rejected(&Failure { code, text }).write_to(&mut output);
    let Ok(reply) = String::from_utf8(output) else {
        unreachable!("a reply is ASCII");
    };
    let lines: Vec<&str> = reply.split_inclusive("\r\n").collect();
    for (index, line) in lines.iter().enumerate() {
        assert!(line.len() <= 512 && line.ends_with("\r\n"), "{line:?}");
        assert!(line.starts_with('5') && line[..3] == reply[..3], "{line:?}");
        let separator = if index + 1 == lines.len() { ' ' } else { '-' };
        assert_eq!(line.chars().nth(3), Some(separator), "{line:?}");
        assert!(
            line.trim_end_matches("\r\n")
                .bytes()
                .all(|byte| matches!(byte, b' '..=b'~'))
        );
    }
}
