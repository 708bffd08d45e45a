//! The host names that a development server answers to. Another website can point its own name at this machine (DNS
//! rebinding), so that browsers treat its pages as the server's own; `Host` still shows the difference.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

/// Loopback names and addresses, the listener's address, and names in the settings; with any port.
#[derive(Debug, Clone)]
pub struct OwnHosts {
    address: IpAddr,
    names: Arc<[String]>,
}

impl OwnHosts {
    /// The hosts of a listener and of these URLs; empty URLs are ignored.
    #[must_use]
    pub fn new<'a>(listen: SocketAddr, urls: impl IntoIterator<Item = &'a str>) -> Self {
        let urls = urls.into_iter().filter_map(|url| url::Url::parse(url).ok());
        let hosts = urls.filter_map(|url| url.host_str().map(canonical));
        Self {
            address: listen.ip().to_canonical(),
            names: hosts.collect(),
        }
    }

    /// Whether a request's target and `Host` name one of them; `false` without any host.
    #[must_use]
    pub fn include(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let fields = headers.get_all(HOST).iter();
        let fields = fields.map(|field| Authority::try_from(field.as_bytes()).ok());
        let mut all = fields.chain(uri.authority().cloned().map(Some)).peekable();
        all.peek().is_some()
            && all.all(|authority| authority.is_some_and(|authority| self.is_own(authority.host())))
    }

    fn is_own(&self, host: &str) -> bool {
        let host = canonical(host);
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let address: Result<IpAddr, _> = bare.unwrap_or(&host).parse();
        let is_local = match address.map(|address| address.to_canonical()) {
            Ok(address) => {
                address.is_loopback() || (address == self.address && !address.is_unspecified())
            }
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        };
        is_local || self.names.contains(&host)
    }
}

/// The name in lower case, without the trailing dot.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn includes(target: &str, hosts: &[&str]) -> bool {
        let listen = "192.0.2.7:8080".parse().unwrap();
        let own = OwnHosts::new(listen, ["https://Gateway.example:8443/x", ""]);
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        own.include(&target.parse().unwrap(), &headers)
    }

    #[test]
    fn loopback_the_listener_and_the_settings() {
        for host in [
            "localhost",
            "localhost:8025",
            "LOCALHOST.",
            "Localhost.:1",
            "mailgate.localhost:8080",
            "127.0.0.1",
            "127.0.0.1:8025",
            "127.8.8.8:1",
            "[::1]",
            "[::1]:8025",
            "[::ffff:127.0.0.1]",
            "192.0.2.7:8080",
            "gateway.example",
            "GATEWAY.example.:8080",
        ] {
            assert!(includes("/", &[host]), "{host}");
            assert!(includes(&format!("http://{host}/"), &[]), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8025",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8025",
            "evil-localhost",
            "localhost..",
            "xgateway.example",
            "a.gateway.example",
            "192.0.2.8",
            "0.0.0.0:8025",
            "[::]",
            "10.0.0.1",
            "127.0.0.1@evil.example",
            "127.1",
            "2130706433",
            "",
            "a b",
        ] {
            assert!(!includes("/", &[host]), "{host}");
        }
        assert!(!includes("/", &[]));
        assert!(!includes("/", &["localhost", "evil.example"]));
        assert!(!includes("http://localhost/", &["evil.example"]));
        assert!(!includes("http://evil.example/", &["localhost"]));
        let unspecified = OwnHosts::new("[::]:8025".parse().unwrap(), []);
        assert!(!unspecified.is_own("0.0.0.0") && !unspecified.is_own("[::]"));
    }
}
