//! `GET /logs` and `GET /logs/{log_id}`.

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Reader, connect_second, send_second};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::receiver::Receiver;

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_all_its_fields() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    assert_eq!(
        reader.get("/logs").await,
        json!({ "logs": [], "total": 0, "has_more": false, "next_cursor": null,
                "searched_until": null })
    );
    let fields = json!({
        "to": "bob@example.com", "cc": ["carol@example.com"], "bcc": ["dan@example.com"],
        "subject": "Grüße", "body": "It works.",
        "attachments": [{ "filename": "a.txt", "content": "YQ==" }],
    });
    let (status, answer) = gateway.send(fields).await;
    assert_eq!(status, 200, "{answer}");
    let page = reader.get("/logs").await;
    assert_eq!(
        (&page["total"], &page["has_more"]),
        (&json!(1), &json!(false))
    );
    let log = &page["logs"][0];
    let mut expected = vec![
        "id",
        "app_id",
        "app_name",
        "oauth_credential_id",
        "from_address",
        "to_address",
        "subject",
        "plugin",
        "status",
        "error_message",
        "message_id",
        "size_bytes",
        "sent_at",
        "send_at",
        "bounced",
    ];
    expected.sort_unstable();
    assert_eq!(names(log), expected);
    assert_eq!(log["id"], answer["log_id"]);
    assert_eq!(log["app_id"], gateway.app.id.to_string());
    assert_eq!(log["app_name"], "Demo");
    assert_eq!(
        log["oauth_credential_id"],
        gateway.mailbox.credential.to_string()
    );
    assert_eq!(log["from_address"], MAILBOX);
    assert_eq!(log["to_address"], "bob@example.com");
    assert_eq!(log["subject"], "Grüße");
    assert_eq!(log["plugin"], "plugin_a");
    assert_eq!(log["status"], "sent");
    assert_eq!(log["error_message"], Value::Null);
    assert_eq!(log["bounced"], false);
    assert_eq!(log["message_id"], answer["message_id"]);
    assert!(log["size_bytes"].as_i64().unwrap() > 100);
    let sent_at = log["sent_at"].as_str().unwrap();
    assert_eq!(
        (sent_at.len(), &sent_at[19..20], &sent_at[23..]),
        (24, ".", "Z"),
        "{sent_at}"
    );

    let detail = reader
        .get(&format!("/logs/{}", log["id"].as_str().unwrap()))
        .await;
    for name in expected {
        assert_eq!(detail[name], log[name], "{name}");
    }
    assert_eq!(detail["cc_addresses"], json!(["carol@example.com"]));
    assert_eq!(detail["bcc_addresses"], json!(["dan@example.com"]));
    assert_eq!(detail["has_attachments"], true);
    assert_eq!(detail["bounces"], json!([]));
    assert_eq!(detail["explanation"], Value::Null);
    assert_eq!(
        detail["attempts"],
        json!([{ "attempt_number": 1, "attempted_at": sent_at, "duration_ms": null,
                 "status": "sent", "error_message": null }])
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_tried_again_is_there_from_its_first_failure_on() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    let page = reader.get("/logs?status=failed_temp").await;
    assert_eq!(page["total"], 1);
    let log = &page["logs"][0];
    assert_eq!(log["id"], answer["log_id"]);
    assert!(
        log["error_message"].as_str().unwrap().contains("451"),
        "{log}"
    );
    let path = format!("/logs/{}", log["id"].as_str().unwrap());
    let detail = reader.get(&path).await;
    assert_eq!(
        detail["explanation"],
        json!({
            "meaning": "A mail server on the way has a problem of its own, and does not take the message.",
            "action": "Nothing to do: the gateway tries again by itself.",
        })
    );
    let attempts = detail["attempts"].clone();
    assert_eq!(attempts[0]["attempt_number"], 1);
    assert_eq!(attempts[0]["status"], "failed_temp");
    assert!(attempts[0]["duration_ms"].is_i64());
    assert_eq!(attempts.as_array().unwrap().len(), 1);
    assert_eq!(reader.get("/logs?status=sent").await["total"], 0);
    gateway.stop().await;
}

