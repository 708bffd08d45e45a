//! Whose mailbox it is, for which of Microsoft's services a token is, and what it means when there is none.

use chrono::TimeDelta;
use serde_json::json;
use sqlx::Row;

use super::send;
use crate::support::gateway::Gateway;
use crate::support::graph_stand_in::{Call, Fault, GraphStandIn, READ_WRITE};

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_address_is_read_though_the_log_in_name_is_another() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    stand_in.set_account(json!({
        "mail": "Dora.Doe@graph.example",
        "userPrincipalName": "d123@tenant.onmicrosoft.example",
        "proxyAddresses": ["SMTP:Dora.Doe@graph.example", "smtp:dora@graph.example"],
    }));
    let gateway = stand_in.connected(Gateway::builder()).await;
    let (status, answer) = gateway
        .send(json!({
            "to": "bob@example.com", "subject": "s", "body": "b", "from": "dora.doe@graph.example"
        }))
        .await;
    assert_eq!(status, 200, "{answer}");
    let sent = stand_in.sent();
    let mime = String::from_utf8_lossy(&sent[0].mime).into_owned();
    assert!(mime.contains("From: Dora.Doe@graph.example"), "{mime}");

    // An account that no directory knows tells what it can.
    stand_in.leave_the_directory();
    stand_in.set_account(json!({ "mail": null, "userPrincipalName": "dora@personal.example" }));
    let connected = stand_in.connect(&gateway).await;
    assert_eq!(connected.email, "dora@personal.example");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_for_a_token_names_its_scope() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    gateway.clock.advance(TimeDelta::hours(2));
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.scopes_asked(), [READ_WRITE, READ_WRITE]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_to_sign_in_again_is_disconnected_with_that_reason_once() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    for reason in ["interaction_required", "consent_required", "login_required"] {
        let body = json!({
            "error": reason,
            "error_description": "AADSTS50076: you must use multi-factor authentication.",
            "error_codes": [50_076], "suberror": "basic_action",
        });
        let fault = || Fault::answer(400, &body.to_string());
        gateway.clock.advance(TimeDelta::hours(2));

        // In passing it disconnects nobody.
        stand_in.once(Call::Token, fault());
        let (status, answer) = send(&gateway).await;
        assert_eq!(status, 200, "{answer}");

        gateway.clock.advance(TimeDelta::hours(2));
        stand_in.once(Call::Token, fault());
        stand_in.once(Call::Token, fault());
        let (status, answer) = send(&gateway).await;
        assert_eq!(status, 502, "{answer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains("connect it again"), "{answer}");
        let (status, answer) = send(&gateway).await;
        assert_eq!((status, &answer["code"]), (422, &"no_mailbox".into()));

        let row = sqlx::query(
            "SELECT disconnect_reason,
                (SELECT count(*) FROM audit_entries
                 WHERE details->>'reason' = disconnect_reason) AS told
             FROM mailboxes WHERE plugin = 'plugin_b'",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
        assert_eq!(row.get::<String, _>("disconnect_reason"), reason);
        assert_eq!(row.get::<i64, _>("told"), 1);
        stand_in.connect(&gateway).await;
    }
    gateway.stop().await;
}
