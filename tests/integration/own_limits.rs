//! Limits that the operator sets for one subscriber in place of the settings: they count at every gateway, a lower one
//! takes nothing away, and `default` brings the setting back.

use std::time::Duration;

use chrono::Utc;
use mailgate_domain::mailboxes::ConnectError;
use mailgate_domain::reports::queues::Queues;
use mailgate_storage::spool::usage::{self, Most};
use mailgate_types::clock::Clock;
use mailgate_types::plugin::Plugin;
use mailgate_types::subscriber_limit::SubscriberLimit;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::apps::session;
use crate::command_line::process::Invocation;
use crate::portal::visitor::Visitor;
use crate::support::caller::{Answer, Caller, anonymous};
use crate::support::gateway::{Gateway, SEAL_KEY, connect, create_app};
use crate::support::stand_in::submission::{Answer as Scripted, Stage};
use crate::support::stand_in::{ADDRESS, StandIn};

/// Bytes of a large message: two are the largest that these gateways take.
const LARGE: usize = 1_000_000;

/// Sets the limits of the gateway's subscriber in another process.
async fn set(gateway: &Gateway, options: &[&str]) -> Value {
    let id = gateway.subscriber.to_string();
    let arguments = [&["subscriber", "limits", &id, "--json"], options].concat();
    let finished = Invocation::new(arguments)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .set("LIMITS__MESSAGE_BYTES", (2 * LARGE).to_string())
        .finish()
        .await;
    finished.succeeds();
    serde_json::from_str(&finished.stdout).unwrap()
}

/// `POST /send` of the gateway's app at one that shares the database.
async fn send(at: &Gateway, of: &Gateway, fields: Value) -> Answer {
    let mut body = json!({
        "pk": of.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello", "body": "Hi",
    });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let request = anonymous(at, Method::POST, "/send").json(&body);
    Answer::to(request.header("x-send-key", of.app.send_key.expose())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_are_created_up_to_the_subscribers_own_number() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    let (here, there) = (
        Caller::owner(&gateway).await,
        Caller {
            gateway: &replica,
            secret: Caller::owner(&gateway).await.secret,
        },
    );
    // One is there already.
    set(&gateway, &["--apps", "2"]).await;
    here.create("The second").await;
    for caller in [&here, &there] {
        let refused = caller.post("/apps", &json!({ "name": "A third" })).await;
        assert_eq!(refused.problem(), (409, "too_many_apps"));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("may have 2 apps"), "{detail}");
    }
    // Fewer than there are: they stay, and no other comes.
    set(&gateway, &["--apps", "1"]).await;
    let refused = there.post("/apps", &json!({ "name": "A third" })).await;
    assert_eq!(refused.problem(), (409, "too_many_apps"));
    let mut visitor = Visitor::new(&replica.daemon.base_url);
    visitor.sign_in(&here.secret).await;
    let page = visitor.post("/portal/apps", &[("name", "A third")]).await;
    assert_eq!(page.status, 409, "{}", page.text);
    let listed = here.get("/apps").await.success(200);
    assert_eq!(listed["apps"].as_array().unwrap().len(), 2, "{listed}");
    set(&gateway, &["--apps", "3"]).await;
    there.create("The third").await;
    let refused = here.post("/apps", &json!({ "name": "A fourth" })).await;
    assert_eq!(refused.problem(), (409, "too_many_apps"));
    // Nobody else is concerned.
    Caller::another(&gateway, "Another")
        .await
        .create("App")
        .await;
    set(&gateway, &["--apps", "default"]).await;
    here.create("The fourth").await;
    there.create("The fifth").await;
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mailboxes_and_users_are_connected_up_to_the_subscribers_own_number() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    sqlx::query("UPDATE apps SET multilink = true, multiuser = true")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let connecting = async |at: &Gateway, user: &str, number: u8| {
        let redirect_uri = format!("http://{}/oauth/callback", at.daemon.http_address);
        let email = format!("number-{number}@sandbox.example");
        let granted = at.sandbox.authorize(&redirect_uri, &email).await.unwrap();
        let new = mailgate_domain::mailboxes::NewConnection {
            app: gateway.app.id,
            user_id: Some(user),
            plugin: Plugin::A,
            code: &granted.code,
            redirect_uri: &redirect_uri,
            code_verifier: &granted.code_verifier,
        };
        match at.daemon.mailboxes.connect(&new).await {
            Ok(_) => true,
            Err(ConnectError::TooManyForApp) => false,
            Err(error) => panic!("{error}"),
        }
    };
    // One mailbox is there already, of a user without a name.
    set(&gateway, &["--mailboxes", "2"]).await;
    assert!(connecting(&replica, "u", 2).await);
    assert!(!connecting(&gateway, "u", 3).await);
    assert!(!connecting(&replica, "u", 3).await);
    assert!(connecting(&gateway, "u", 2).await, "a known one");
    let raised = set(&gateway, &["--mailboxes", "4"]).await;
    assert_eq!(raised["limits"]["mailboxes"]["used"], 2, "{raised}");
    assert!(connecting(&gateway, "u", 3).await);
    assert!(connecting(&replica, "u", 4).await);
    set(&gateway, &["--mailboxes", "2"]).await;
    assert!(!connecting(&replica, "u", 5).await);
    let kept = set(&gateway, &["--mailboxes", "default", "--end-users", "3"]).await;
    assert_eq!(kept["limits"]["mailboxes"]["used"], 4, "{kept}");
    assert_eq!(kept["limits"]["end_users"]["used"], 2, "{kept}");
    assert!(connecting(&gateway, "v", 5).await);
    assert!(!connecting(&gateway, "w", 6).await);
    assert!(!connecting(&replica, "w", 6).await);
    set(&gateway, &["--end-users", "default"]).await;
    assert!(connecting(&replica, "w", 6).await);
    // Another subscriber has its own.
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    set(&gateway, &["--mailboxes", "2"]).await;
    let daemon = &gateway.daemon;
    connect(
        daemon,
        &gateway.sandbox,
        other.id,
        None,
        Plugin::A,
        "x@sandbox.example",
    )
    .await;
    replica.stop().await;
    gateway.stop().await;
}

