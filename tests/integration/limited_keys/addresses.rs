//! Keys that may be used from some addresses: by REST behind a proxy, and by SMTP with the PROXY protocol.

use super::*;
use crate::command_line::process::http_client;
use crate::command_line::serve::replica;
use crate::support::gateway::Builder;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn behind_proxies() -> Builder {
    Gateway::builder()
        .set("HTTP__TRUSTED_PROXIES", "127.0.0.0/8,::1")
        .set("SMTP__PROXY_PROTOCOL_FROM", "127.0.0.0/8,::1")
}

/// A PROXY header, version 2, for a client at this address.
fn header(client: &str) -> Vec<u8> {
    match client.parse().unwrap() {
        std::net::IpAddr::V4(address) => {
            let rest = [198, 51, 100, 1, 0x11, 0xd7, 0x02, 0x4b];
            [SIGNATURE, &[0x21, 0x11, 0, 12], &address.octets(), &rest].concat()
        }
        std::net::IpAddr::V6(address) => {
            let here = std::net::Ipv6Addr::LOCALHOST.octets();
            let ports = [0x11, 0xd7, 0x02, 0x4b];
            [
                SIGNATURE,
                &[0x21, 0x21, 0, 36],
                &address.octets(),
                &here,
                &ports,
            ]
            .concat()
        }
    }
}

/// The reply to AUTH of a client at this address.
async fn authenticate_from(gateway: &Gateway, client: &str, key: &str) -> (SmtpClient, String) {
    let mut smtp = SmtpClient::connect(gateway.starttls_address()).await;
    smtp.write(&header(client)).await;
    smtp.reply().await;
    smtp.command("EHLO client.example").await;
    assert!(smtp.command("STARTTLS").await.starts_with("220 "));
    let mut smtp = smtp.encrypt(&gateway.ca_file).await;
    smtp.command("EHLO client.example").await;
    let reply = authenticate(&mut smtp, &gateway.app.slug, key).await;
    (smtp, reply)
}

