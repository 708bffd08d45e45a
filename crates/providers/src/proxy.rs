//! The proxy that leads out of the operator's network, for HTTP to the servers of the settings. SMTP, IMAP and webhooks
//! leave without one: what resolves a webhook's name must be what checked its address.

use reqwest::ClientBuilder;
use url::Url;

use mailgate_types::web_address::names_loopback;

/// The proxy that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, less `NO_PROXY`) for a client of
/// this server. None can reach this machine's loopback.
pub(super) fn by_environment(client: ClientBuilder, server: &str) -> ClientBuilder {
    if Url::parse(server).is_ok_and(|url| names_loopback(&url)) {
        client.no_proxy()
    } else {
        client
    }
}
