//! Notifications in prose, which differs by server: the failed recipients are at the beginning of a line, after a word
//! like "Recipient:", or in X-Failed-Recipients.

use mailgate_types::bounce_type::BounceType;

use crate::bounce::{BouncedRecipient, RECIPIENTS};
use crate::candidate::{daemon, is_from_daemon};
use crate::fields::values;
use crate::{diagnostic, phrases, recipient, status_code};

/// Words before a failed address.
const LABELS: [&str; 15] = [
    "to",
    "for",
    "address",
    "addresses",
    "recipient",
    "recipients",
    "rcpt",
    "user",
    "userid",
    "username",
    "mailbox",
    "account",
    "reached",
    "destination",
    "收件人",
];

/// Words before the original recipient, if the failed address is a forwarding target.
const FORWARDED: [&str; 2] = ["generated from", "expanded from"];

/// Google's words before the other server's reply.
const RESPONSE: &str = "response was:";

/// Characters that enclose an address, or separate it from other words.
const PUNCTUATION: &[char] = &[
    '<', '>', '"', '\'', '`', '(', ')', '[', ']', '*', '-', ':', ';', ',', '.', '=', '|', '•',
    '\u{201c}', '\u{201d}',
];

/// A recipient in the text.
#[derive(Debug)]
struct Mention {
    /// The address as written.
    written: String,
    /// The address that the message was sent to.
    address: String,
    words: Option<String>,
}

impl Mention {
    fn of(address: String) -> Self {
        Self {
            written: address.clone(),
            address,
            words: None,
        }
    }
}

/// The text of a notification, before the original.
#[derive(Debug)]
pub(crate) struct Notice<'a> {
    /// Its header.
    pub(crate) header: &'a [u8],
    /// Its subject, decoded.
    pub(crate) subject: &'a str,
    pub(crate) lines: &'a [&'a str],
    /// The known part of the original's header.
    pub(crate) original: &'a [u8],
}

impl Notice<'_> {
    /// The failed recipients; none if the text doesn't report a failure.
    pub(crate) fn recipients(&self) -> Vec<BouncedRecipient> {
        let words = format!("{}\n{}", self.subject, self.lines.join("\n")).to_lowercase();
        let failed: Vec<String> = values(self.header, "x-failed-recipients")
            .flat_map(|value| addresses(&value))
            .collect();
        if failed.is_empty() && !phrases::tells_failure(&words) {
            return Vec::new();
        }
        let bounce_type = if phrases::tells_delay(&words) {
            BounceType::Temporary
        } else {
            BounceType::Permanent
        };
        let mentions = self.mentions(&failed);
        let is_alone = mentions.len() == 1;
        (mentions.into_iter().take(RECIPIENTS))
            .map(|mention| {
                let mut words = mention.words;
                let has_code = words.as_deref().and_then(status_code::within).is_some();
                if !has_code {
                    let reply = self.transcript(&mention.address);
                    let reply = reply.or_else(|| is_alone.then(|| self.reason())?);
                    words = reply.or(words);
                }
                let status = words.as_deref().and_then(status_code::within);
                BouncedRecipient {
                    address: mention.address,
                    bounce_type,
                    status,
                    diagnostic: words.as_deref().and_then(diagnostic::one_line),
                }
            })
            .collect()
    }

    fn mentions(&self, failed: &[String]) -> Vec<Mention> {
        let own = self.own_addresses();
        let mut at_line_start = self.with_words(str::is_empty);
        if !failed.is_empty() {
            // The header is reliable; the text has the diagnostics.
            let is_alone = failed.len() == 1 && at_line_start.len() == 1;
            return (failed.iter())
                .map(|address| {
                    let same = |mention: &Mention| {
                        is_alone || mention.written.eq_ignore_ascii_case(address)
                    };
                    match at_line_start.iter().position(same) {
                        Some(place) => {
                            let found = at_line_start.swap_remove(place);
                            let is_forwarded = found.address != found.written;
                            Mention {
                                address: if is_forwarded {
                                    found.address
                                } else {
                                    address.clone()
                                },
                                ..found
                            }
                        }
                        None => Mention::of(address.clone()),
                    }
                })
                .collect();
        }
        let sent_to: Vec<String> = ["to", "cc"]
            .into_iter()
            .flat_map(|name| values(self.original, name))
            .flat_map(|value| addresses(&value))
            .collect();
        let is_sent_to = |mention: &Mention| contains(&sent_to, &mention.address);
        // The sender is often mentioned, and rarely failed.
        let others = |mut mentions: Vec<Mention>| {
            if mentions
                .iter()
                .any(|mention| !contains(&own, &mention.address))
            {
                mentions.retain(|mention| !contains(&own, &mention.address));
            }
            mentions
        };
        let at_line_start = others(at_line_start);
        if !at_line_start.is_empty() {
            return at_line_start;
        }
        let mut labelled = others(self.with_words(is_label));
        if labelled.iter().any(is_sent_to) {
            labelled.retain(is_sent_to);
        }
        if !labelled.is_empty() {
            return labelled;
        }
        let mut anywhere = self.with_words(|_| true);
        anywhere.retain(is_sent_to);
        match (anywhere.is_empty(), sent_to.as_slice()) {
            (true, [only]) => vec![Mention::of(only.clone())],
            _ => anywhere,
        }
    }

    /// The addresses that begin an entry, as `begins` decides by the text before them, each with the text after it up
    /// to the next entry or the end of the paragraph.
    fn with_words(&self, begins: impl Fn(&str) -> bool) -> Vec<Mention> {
        let mut found: Vec<Mention> = Vec::new();
        let mut words: Option<String> = None;
        let end = |found: &mut Vec<Mention>, words: &mut Option<String>| {
            if let (Some(last), Some(words)) = (found.last_mut(), words.take()) {
                let words = words.trim();
                let words = words.trim_start_matches(|letter: char| {
                    letter == ' ' || letter != '(' && PUNCTUATION.contains(&letter)
                });
                last.words = (!words.is_empty()).then(|| words.to_owned());
            }
        };
        for line in self.lines {
            let entry =
                mention(line).filter(|(before, address, _)| begins(before) && !is_daemon(address));
            if let Some((before, address, behind)) = entry {
                end(&mut found, &mut words);
                if found.len() >= RECIPIENTS {
                    return found;
                }
                let is_known = found
                    .iter()
                    .any(|mention| mention.address.eq_ignore_ascii_case(&address));
                if is_known {
                    continue;
                }
                found.push(Mention::of(address));
                let first = if before.is_empty() {
                    behind
                } else {
                    line.trim()
                };
                words = Some(first.to_owned());
            } else if let Some(kept) = &mut words {
                let line = line.trim();
                let has_words = kept.contains(|letter: char| letter.is_alphanumeric());
                if line.is_empty() && has_words {
                    end(&mut found, &mut words);
                } else if kept.len() < diagnostic::DIAGNOSTIC {
                    kept.push(' ');
                    kept.push_str(line);
                }
            }
        }
        end(&mut found, &mut words);
        for mention in &mut found {
            if let Some(address) = mention.words.as_deref().and_then(forwarded_from) {
                mention.address = address;
            }
        }
        found
    }

    /// The reply to an address in a transcript of the session.
    fn transcript(&self, address: &str) -> Option<String> {
        let address = address.to_lowercase();
        let replies = self
            .lines
            .iter()
            .map(|line| line.trim_start_matches(['<', '>', ' ', '\t']));
        replies
            .filter(|line| {
                line.starts_with(['4', '5'])
                    && line
                        .as_bytes()
                        .get(..3)
                        .is_some_and(|code| code.iter().all(u8::is_ascii_digit))
            })
            .find(|line| line.to_lowercase().contains(&address))
            .map(str::to_owned)
    }

    /// The first line with a code, or the text after "The response was:".
    fn reason(&self) -> Option<String> {
        let mut lines = self.lines.iter().map(|line| line.trim());
        if let Some(line) = lines.find(|line| status_code::within(line).is_some()) {
            return Some(line.to_owned());
        }
        let mut lines = self.lines.iter().map(|line| line.trim());
        lines.find(|line| line.to_lowercase().ends_with(RESPONSE))?;
        lines.find(|line| !line.is_empty()).map(str::to_owned)
    }

    /// The notification's recipient and sender.
    fn own_addresses(&self) -> Vec<String> {
        ["to", "delivered-to", "from"]
            .into_iter()
            .flat_map(|name| values(self.header, name).take(1))
            .flat_map(|value| addresses(&value))
            .collect()
    }
}