/// How full the fullest subscriber is, by the limits of a small gateway.
async fn fullest(gateway: &Gateway) -> f64 {
    let mut database = gateway.database().await;
    while usage::fold(&mut database, 100).await.unwrap() > 0 {}
    let most = Most {
        messages: 20_000,
        bytes: 1 << 31,
        least_bytes: 26_214_400,
    };
    let queues = Queues::measure(&gateway.daemon.pool, false, &most, Utc::now()).await;
    queues.unwrap().largest.waiting_share[0].1
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_wait_up_to_the_subscribers_own_number_and_bytes() {
    let (stand_in, gateway) = StandIn::with(
        Gateway::builder()
            .set("LIMITS__MESSAGE_BYTES", 2 * LARGE)
            .set("LIMITS__IN_FLIGHT_BYTES", 64 * LARGE),
    )
    .await;
    let later = Scripted::reply("451 4.3.0 Later");
    stand_in.submission.always(Stage::Rcpt, later);
    let replica = gateway.replica().plugins(stand_in.plugins());
    let replica = replica
        .set("LIMITS__MESSAGE_BYTES", 2 * LARGE)
        .set("LIMITS__IN_FLIGHT_BYTES", 64 * LARGE);
    let replica = replica.start().await;
    let at_b = || json!({ "plugin": "plugin_b" });
    let refused = (429, "waiting_quota_full");
    let app = &gateway.app;
    let mut smtp = session(&replica, &app.slug, app.send_key.expose()).await;
    let submitted = format!("From: {ADDRESS}\r\nSubject: s\r\n\r\nHi\r\n");
    let scheduled = json!({
        "plugin": "plugin_b",
        "send_at": (gateway.clock.now() + Duration::from_hours(1)).to_rfc3339(),
    });

    // By both doors of both gateways, scheduled ones too.
    set(&gateway, &["--waiting-messages", "2"]).await;
    send(&gateway, &gateway, at_b()).await.success(202);
    send(&replica, &gateway, scheduled.clone())
        .await
        .success(202);
    for at in [&gateway, &replica] {
        assert_eq!(send(at, &gateway, at_b()).await.problem(), refused);
        let answer = send(at, &gateway, scheduled.clone()).await;
        assert_eq!(answer.problem(), refused);
    }
    let reply = smtp.submit("bob@example.com", submitted.as_bytes()).await;
    assert!(reply.starts_with("451 4.3.1 "), "{reply}");
    assert!((fullest(&gateway).await - 1.0).abs() < 1e-9);
    // What leaves at once does, and what waits does so beyond a lower limit.
    let from_a = json!({ "plugin": "plugin_a" });
    send(&gateway, &gateway, from_a).await.success(200);
    let lowered = set(&gateway, &["--waiting-messages", "1"]).await;
    let shown = &lowered["limits"]["waiting_messages"];
    assert_eq!((&shown["value"], &shown["used"]), (&json!(1), &json!(2)));
    assert_eq!(send(&replica, &gateway, at_b()).await.problem(), refused);
    assert!((fullest(&gateway).await - 2.0).abs() < 1e-9);
    set(&gateway, &["--waiting-messages", "4"]).await;
    send(&replica, &gateway, at_b()).await.success(202);
    let reply = smtp.submit("bob@example.com", submitted.as_bytes()).await;
    assert!(reply.starts_with("250 "), "{reply}");
    assert_eq!(send(&gateway, &gateway, at_b()).await.problem(), refused);
    set(&gateway, &["--waiting-messages", "default"]).await;
    send(&gateway, &gateway, at_b()).await.success(202);
    send(&replica, &gateway, at_b()).await.success(202);
    assert!(fullest(&gateway).await < 0.1);

    // Bytes.
    let large = json!({ "plugin": "plugin_b", "body": "x".repeat(LARGE) });
    let bytes = (5 * LARGE / 2).to_string();
    set(&gateway, &["--waiting-bytes", &bytes]).await;
    send(&replica, &gateway, large.clone()).await.success(202);
    send(&gateway, &gateway, large.clone()).await.success(202);
    for at in [&gateway, &replica] {
        assert_eq!(send(at, &gateway, large.clone()).await.problem(), refused);
    }
    send(&replica, &gateway, at_b()).await.success(202);
    set(&gateway, &["--waiting-bytes", &(4 * LARGE).to_string()]).await;
    send(&gateway, &gateway, large.clone()).await.success(202);
    assert_eq!(
        send(&replica, &gateway, large.clone()).await.problem(),
        refused
    );
    // All of it is there, whatever the limit has become.
    let shown = set(&gateway, &["--waiting-bytes", &(2 * LARGE).to_string()]).await;
    assert_eq!(
        shown["limits"]["waiting_messages"]["used"],
        gateway.spooled().await
    );
    assert_eq!(send(&replica, &gateway, at_b()).await.problem(), refused);
    set(&gateway, &["--waiting-bytes", "default"]).await;
    send(&replica, &gateway, large).await.success(202);
    replica.stop_daemon().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_have_the_subscribers_own_rate() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let replica = gateway.replica().plugins(stand_in.plugins());
    let replica = replica.start().await;
    let at_b = || json!({ "plugin": "plugin_b" });
    let here = Caller::owner(&gateway).await;
    let there = Caller {
        gateway: &replica,
        secret: here.secret.clone(),
    };
    // Both gateways know that there are two.
    let policy = |answer: &Answer| answer.header("ratelimit-policy").to_owned();
    for caller in [&here, &there] {
        caller
            .gateway
            .eventually("two shares", async |_| {
                policy(&caller.get("/me").await) == "\"key\";q=50;w=2"
            })
            .await;
    }
    // Both remember the app.
    let both = [&gateway, &replica];
    for at in both {
        let sent = send(at, &gateway, at_b()).await;
        assert_eq!(policy(&sent), "\"key\";q=50;w=2");
        sent.success(200);
    }
    let app = &gateway.app;
    let mut smtp = session(&replica, &app.slug, app.send_key.expose()).await;
    for (rate, expected) in [
        ("200", "\"key\";q=200;w=2"),
        ("4", "\"key\";q=4;w=2"),
        ("default", "\"key\";q=50;w=2"),
        ("2", "\"key\";q=2;w=2"),
    ] {
        set(&gateway, &["--requests-per-second", rate]).await;
        for caller in [&here, &there] {
            assert_eq!(policy(&caller.get("/me").await), expected, "{rate}");
        }
        for at in both {
            // The first has the app read anew, by whatever rate it was counted.
            send(at, &gateway, at_b()).await;
            assert_eq!(
                policy(&send(at, &gateway, at_b()).await),
                expected,
                "{rate}"
            );
        }
    }
    // Two in two seconds are few, by SMTP and in the portal as well.
    let content = format!("From: {ADDRESS}\r\nSubject: s\r\n\r\nHi\r\n");
    let mut replies = Vec::new();
    for _ in 0..40 {
        replies.push(smtp.submit("bob@example.com", content.as_bytes()).await);
    }
    assert!(
        replies.iter().any(|reply| reply.starts_with("451 4.7.0 ")),
        "{replies:?}"
    );
    let mut visitor = Visitor::new(&replica.daemon.base_url);
    visitor.sign_in(&here.secret).await;
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(visitor.get("/portal/apps").await.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    // Another subscriber goes by the setting.
    let another = Caller::another(&gateway, "Another").await;
    assert_eq!(policy(&another.get("/me").await), "\"key\";q=50;w=2");
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_takes_what_a_setting_may_have() {
    let gateway = Gateway::start().await;
    let mut database = gateway.database().await;
    for limit in SubscriberLimit::ALL {
        let (least, most) = limit.range().into_inner();
        for (value, is_taken) in [
            (least, true),
            (most, true),
            (least - 1, false),
            (most + 1, false),
        ] {
            let statement = format!("UPDATE subscribers SET max_{} = $1", limit.as_str());
            let set = sqlx::query(AssertSqlSafe(statement)).bind(value);
            let done = set.execute(&mut database).await;
            assert_eq!(done.is_ok(), is_taken, "{limit:?} {value}: {done:?}");
        }
    }
    gateway.stop().await;
}
