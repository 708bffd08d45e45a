//! An authority that knows its customers: a new account is bound to one outside of ACME (RFC 8555 §7.3.4).

use super::{local, of_pebble, shows_another};
use crate::peers::pebble::Pebble;
use crate::support::gateway::Gateway;
use crate::support::patience;

const KEY_ID: &str = "customer-1";
const MAC_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

#[tokio::test(flavor = "multi_thread")]
async fn only_an_account_that_is_bound_gets_a_certificate() {
    let pebble = Pebble::that_binds(KEY_ID, MAC_KEY).await;
    for (key_id, mac_key, reason) in [
        ("", "", "externalAccountRequired"),
        ("customer-2", MAC_KEY, "unauthorized"),
        (KEY_ID, &MAC_KEY.replace('z', "y"), "unauthorized"),
    ] {
        let gateway = of_pebble(Gateway::builder(), &pebble, local(pebble.http_port))
            .set("ACME__EAB_KEY_ID", key_id)
            .set("ACME__EAB_MAC_KEY", mac_key)
            .start()
            .await;
        let error = patience::found("failed attempt", async || {
            sqlx::query_scalar::<_, Option<String>>("SELECT last_error FROM certificates")
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap()
        })
        .await;
        assert!(error.contains(reason), "{key_id:?}: {error}");
        gateway.stop().await;
    }
    let gateway = of_pebble(Gateway::builder(), &pebble, local(pebble.http_port))
        .set("ACME__EAB_KEY_ID", KEY_ID)
        .set("ACME__EAB_MAC_KEY", MAC_KEY)
        .start()
        .await;
    shows_another(gateway.tls_address(), &pebble.root_file, None).await;
    gateway.stop().await;
}
