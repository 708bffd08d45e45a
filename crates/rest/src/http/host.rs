//! The Host header: HTTP/1.1 requires exactly one (RFC 9112 §3.2), so that no proxy between the
//! client and the gateway reads a different one.

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{StatusCode, Version};

use super::problem::Problem;
use mailgate_server::own_hosts::OwnHosts;

/// Refuses a request without a required Host, with two, with an invalid one, or with one that differs from its target;
/// and, if there are own hosts, one for any other.
pub(crate) fn check(request: &Request, own: Option<&OwnHosts>) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_good = match (hosts.next(), hosts.next()) {
        (None, _) => request.version() != Version::HTTP_11,
        (Some(host), None) => {
            let target = request.uri().authority().map(Authority::as_str);
            is_host(host.as_bytes())
                && target
                    .is_none_or(|target| target.as_bytes().eq_ignore_ascii_case(host.as_bytes()))
        }
        (Some(_), Some(_)) => false,
    };
    if !is_good {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_host",
            "The request must have one Host header, with a host and an optional port.",
        ));
    }
    if own.is_some_and(|own| !own.include(request.uri(), request.headers())) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "misdirected_request",
            "mailgate dev only answers to localhost, 127.0.0.1 and the name in http.base_url. Set http.base_url to \
            the name that you use.",
        ));
    }
    Ok(())
}

/// A host and an optional port, or nothing, as clients send for a target without one.
fn is_host(value: &[u8]) -> bool {
    value.is_empty() || (!value.contains(&b'@') && Authority::try_from(value).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn checked(version: Version, hosts: &[&str]) -> bool {
        let mut request = Request::new(Body::empty());
        *request.version_mut() = version;
        for host in hosts {
            if let Ok(value) = host.parse() {
                request.headers_mut().append(HOST, value);
            }
        }
        check(&request, None).is_ok()
    }

    #[test]
    fn one_host_and_no_other() {
        for (hosts, in_1_1, in_others) in [
            (&[][..], false, true),
            (&["gateway.example"], true, true),
            (&["gateway.example:8080"], true, true),
            (&["[::1]:8080"], true, true),
            (&["127.0.0.1"], true, true),
            (&[""], true, true),
            (&["a.example", "a.example"], false, false),
            (&["a.example", "b.example"], false, false),
            (&["user@a.example"], false, false),
            (&["a.example/b"], false, false),
            (&["a example"], false, false),
            (&["a.example, b.example"], false, false),
        ] {
            assert_eq!(checked(Version::HTTP_11, hosts), in_1_1, "{hosts:?}");
            assert_eq!(checked(Version::HTTP_10, hosts), in_others, "{hosts:?}");
            assert_eq!(checked(Version::HTTP_2, hosts), in_others, "{hosts:?}");
        }
    }
}
