//! Headers beside From that name a sender, and those that only receivers' servers write: by SMTP the former are the
//! mailbox's own, and the latter don't leave.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use mailgate_types::plugin::Plugin;

use super::RECIPIENT;
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

const ALIAS: &str = "ada.alias@sandbox.example";
const BEA: &str = "bea@sandbox.example";
const STRANGER: &str = "ceo@victim.example";

fn content(headers: &str) -> Vec<u8> {
    format!(
        "From: Ada <{MAILBOX}>\r\nTo: {RECIPIENT}\r\n{headers}Subject: Hello\r\n\r\nIt works.\r\n"
    )
    .into_bytes()
}

/// A gateway whose mailbox has an alias, and whose app has a second mailbox.
async fn start(plugin_a: &str) -> Gateway {
    let builder = Gateway::builder().set("SANDBOX__PLUGIN_A", plugin_a);
    let gateway = builder.start().await;
    for statement in [
        "UPDATE apps SET multilink = true",
        "INSERT INTO mailbox_addresses (credential_id, app_id, address, address_lookup, place)
         SELECT id, app_id, 'ada.alias@sandbox.example', 'ada.alias@sandbox.example', 1
         FROM mailboxes WHERE email = 'ada@sandbox.example'
         ON CONFLICT DO NOTHING",
    ] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    gateway.clock.advance(TimeDelta::seconds(1));
    gateway.connect(None, Plugin::B, BEA).await;
    gateway
}