/// It is computed when it is read, so rows that are there already have it too.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_message_is_explained() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    let (status, answer) = gateway.send_to("permfail@example.com").await;
    assert_eq!(status, 502, "{answer}");
    let log = reader.get("/logs").await["logs"][0].clone();
    assert!(log.get("explanation").is_none(), "only one message has it");
    let path = format!("/logs/{}", log["id"].as_str().unwrap());
    let explanation = async || reader.get(&path).await["explanation"].clone();
    assert_eq!(
        explanation().await,
        json!({
            "meaning": "The recipient's address does not exist, or accepts no mail.",
            "action": "Check the address with the recipient and correct it in your app, then send the message again.",
        })
    );
    for (text, meaning) in [
        ("Cancelled", "cancelled"),
        ("HTTP 403 domainPolicy: no", "administrator"),
        (
            "Delivery is unconfirmed: … (HTTP 503)",
            "Nobody knows whether",
        ),
        (
            "The message has waited for the maximum time: Sending is suspended: the subscription is past_due",
            "payment",
        ),
    ] {
        sqlx::query("UPDATE email_logs SET error_message = $1")
            .bind(text)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        let explanation = explanation().await;
        assert!(
            explanation["meaning"].as_str().unwrap().contains(meaning),
            "{explanation}"
        );
        let action = explanation["action"].as_str().unwrap();
        assert!(!action.contains("by itself"), "{explanation}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_pages() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    connect_second(&gateway).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let (_, answer) = match number {
            1 => send_second(&gateway, "bob@example.com").await,
            3 => gateway.send_to("permfail@example.com").await,
            _ => gateway.send_to("bob@example.com").await,
        };
        ids.insert(0, answer["log_id"].as_str().unwrap().to_owned());
        gateway.clock.advance(TimeDelta::hours(7));
    }
    assert_eq!(reader.ids("/logs").await, ids);
    assert_eq!(reader.ids("/logs?limit=2&offset=1").await, ids[1..3]);
    let page = reader.get("/logs?limit=2&offset=3").await;
    assert_eq!(
        (&page["total"], &page["has_more"]),
        (&json!(5), &json!(false))
    );
    let page = reader.get("/logs?limit=2&offset=2").await;
    assert_eq!(page["has_more"], true);
    let page = reader.get("/logs?offset=4294967295").await;
    assert_eq!(
        page,
        json!({ "logs": [], "total": 5, "has_more": false, "next_cursor": null, "searched_until": null })
    );
    assert_eq!(reader.ids("/logs?plugin=plugin_b_alt").await, ids[3..4]);
    assert_eq!(
        reader.get("/logs?plugin=plugin_b_alt").await["logs"][0]["plugin"],
        "plugin_b_alt"
    );
    assert_eq!(reader.ids("/logs?status=failed_perm").await, ids[1..2]);
    assert_eq!(
        reader
            .ids("/logs?status=failed_perm&plugin=plugin_b_alt")
            .await,
        [""; 0]
    );
    for app in [gateway.app.id.to_string(), gateway.app.slug.clone()] {
        assert_eq!(reader.ids(&format!("/logs?app_id={app}")).await, ids);
    }
    for app in [uuid::Uuid::new_v4().to_string(), "nobodys".to_owned()] {
        let page = reader.get(&format!("/logs?app_id={app}")).await;
        assert_eq!(
            page,
            json!({ "logs": [], "total": 0, "has_more": false, "next_cursor": null,
                "searched_until": null })
        );
    }
    // By the moment of one, by the day of one, and with an offset whose plus came as a space.
    let of = |id: &String| -> DateTime<Utc> {
        let id: mailgate_types::ids::LogId = id.parse().unwrap();
        id.moment().unwrap()
    };
    let moment = of(&ids[2]);
    let (text, east) = (
        moment.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        (moment + TimeDelta::hours(2))
            .format("%Y-%m-%dT%H:%M:%S%.3f+02:00")
            .to_string(),
    );
    for text in [text, east.replace('+', "%2B"), east] {
        assert_eq!(
            reader.ids(&format!("/logs?from_date={text}")).await,
            ids[..3],
            "{text}"
        );
        assert_eq!(
            reader.ids(&format!("/logs?to_date={text}")).await,
            ids[2..],
            "{text}"
        );
    }
    let day = moment.date_naive();
    let of_day: Vec<String> = ids
        .iter()
        .filter(|id| of(id).date_naive() == day)
        .cloned()
        .collect();
    assert_eq!(
        reader
            .ids(&format!("/logs?from_date={day}&to_date={day}"))
            .await,
        of_day
    );
    assert_eq!(
        reader
            .ids("/logs?from_date=2026-02-01&to_date=2026-01-01")
            .await,
        [""; 0]
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    for (query, fields) in [
        ("limit=0", vec!["limit"]),
        ("limit=101", vec!["limit"]),
        ("limit=x&offset=-1", vec!["limit", "offset"]),
        ("app_id=Not%20one", vec!["app_id"]),
        ("app_id=%00", vec!["app_id"]),
        ("status=open", vec!["status"]),
        ("plugin=plugin_b", vec!["plugin"]),
        (
            "from_date=yesterday&to_date=2026-02-30",
            vec!["from_date", "to_date"],
        ),
        ("limit=1&limit=2", vec![]),
    ] {
        assert_eq!(
            reader.wrong_fields(&format!("/logs?{query}")).await,
            fields,
            "{query}"
        );
    }
    assert_eq!(
        reader
            .wrong_fields("/email-stats?period=week&app_id=")
            .await,
        ["period", "app_id"]
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_anothers() {
    let gateway = Gateway::start().await;
    let (owner, other) = (Reader::owner(&gateway).await, Reader::other(&gateway).await);
    let (_, answer) = gateway.send_to("bob@example.com").await;
    let path = format!("/logs/{}", answer["log_id"].as_str().unwrap());
    assert_eq!(other.get("/logs").await["total"], 0);
    let its = format!("/logs?app_id={}", gateway.app.id);
    assert_eq!(other.get(&its).await["total"], 0);
    for path in [
        path.as_str(),
        "/logs/log_x",
        "/logs/log_01h2xcejqtf2nbrexx3vqjhp41",
        "/logs/%FF",
    ] {
        let (status, body) = other.ask(Method::GET, path).await;
        assert_eq!(
            (status, &body["code"]),
            (404, &json!("log_not_found")),
            "{path}"
        );
    }
    assert_eq!(other.get("/stats").await["total_emails_sent"], 0);
    let months = format!("/email-stats?app_id={}", gateway.app.slug);
    assert_eq!(other.get(&months).await["summary"]["total_12months"], 0);
    assert_eq!(owner.get(&months).await["summary"]["total_12months"], 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_apps_messages_are_gone_at_once() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    let (_, answer) = gateway.send_to("bob@example.com").await;
    gateway.send_to("tempfail@example.com").await;
    assert_eq!(reader.get("/logs").await["total"], 2);
    let path = format!("/apps/{}", gateway.app.pushable_key.expose());
    let (status, _) = reader.ask(Method::DELETE, &path).await;
    assert_eq!(status, 200);
    assert_eq!(reader.get("/logs").await["total"], 0);
    assert_eq!(reader.ids("/logs").await, [""; 0]);
    assert_eq!(reader.get("/stats").await["total_emails_sent"], 0);
    assert_eq!(
        reader.get("/email-stats").await["summary"]["total_12months"],
        0
    );
    let log = format!("/logs/{}", answer["log_id"].as_str().unwrap());
    assert_eq!(reader.ask(Method::GET, &log).await.0, 404);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_shows_what_endpoints_were_told_of_it() {
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    let reader = Reader::owner(&gateway).await;
    let receiver = Receiver::start().await;
    sqlx::query("UPDATE apps SET webhook_url = $1 WHERE id = $2")
        .bind(receiver.url("/hook"))
        .bind(gateway.app.id.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let (_, answer) = gateway.send_to("bob@example.com").await;
    let (_, other) = gateway.send_to("permfail@example.com").await;
    for (answer, event) in [(answer, "email.sent"), (other, "email.failed_perm")] {
        let path = format!("/logs/{}", answer["log_id"].as_str().unwrap());
        gateway
            .eventually("the delivery", async |_| {
                let log = reader.get(&path).await;
                log["webhook_deliveries"] != json!([])
            })
            .await;
        let deliveries = reader.get(&path).await["webhook_deliveries"].clone();
        assert_eq!(deliveries.as_array().unwrap().len(), 1);
        let delivery = &deliveries[0];
        assert_eq!(names(delivery), ["delivered_at", "event", "id", "success"]);
        assert_eq!(
            (&delivery["event"], &delivery["success"]),
            (&json!(event), &json!(true))
        );
        assert!(delivery["id"].as_str().unwrap().starts_with("wdel_"));
        assert_eq!(delivery["delivered_at"].as_str().unwrap().len(), 24);
    }
    gateway.stop().await;
}
