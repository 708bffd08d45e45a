//! `GET /audit`: whose entries, which of them, and page by page.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use mailgate_types::ids::AuditEntryId;
use serde_json::json;

use super::*;
use crate::support::caller::{has_just, is_moment, path};

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_says_who_what_when_and_from_where() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let long = "é".repeat(255);
    let change =
        json!({ "name": long, "webhook_url": format!("https://h.example/{}", "x".repeat(2_000)) });
    owner.put(&path(&gateway.app), &change).await.success(200);
    let page = page(&owner, "?action=app.changed").await;
    has_just(&page, vec!["entries", "has_more", "next_cursor"]);
    assert_eq!(
        (&page["has_more"], &page["next_cursor"]),
        (&json!(false), &json!(null))
    );
    let entry = &page["entries"][0];
    has_just(
        entry,
        vec![
            "id",
            "action",
            "actor",
            "api_secret_id",
            "address",
            "app_id",
            "app_slug",
            "target",
            "details",
            "created_at",
        ],
    );
    assert!(text(entry, "id").starts_with("audit_"));
    is_moment(text(entry, "created_at"));
    assert_eq!(entry["actor"], "subscriber");
    assert_eq!(entry["api_secret_id"], json!(null));
    assert_eq!(entry["address"], "127.0.0.1");
    assert_eq!(entry["app_id"], gateway.app.id.to_string());
    assert_eq!(entry["app_slug"], gateway.app.slug);
    assert_eq!(entry["target"], json!(null));
    assert_eq!(
        entry["details"]["name"],
        json!({ "from": "Demo", "to": long })
    );
    let url = text(&entry["details"]["webhook_url"], "to");
    assert_eq!(url.chars().count(), 256, "{url}");
    assert!(url.ends_with('…'));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_anothers() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    owner
        .reset(&format!("{app}/reset-send-key"))
        .await
        .success(200);
    let stranger = Caller::another(&gateway, "Stranger").await;
    assert_eq!(actions(&stranger, "").await, ["subscriber.created"]);
    let newest = page(&owner, "?limit=1").await;
    let newest = text(&newest["entries"][0], "id").to_owned();
    let highest = AuditEntryId(Uuid::max());
    let queries = [
        format!("?app_id={}", gateway.app.id),
        format!("?app_id={}", gateway.app.slug),
        format!("?app_id={}&cursor={highest}", gateway.app.id),
        format!("?app_id={}&action=send_key.renewed", gateway.app.id),
        "?action=send_key.renewed".to_owned(),
        format!("?action=user.connected&cursor={newest}"),
    ];
    for query in &queries {
        assert_eq!(actions(&stranger, query).await, [""; 0], "{query}");
    }
    // Nor once the app is gone, by its name.
    owner.delete(&app).await.success(200);
    for query in &queries {
        assert_eq!(actions(&stranger, query).await, [""; 0], "{query}");
    }
    assert_eq!(actions(&stranger, "").await, ["subscriber.created"]);
    for secret in ["", "sk_wrong"] {
        let request = crate::support::caller::anonymous(&gateway, reqwest::Method::GET, "/audit");
        let answer =
            crate::support::caller::Answer::to(request.header("x-api-secret", secret)).await;
        assert_eq!(answer.problem(), (401, "invalid_api_secret"));
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_cover_the_trail_without_gap_or_repeat() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    for _ in 0..23 {
        renew(&gateway).await;
    }
    let owner = Caller {
        secret: Caller::owner(&gateway).await.secret,
        ..owner
    };
    let ids = |page: &Value| -> Vec<String> {
        let entries = page["entries"].as_array().unwrap();
        entries
            .iter()
            .map(|entry| text(entry, "id").to_owned())
            .collect()
    };
    let all = ids(&page(&owner, "?limit=100").await);
    // The demo's mailbox, and 23 times the secret.
    assert_eq!(all.len(), 24);
    let usual = page(&owner, "").await;
    assert_eq!((ids(&usual).len(), &usual["has_more"]), (20, &json!(true)));
    for limit in [1, 7, 23, 24] {
        let (mut by_offset, mut by_cursor, mut cursor) = (Vec::new(), Vec::new(), String::new());
        loop {
            let offset = by_offset.len();
            let one = page(&owner, &format!("?limit={limit}&offset={offset}")).await;
            by_offset.extend(ids(&one));
            let other = page(&owner, &format!("?limit={limit}{cursor}")).await;
            by_cursor.extend(ids(&other));
            assert_eq!(one, other);
            match one["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((&by_offset, &by_cursor), (&all, &all), "{limit}");
    }
    assert_eq!(ids(&page(&owner, "?offset=10000").await), [""; 0]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_let_through_what_they_name() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    gateway.clock.advance(TimeDelta::days(2));
    let other = owner.create("Other").await;
    let other = format!("/apps/{}", text(&other, "pushable_key"));
    gateway.clock.advance(TimeDelta::days(2));
    owner
        .reset(&format!("{other}/reset-send-key"))
        .await
        .success(200);
    let created = page(&owner, "?action=app.created").await;
    let middle = &text(&created["entries"][0], "created_at")[..10];
    let later = gateway.clock.now() + TimeDelta::days(1);
    let later = later.format("%Y-%m-%d");
    let demo = gateway.app.id;
    for (query, expected) in [
        (
            String::new(),
            vec!["send_key.renewed", "app.created", "user.connected"],
        ),
        (
            "?app_id=other".to_owned(),
            vec!["send_key.renewed", "app.created"],
        ),
        (format!("?app_id={demo}"), vec!["user.connected"]),
        (
            format!("?app_id={}", gateway.app.slug),
            vec!["user.connected"],
        ),
        ("?app_id=none".to_owned(), vec![]),
        (
            "?app_id=00000000-0000-7000-8000-000000000000".to_owned(),
            vec![],
        ),
        ("?action=app.created".to_owned(), vec!["app.created"]),
        (format!("?action=app.created&app_id={demo}"), vec![]),
        (
            format!("?from_date={middle}"),
            vec!["send_key.renewed", "app.created"],
        ),
        (
            format!("?to_date={middle}"),
            vec!["app.created", "user.connected"],
        ),
        (
            format!("?from_date={middle}&to_date={middle}"),
            vec!["app.created"],
        ),
        (format!("?from_date={later}"), vec![]),
    ] {
        assert_eq!(actions(&owner, &query).await, expected, "{query}");
    }
    for (query, fields) in [
        ("?limit=0&offset=-1", vec!["limit", "offset"]),
        ("?limit=101&offset=10001", vec!["limit", "offset"]),
        ("?action=app&app_id=X%20Y", vec!["action", "app_id"]),
        (
            "?from_date=x&to_date=2026-02-30",
            vec!["from_date", "to_date"],
        ),
        ("?cursor=log_01h2xcejqtf2nbrexx3vqjhp41", vec!["cursor"]),
        ("?cursor=audit_%00", vec!["cursor"]),
    ] {
        let answer = owner.get(&format!("/audit{query}")).await;
        assert_eq!(answer.wrong_fields(), fields, "{query}");
    }
    let twice = owner
        .get("/audit?action=app.created&action=app.created")
        .await;
    assert_eq!(twice.problem(), (422, "invalid_request"));
    gateway.stop().await;
}
