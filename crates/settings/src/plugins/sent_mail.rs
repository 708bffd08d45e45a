//! How messages get into the Sent folder.

use super::defaults::Defaults;
use super::server::Endpoint;
use crate::reader::Reader;

/// The setting for filing copies.
const APPEND_SENT_MAIL: &str = "append_sent_mail";

/// How messages get into the Sent folder.
pub(super) struct SentMail {
    pub(super) is_kept: bool,
    pub(super) is_appended: bool,
}

pub(super) fn read(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: Option<&Defaults>,
) -> Option<SentMail> {
    let mut choice = |key: &str, default| {
        let name = name(key);
        if reader.text(&name).is_empty() {
            return default;
        }
        reader.choice(&name, &[("yes", true), ("no", false)])
    };
    let is_kept = choice(
        "keeps_sent_mail",
        defaults.map(|defaults| defaults.keeps_sent_mail),
    );
    let is_appended = choice(APPEND_SENT_MAIL, Some(false));
    Some(SentMail {
        is_kept: is_kept?,
        is_appended: is_appended?,
    })
}

impl SentMail {
    /// A provider that keeps copies must not get a second one, and filing one needs IMAP.
    pub(super) fn check(
        &self,
        reader: &mut Reader<'_>,
        name: &impl Fn(&str) -> String,
        imap: Option<&Endpoint>,
    ) {
        let name = name(APPEND_SENT_MAIL);
        if self.is_appended && self.is_kept {
            let text = "must be no where keeps_sent_mail is yes: there would be two copies";
            reader.problem(&name, text);
        }
        if self.is_appended && imap.is_none() {
            reader.problem(&name, "needs imap_host, and the transport smtp");
        }
    }
}
