//! What a subscriber may have, and keep busy.

use std::time::Duration;

use super::*;
use crate::portal::visitor::Visitor;
use crate::strangers::raw::Raw;

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_has_its_number_of_apps() {
    let builder =
        |builder: crate::support::gateway::Builder| builder.set("LIMITS__APPS_PER_SUBSCRIBER", 4);
    let gateway = builder(Gateway::builder()).start().await;
    let replica = builder(gateway.replica()).start().await;
    let owner = Caller::owner(&gateway).await;
    // One is there already.
    let creating = (0..12).map(|number| {
        let daemon = [&gateway.daemon, &replica.daemon][number % 2];
        let request = gateway.http.post(format!("{}/apps", daemon.base_url));
        let request = request.header("x-api-secret", &owner.secret);
        Answer::to(request.json(&json!({ "name": "An app" })))
    });
    let answers = futures_util::future::join_all(creating).await;
    let (created, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 201);
    assert_eq!((created.len(), refused.len()), (3, 9));
    for answer in refused {
        assert_eq!(answer.problem(), (409, "too_many_apps"));
    }
    // Another subscriber has its own, and a deleted one makes room.
    Caller::another(&gateway, "Another")
        .await
        .create("App")
        .await;
    owner.delete(&path(&gateway.app)).await.success(200);
    owner.create("The fourth").await;
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_stall_keep_neither_the_owner_nor_others_out() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let scopes = json!({ "name": "Key", "scopes": ["apps:write"] });
    let created = owner.post("/me/api-secrets", &scopes).await.success(201);
    let additional = text(&created, "api_secret").to_owned();
    let mut stalled = Vec::new();
    for _ in 0..80 {
        let mut client = Raw::to(&gateway).await;
        let fields = format!(
            "X-Api-Secret: {additional}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
        );
        client.begin("POST", "/apps", &fields).await;
        stalled.push(client);
    }
    // What finds no place is refused; the main secret, and other subscribers, have places of their own.
    let mut refused = 0;
    for client in &mut stalled {
        if let Some(answered) = client.answer_within(Duration::from_secs(1)).await {
            assert_eq!(answered.problem(), (429, "too_many_requests"));
            refused += 1;
        }
        if refused >= 16 {
            break;
        }
    }
    assert!(refused >= 16, "{refused}");
    owner.get("/apps").await.success(200);
    let scopes = json!({ "name": "Other", "scopes": ["apps:read"] });
    let other = owner.post("/me/api-secrets", &scopes).await.success(201);
    let other = anonymous(&gateway, Method::GET, "/apps")
        .header("x-api-secret", text(&other, "api_secret"));
    Answer::to(other).await.success(200);
    let another = Caller::another(&gateway, "Another").await;
    another.create("App").await;
    drop(stalled);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_session_that_stalls_leaves_places_to_others() {
    let gateway = Gateway::start().await;
    let thief = Visitor::signed_in(&gateway).await;
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut client = Raw::to(&gateway).await;
        let base = &gateway.daemon.base_url;
        let fields = format!(
            "Cookie: {}\r\nOrigin: {base}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n",
            thief.cookie()
        );
        client.begin("POST", "/portal/settings", &fields).await;
        stalled.push(client);
    }
    let refused = stalled.last_mut().unwrap();
    let refused = refused.answer_within(Duration::from_mins(1)).await;
    assert_eq!(refused.unwrap().status, 429);
    let owner = Visitor::signed_in(&gateway).await;
    assert_eq!(owner.get("/portal/settings").await.status, 200);
    drop(stalled);
    gateway.stop().await;
}
