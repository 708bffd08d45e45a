//! The fuzz target of customers' URLs.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use std::time::Duration;

use url::{Host, Url};

use super::{Egress, as_text};
use crate::answer::fuzzing::client;
use mailgate_types::fuzzing::{Input, is_printable};
use mailgate_types::public_address::is_public;
use mailgate_types::web_address::{check_web_address, check_webhook_address};

thread_local! {
    static EGRESS: Egress = Egress {
        client: client(),
        allow_private: false,
        exchange: Duration::from_secs(1),
    };
}

/// An accepted URL leads only to the public Internet, and the client calls every URL that the field accepts.
pub fn web_addresses(data: &[u8]) {
    let body = as_text(data);
    assert!(body.len() <= super::ANSWER_BYTES && !body.contains('\0'));
    let Some(text) = Input::new(data).text() else {
        return;
    };
    let bare = check_web_address(text, false);
    let webhook = check_webhook_address(text, false);
    assert!(bare.is_err() || check_web_address(text, true).is_ok());
    assert!(webhook.is_err() || check_webhook_address(text, true).is_ok());
    assert!(webhook.is_err() || bare.is_ok(), "{text:?}");
    let called = EGRESS.with(|egress| egress.check(text));
    if bare.is_ok() {
        assert!(text.len() <= 2_048 && is_printable(text) && !text.contains(' '));
        assert_eq!(called.is_ok(), webhook.is_ok(), "{text:?}");
    }
    let Ok(url) = called else { return };
    assert_eq!(url.scheme(), "https");
    assert!(url.username().is_empty() && url.password().is_none());
    match url.host() {
        Some(Host::Ipv4(address)) => assert!(is_public(address.into()), "{text:?}"),
        Some(Host::Ipv6(address)) => assert!(is_public(address.into()), "{text:?}"),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            assert!(
                name != "localhost" && !name.ends_with(".localhost"),
                "{text:?}"
            );
        }
        None => unreachable!("{text:?} has no host"),
    }
    // Parsing it again yields the same address.
    assert_eq!(Url::parse(url.as_str()).as_ref(), Ok(&url));
}