async fn send_from(gateway: &Gateway, client: &str, key: &str) -> Answer {
    let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "s", "body": "b" });
    let request = anonymous(gateway, Method::POST, "/send");
    let request = request
        .header("x-send-key", key)
        .header("x-forwarded-for", client);
    Answer::to(request.json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_addresses_may_use_it() {
    let gateway = behind_proxies().start().await;
    let fields = json!({
        "name": "Other",
        "allowed_addresses": ["192.0.2.0/25", "::ffff:203.0.113.7", "2001:db8::/32"],
    });
    let created = create(&gateway, &fields).await;
    let shown = json!(["192.0.2.0/25", "203.0.113.7/32", "2001:db8::/32"]);
    assert_eq!(created["allowed_addresses"], shown);
    let key = text(&created, "send_key");
    // Known by then to those who remember keys.
    send_from(&gateway, "192.0.2.1", key).await.success(200);
    for client in [
        "192.0.2.1",
        "192.0.2.127",
        "::ffff:192.0.2.9",
        "203.0.113.7",
        "2001:db8:ffff::1",
    ] {
        send_from(&gateway, client, key).await.success(200);
        let (mut smtp, reply) = authenticate_from(&gateway, client, key).await;
        assert!(reply.starts_with("235 "), "{client}: {reply}");
        let reply = submit(&mut smtp, MAILBOX).await;
        assert!(reply.starts_with("250 2.0.0"), "{client}: {reply}");
    }
    let sent = gateway.sandbox.inbox.count();
    let wrong = send_from(&gateway, "192.0.2.1", "sek_").await;
    for client in [
        "192.0.2.128",
        "203.0.113.8",
        "2001:db9::1",
        "::1",
        "127.0.0.1",
    ] {
        let answer = send_from(&gateway, client, key).await;
        assert_eq!(answer.problem(), (401, "invalid_send_key"), "{client}");
        assert_eq!(
            answer.body["detail"], wrong.body["detail"],
            "no more than a stranger hears"
        );
        let (_, reply) = authenticate_from(&gateway, client, key).await;
        assert_eq!(reply, AUTHENTICATION_FAILED, "{client}");
        // The main key has no such limits.
        send_from(&gateway, client, gateway.app.send_key.expose())
            .await
            .success(200);
    }
    assert_eq!(gateway.sandbox.inbox.count(), sent + 5);
    gateway.stop().await;
}

/// The answer to a message with these fields of X-Forwarded-For, as bytes.
async fn forwarded(gateway: &Gateway, fields: &[&[u8]], key: &str) -> Answer {
    let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "s", "body": "b" });
    let mut request = anonymous(gateway, Method::POST, "/send").header("x-send-key", key);
    for field in fields {
        let value = reqwest::header::HeaderValue::from_bytes(field).unwrap();
        request = request.header("x-forwarded-for", value);
    }
    Answer::to(request.json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_client_writes_makes_a_proxys_address_its_own() {
    let gateway = behind_proxies().start().await;
    let fields = json!({ "name": "Ours", "allowed_addresses": ["127.0.0.0/8", "0.0.0.0/1"] });
    let ours = create(&gateway, &fields).await;
    let fields = json!({ "name": "Clients", "allowed_addresses": ["203.0.113.9"] });
    let clients = create(&gateway, &fields).await;
    let (ours, clients) = (text(&ours, "send_key"), text(&clients, "send_key"));
    // As proxies pass on what a client wrote, with its address behind it.
    for fields in [
        &[&b"203.0.113.9"[..]][..],
        &[b"\xff, 203.0.113.9"],
        &[b"127.0.0.1, \xe4\xb8\xad , 203.0.113.9"],
        &[b"\xff", b"203.0.113.9"],
        &[b"127.0.0.1", b"203.0.113.9, 127.0.0.2"],
    ] {
        forwarded(&gateway, fields, clients).await.success(200);
        let answer = forwarded(&gateway, fields, ours).await;
        assert_eq!(answer.problem(), (401, "invalid_send_key"), "{fields:?}");
    }
    // Proxies that report nobody: nobody is let in by their own address.
    for fields in [
        &[][..],
        &[&b""[..]],
        &[b"203.0.113.9, unknown"],
        &[b"203.0.113.9, \xff"],
        &[b"203.0.113.9", b"_hidden"],
        &[b"203.0.113.9,"],
        &[b"127.0.0.3"],
    ] {
        for key in [ours, clients] {
            let answer = forwarded(&gateway, fields, key).await;
            assert_eq!(answer.problem(), (401, "invalid_send_key"), "{fields:?}");
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_of_an_untrusted_client_is_not_its_address() {
    let gateway = Gateway::start().await;
    let fields = json!({ "name": "Other", "allowed_addresses": ["192.0.2.0/24"] });
    let created = create(&gateway, &fields).await;
    let key = text(&created, "send_key");
    let answer = send_from(&gateway, "192.0.2.1", key).await;
    assert_eq!(answer.problem(), (401, "invalid_send_key"));
    opens_nothing(&gateway, key).await;
    gateway.stop().await;
}

#[tokio::test]
async fn the_log_has_the_reason_without_the_key() {
    let gateway = Gateway::start().await;
    let mut values = Vec::new();
    for fields in [
        json!({ "name": "Elsewhere", "allowed_addresses": ["192.0.2.0/24"] }),
        json!({ "name": "Expired" }),
    ] {
        let created = create(&gateway, &fields).await;
        let value = |field| text(&created, field).to_owned();
        values.push((value("id"), value("send_key")));
    }
    sqlx::query(
        "UPDATE send_keys SET expires_at = now() - interval '1 day' WHERE name = 'Expired'",
    )
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    let mut serve = replica(&gateway).start();
    let http = serve.ready().await.http;
    let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "s", "body": "b" });
    for (_, key) in &values {
        let request = http_client().post(format!("http://{http}/send"));
        let request = request.header("x-send-key", key).json(&body);
        assert_eq!(request.send().await.unwrap().status().as_u16(), 401);
    }
    serve.terminate().await;
    let log = serve.stderr();
    let reasons = ["it may not be used from this address", "it has expired"];
    for ((id, key), reason) in values.iter().zip(reasons) {
        let mut lines = log.lines();
        let said = lines.any(|line| line.contains(id) && line.contains(reason));
        assert!(said, "{id} {reason} in\n{log}");
        assert!(!log.contains(key), "{log}");
    }
    gateway.stop().await;
}
