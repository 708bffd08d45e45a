//! Whether the gateway gets its clients' addresses from the proxies in front: a request to `http.base_url` claims false
//! ones.

use std::net::{IpAddr, Ipv4Addr};

use chrono::Utc;
use reqwest::header::{HeaderMap, HeaderValue};

use super::{Checked, LIMIT};
use mailgate_providers::reach;
use mailgate_settings::Settings;
use mailgate_types::client_probe::{self, Arrival};
use mailgate_types::trusted_peers::reported_address;

/// Documentation addresses (RFC 5737), each sent in its own header field.
const CLAIMED: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

/// Queries the gateway at `http.base_url`. If none answers, as before its first start, nothing is checked.
pub(super) async fn client_address(settings: &Settings) -> Vec<Checked> {
    let check = Checked::new("client_address", "http.base_url");
    let outcome = match arrival(settings).await {
        Ok(arrival) => judge(&arrival),
        Err(why) => Ok(format!("not checked: {why}")),
    };
    vec![check.with(outcome)]
}

async fn arrival(settings: &Settings) -> Result<Arrival, String> {
    let proof = client_probe::prove(&settings.seal_keys, Utc::now());
    let proof = proof.map_err(|error| error.to_string())?;
    let proof = HeaderValue::try_from(proof).map_err(|error| error.to_string())?;
    let mut fields = HeaderMap::new();
    fields.insert(client_probe::HEADER, proof);
    for address in CLAIMED {
        let claim = HeaderValue::try_from(address.to_string());
        let claim = claim.map_err(|error| error.to_string())?;
        fields.append("x-forwarded-for", claim);
    }
    let url = format!("{}/healthz", settings.http_base_url);
    let answer = reach::text(&url, fields, LIMIT).await;
    let (status, text) = answer.map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|_| {
        format!(
            "HTTP {status} from /healthz, not by a gateway of this version with these sealing keys"
        )
    })
}

/// The result of the request with false addresses.
fn judge(arrival: &Arrival) -> Result<String, String> {
    let Arrival {
        peer,
        is_trusted,
        client,
        forwarded_for,
    } = arrival;
    let hops = || forwarded_for.iter().flat_map(|field| field.split(','));
    if *is_trusted && is_claimed(*client) {
        return Err(format!(
            "a client that writes an X-Forwarded-For of its own is believed: the proxy at {peer} must set the header \
             anew (nginx: proxy_set_header X-Forwarded-For $remote_addr;)"
        ));
    }
    let last = hops().next_back();
    if *is_trusted
        && last
            .and_then(|hop| reported_address(hop.as_bytes()))
            .is_none()
    {
        return Err(format!(
            "the proxy at {peer} doesn't report its clients in X-Forwarded-For, so all of them count as one"
        ));
    }
    if !is_trusted && !hops().map(str::trim).eq(CLAIMED.map(|it| it.to_string())) {
        return Err(format!(
            "http.trusted_proxies doesn't name the proxy at {peer}, so all its clients count as one"
        ));
    }
    Ok(format!("this client is {client}"))
}

fn is_claimed(address: IpAddr) -> bool {
    CLAIMED.iter().any(|claimed| address == *claimed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for a gateway that trusts 10.0.0.0/8.
    fn judged(peer: [u8; 4], client: [u8; 4], forwarded_for: &[&str]) -> Result<String, String> {
        judge(&Arrival {
            peer: peer.into(),
            is_trusted: peer[0] == 10,
            client: client.into(),
            forwarded_for: forwarded_for.iter().map(|it| (*it).to_owned()).collect(),
        })
    }

    #[test]
    fn what_each_proxy_shows() {
        let (proxy, client) = ([10, 0, 0, 1], [203, 0, 113, 9]);
        for (peer, taken_for, fields, problem) in [
            (proxy, client, &["203.0.113.9"][..], None),
            (
                proxy,
                client,
                &["192.0.2.1", "192.0.2.2", "203.0.113.9"],
                None,
            ),
            (
                proxy,
                client,
                &["192.0.2.1, 192.0.2.2, 203.0.113.9:80, 10.0.0.2"],
                None,
            ),
            // This machine is one of the proxies.
            (proxy, proxy, &["10.0.0.1"], None),
            // No proxy, or one that adds no header.
            (client, client, &["192.0.2.1", "192.0.2.2"], None),
            (
                proxy,
                [192, 0, 2, 2],
                &["192.0.2.1", "192.0.2.2"],
                Some("is believed"),
            ),
            (
                proxy,
                [192, 0, 2, 2],
                &["192.0.2.1,192.0.2.2", "10.0.0.2"],
                Some("is believed"),
            ),
            (proxy, [192, 0, 2, 1], &["192.0.2.1"], Some("is believed")),
            (proxy, proxy, &[], Some("doesn't report")),
            (
                proxy,
                proxy,
                &["203.0.113.9, unknown"],
                Some("doesn't report"),
            ),
            (client, client, &["203.0.113.5"], Some("doesn't name")),
            (
                client,
                client,
                &["192.0.2.1, 192.0.2.2, 203.0.113.5"],
                Some("doesn't name"),
            ),
            (client, client, &[], Some("doesn't name")),
        ] {
            let judged = judged(peer, taken_for, fields);
            match problem {
                None => assert!(judged.is_ok(), "{fields:?} {judged:?}"),
                Some(problem) => {
                    let said = judged.err().unwrap_or_default();
                    assert!(said.contains(problem), "{fields:?} {said}");
                }
            }
        }
    }
}
