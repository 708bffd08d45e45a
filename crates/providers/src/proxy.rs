//! The proxy out of the operator's network, for HTTP to the configured servers. SMTP, IMAP and webhooks don't use one:
//! the resolver of a webhook's name must be the one that checks its address.

use reqwest::ClientBuilder;
use url::Url;

use mailgate_types::web_address::names_loopback;

/// The proxy from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, less `NO_PROXY`) for a client of this
/// server. None can reach this machine's loopback.
pub(super) fn by_environment(client: ClientBuilder, server: &str) -> ClientBuilder {
    if Url::parse(server).is_ok_and(|url| names_loopback(&url)) {
        client.no_proxy()
    } else {
        client
    }
}
