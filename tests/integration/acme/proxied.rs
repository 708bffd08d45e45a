//! What has port 80 passes the questions of the ACME server on, as docs/certificates.md and the configuration of `HAProxy`
//! say.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use super::{local, of_pebble, shows_another};
use crate::documents::{Use, the_block};
use crate::peers::nginx::Nginx;
use crate::peers::pebble::Pebble;
use crate::peers::process::{Household, find};
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;

const HAPROXY: &str = include_str!("../../../config/haproxy/haproxy.cfg");

/// A gateway that isn't at Pebble's port itself.
async fn behind(pebble: &Pebble, http_listen: SocketAddr) -> Gateway {
    of_pebble(Gateway::builder(), pebble, http_listen)
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_them_on() {
    let pebble = Pebble::start().await;
    let [port] = ports::reserve();
    let lines = the_block(Use::Nginx, "location /.well-known/acme-challenge/");
    assert!(lines.contains("127.0.0.1:8081"), "{lines}");
    let lines = lines.replace("127.0.0.1:8081", &local(port).to_string());
    let _nginx = Nginx::start(pebble.http_port, &lines).await;
    let gateway = behind(&pebble, local(port)).await;
    shows_another(gateway.tls_address(), &pebble.root_file, None).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_passes_them_on_and_sends_all_others_to_https() {
    let pebble = Pebble::start().await;
    let [port] = ports::reserve();
    let gateway = behind(&pebble, local(port)).await;
    let (common, _) = HAPROXY.split_once("\nlisten rest\n").unwrap();
    let household = Household::new();
    let socket = household.folder().join("admin.sock");
    // Its section is a comment.
    let (common, section) = common.split_once("\n#listen acme\n").unwrap();
    let section = section.lines().map(|line| line.trim_start_matches('#'));
    let section: Vec<_> = section.take_while(|line| !line.is_empty()).collect();
    let mut text = format!("{common}\nlisten acme\n{}\n", section.join("\n"));
    for (from, to) in [
        ("/run/haproxy/admin.sock", socket.display().to_string()),
        (":::80 v4v6", format!("127.0.0.1:{}", pebble.http_port)),
        (
            "port 8080",
            format!("port {}", gateway.daemon.http_address.port()),
        ),
        ("10.0.0.11:80", format!("127.0.0.1:{port}")),
        ("    server two 10.0.0.12:80\n", String::new()),
        ("    server three 10.0.0.13:80\n", String::new()),
    ] {
        assert!(text.contains(from), "{from} stands there: {text}");
        text = text.replace(from, &to);
    }
    let path = household.folder().join("haproxy.cfg");
    fs::write(&path, text).unwrap();
    let program = find("haproxy").expect("haproxy isn't installed: run tests/peers/install");
    let mut command = Command::new(program);
    household.add("haproxy", command.arg("-db").arg("-f").arg(&path));
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.build().unwrap();
    let status = async |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", pebble.http_port);
        client
            .get(url)
            .send()
            .await
            .ok()
            .map(|it| it.status().as_u16())
    };
    // Until it has seen that the gateway is ready, it answers itself.
    patience::until("gateway's own answer", async || {
        status("/.well-known/acme-challenge/x").await == Some(404)
    })
    .await;
    assert_eq!(status("/portal").await, Some(302));
    // The first order found nothing at this port.
    gateway
        .eventually("the end of the first order", async |gateway| {
            let failures = sqlx::query_scalar::<_, i32>("SELECT failures FROM certificates");
            let failures = failures.fetch_optional(&mut gateway.database().await).await;
            failures.unwrap().is_some_and(|failures| failures > 0)
        })
        .await;
    sqlx::query("UPDATE certificates SET due_at = now()")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    shows_another(gateway.tls_address(), &pebble.root_file, None).await;
    gateway.stop().await;
}