/// What arrived last.
async fn last(gateway: &Gateway) -> String {
    let arrived = gateway.arrived().await;
    String::from_utf8_lossy(arrived.last().unwrap()).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn further_senders_are_the_mailboxs_own() {
    for plugin_a in ["smtp", "gmail_api"] {
        let gateway = start(plugin_a).await;
        let mut client = SmtpClient::authenticated(&gateway).await;
        let mut taken = 0;
        for header in ["Sender", "Resent-From", "Resent-Sender"] {
            for (value, is_taken) in [
                (MAILBOX.to_owned(), true),
                (format!("Ada Lovelace <{}>", MAILBOX.to_uppercase()), true),
                (format!("\"Lovelace, Ada\"\r\n <{ALIAS}>"), true),
                (String::new(), true),
                (BEA.to_owned(), false),
                (STRANGER.to_owned(), false),
                (format!("The CEO <{STRANGER}>"), false),
                (format!("\"{STRANGER}\" <{MAILBOX}>"), false),
                (
                    format!("=?utf-8?q?ceo=40victim.example?= <{MAILBOX}>"),
                    false,
                ),
                (format!("{MAILBOX}, {STRANGER}"), false),
                (format!("Team: {MAILBOX};"), false),
                (format!("{MAILBOX}\r\n , {STRANGER}"), false),
                ("root".to_owned(), false),
            ] {
                let whole = content(&format!("{header}: {value}\r\n"));
                let reply = client.submit(RECIPIENT, &whole).await;
                let refused = format!("550 5.7.1 {header} must be given once");
                if is_taken {
                    assert!(
                        reply.starts_with("250 "),
                        "{plugin_a} {header} {value}: {reply}"
                    );
                    taken += 1;
                } else {
                    assert!(
                        reply.starts_with(&refused),
                        "{plugin_a} {header} {value}: {reply}"
                    );
                }
            }
        }
        let twice = format!("Sender: {MAILBOX}\r\nSENDER : {MAILBOX}\r\n");
        let reply = client.submit(RECIPIENT, &content(&twice)).await;
        assert!(reply.starts_with("550 5.7.1 Sender "), "{reply}");
        // A message may have been resent more than once, and what is enclosed in it is another one.
        let again = format!(
            "Resent-From: {MAILBOX}\r\nResent-To: {STRANGER}\r\nResent-From: {ALIAS}\r\nReply-To: {STRANGER}\r\n"
        );
        let reply = client.submit(RECIPIENT, &content(&again)).await;
        assert!(reply.starts_with("250 "), "{reply}");
        assert_eq!(gateway.sandbox.inbox.count(), taken + 1);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_receivers_write_does_not_leave() {
    let forged = "Authentication-Results: mx.google.com;\r\n dkim=pass header.d=bank.example\r\n\
                  RECEIVED-SPF : pass\r\nReturn-Path: <ceo@victim.example>\r\nDelivered-To: x@y.example\r\n\
                  ARC-Seal: i=1; cv=none\r\nARC-Message-Signature: i=1\r\n\
                  arc-authentication-results: i=1; mx.google.com; dmarc=pass\r\n";
    for plugin_a in ["smtp", "gmail_api"] {
        let gateway = start(plugin_a).await;
        let mut client = SmtpClient::authenticated(&gateway).await;
        let signed = format!(
            "{forged}DKIM-Signature: v=1; a=rsa-sha256; d=sandbox.example; s=x;\r\n h=From:To:Subject; bh=eA==; b=eA==\r\n\
             X-Kept: yes\r\n"
        );
        let reply = client.submit(RECIPIENT, &content(&signed)).await;
        assert!(reply.starts_with("250 "), "{reply}");
        let arrived = last(&gateway).await.to_ascii_lowercase();
        let (headers, _) = arrived.split_once("\r\n\r\n").unwrap();
        for gone in [
            "authentication-results",
            "received-spf",
            "victim.example",
            "delivered-to",
            "arc-",
            "dmarc",
        ] {
            assert!(!headers.contains(gone), "{plugin_a} {gone}: {headers}");
        }
        for kept in ["dkim-signature: v=1", "x-kept: yes"] {
            assert!(headers.contains(kept), "{plugin_a} {kept}: {headers}");
        }
        // To take one out would break the client's own signature.
        let covered = format!(
            "{forged}DKIM-Signature: v=1; a=rsa-sha256; d=sandbox.example; s=x;\r\n h=From:To:\r\n\tAuthentication-results; \
             bh=eA==; b=eA==\r\n"
        );
        let reply = client.submit(RECIPIENT, &content(&covered)).await;
        assert!(
            reply.starts_with("550 5.6.0 Authentication-Results, "),
            "{reply}"
        );
        assert!(reply.ends_with("before the message is signed"), "{reply}");
        assert_eq!(gateway.sandbox.inbox.count(), 1);
        gateway.stop().await;
    }
}

/// As of From: what the mailbox could do when the message was taken isn't what it may do when it leaves.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_message_is_refused_once_its_sender_is_no_alias_any_more() {
    let gateway = start("smtp").await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let at = (gateway.clock.now() + TimeDelta::hours(1)).to_rfc3339();
    for header in ["Sender", "Resent-Sender"] {
        let whole = content(&format!(
            "{header}: {ALIAS}\r\nX-Mailgate-Send-At: {at}\r\n"
        ));
        let reply = client.submit(RECIPIENT, &whole).await;
        assert!(reply.starts_with("250 "), "{reply}");
    }
    let own = content(&format!(
        "Sender: {MAILBOX}\r\nX-Mailgate-Send-At: {at}\r\n"
    ));
    let reply = client.submit(RECIPIENT, &own).await;
    assert!(reply.starts_with("250 "), "{reply}");
    sqlx::query("DELETE FROM mailbox_addresses")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(TimeDelta::hours(2));
    gateway
        .eventually("none waits", async |gateway| gateway.spooled().await == 0)
        .await;
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    let errors: Vec<_> = (gateway.logged().await)
        .into_iter()
        .filter_map(|(status, error)| (status == "failed_perm").then_some(error?))
        .collect();
    for header in ["Sender", "Resent-Sender"] {
        let text = format!("5.7.1 The mailbox may not send as the address in {header}");
        assert!(
            errors.iter().any(|error| error.ends_with(&text)),
            "{errors:?}"
        );
    }
    gateway.stop().await;
}
