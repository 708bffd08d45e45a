//! The addresses that a mailbox may send as besides its own: whether the provider reports them, and which of them are
//! accepted.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use std::collections::HashSet;

use super::MailProvider;
use super::oauth::OAuthError;
use super::reader::ReadError;
use super::transport::MailboxAccess;
use mailgate_types::email_address::EmailAddress;

/// Maximum stored addresses of one mailbox besides its own.
pub const MOST: usize = 200;

impl MailProvider {
    /// Whether the provider reports a mailbox's send-as addresses, given the granted scopes.
    #[must_use]
    pub fn tells_aliases(&self, scopes: &[String]) -> bool {
        let by_gmail = self.send_as.as_ref();
        by_gmail.is_some_and(|list| list.may_read(scopes)) || self.oauth.tells_proxies()
    }

    /// The addresses that a mailbox may send as besides its own; empty if the provider doesn't report them.
    pub async fn aliases(
        &self,
        account: &MailboxAccess,
        own: &EmailAddress,
    ) -> Result<Vec<EmailAddress>, ReadError> {
        let reported = match &self.send_as {
            Some(list) if list.may_read(&account.scopes) => list.list(account).await?,
            _ if self.oauth.tells_proxies() => self
                .oauth
                .proxies(&account.access_token)
                .await
                .map_err(|error| not_read(&error))?,
            _ => Vec::new(),
        };
        Ok(kept(own, &reported))
    }
}

/// An account error as a read error.
fn not_read(error: &OAuthError) -> ReadError {
    let text = error.to_string();
    match error {
        OAuthError::Refused { status: 401, .. } => ReadError::TokenRefused(text),
        OAuthError::Refused { status: 403, .. } => ReadError::Forbidden(text),
        _ => ReadError::unavailable(text),
    }
}

/// The valid addresses that a provider reported, deduplicated, in its order, without the mailbox's own.
#[must_use]
pub fn kept(own: &EmailAddress, reported: &[String]) -> Vec<EmailAddress> {
    let mut seen = HashSet::from([own.lookup_key()]);
    let addresses = reported
        .iter()
        .filter_map(|reported| EmailAddress::parse(reported).ok());
    let fresh = addresses.filter(|address| seen.insert(address.lookup_key()));
    fresh.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn own() -> EmailAddress {
        EmailAddress::parse("Ada@example.com").unwrap()
    }

    #[test]
    fn what_is_no_address_is_dropped() {
        let reported = [
            "ada@EXAMPLE.com",
            "Sales@example.com",
            "sales@example.com",
            "",
            "no address",
            "a@b\r\nBcc: eve@example.com",
            "a\0@example.com",
            "Eve <eve@example.com>",
            "a@b, eve@example.com",
            "j\u{f6}rg@b\u{fc}cher.example",
            "\u{202e}x@example.com",
            &format!("{}@example.com", "x".repeat(300)),
        ]
        .map(str::to_owned);
        let addresses: Vec<String> = (kept(&own(), &reported).iter())
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            addresses,
            ["Sales@example.com", "j\u{f6}rg@b\u{fc}cher.example"]
        );
    }

    #[test]
    fn ten_thousand_are_too_many() {
        let reported: Vec<String> = (0..10_000).map(|it| format!("a{it}@example.com")).collect();
        let addresses = kept(&own(), &reported);
        assert_eq!(addresses.len(), MOST);
        assert_eq!(addresses[0].as_str(), "a0@example.com");
    }

    proptest! {
        #[test]
        fn whatever_is_told_is_bounded_and_each_once(
            reported in prop::collection::vec("[aAbB]{1,2}@(x|X)[.]y|.{0,20}", 0..300),
        ) {
            fuzzing::check_kept(&reported);
        }
    }
}