fn contains(addresses: &[String], address: &str) -> bool {
    addresses
        .iter()
        .any(|own| own.eq_ignore_ascii_case(address))
}

/// The text before the first address of a line, the address, and the text after it.
fn mention(line: &str) -> Option<(&str, String, &str)> {
    let at = line.find('@')?;
    let is_end = |letter: char| letter.is_whitespace() || ",;<>()[]\"".contains(letter);
    let begin = line[..at].rfind(is_end).map_or(0, |place| {
        place + line[place..].chars().next().map_or(1, char::len_utf8)
    });
    let end = line[at..]
        .find(is_end)
        .map_or(line.len(), |length| at + length);
    let address = recipient::address(&line[begin..end])?;
    Some((
        line[..begin].trim().trim_matches(PUNCTUATION).trim(),
        address,
        &line[end..],
    ))
}

fn is_label(before: &str) -> bool {
    let word = before
        .rsplit(|letter: char| letter.is_whitespace() || PUNCTUATION.contains(&letter))
        .find(|word| !word.is_empty())
        .unwrap_or_default()
        .to_lowercase();
    LABELS.contains(&word.as_str())
}

fn is_daemon(address: &str) -> bool {
    daemon(address.rsplit_once('@').map_or(address, |(local, _)| local))
}

fn forwarded_from(words: &str) -> Option<String> {
    let lower = words.to_ascii_lowercase();
    let at = FORWARDED
        .iter()
        .find_map(|phrase| lower.find(phrase).map(|at| at + phrase.len()))?;
    mention(&words[at..]).map(|(_, address, _)| address)
}

/// The addresses of a header's value.
fn addresses(value: &str) -> Vec<String> {
    value
        .split(|letter: char| letter.is_whitespace() || ",;".contains(letter))
        .filter(|word| word.contains('@'))
        .filter_map(recipient::address)
        .take(RECIPIENTS)
        .collect()
}

/// Whether its header indicates that a server wrote it.
pub(crate) fn is_by_server(header: &[u8]) -> bool {
    is_from_daemon(header) || values(header, "x-failed-recipients").next().is_some()
}
