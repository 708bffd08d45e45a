//! Access tokens that lapse, grants that die, and refreshes that race: with the sandbox where it can
//! do it, with the stand-in where no honest provider would.

use chrono::TimeDelta;
use mailgate_domain::mailboxes::Wanted;
use mailgate_sandbox::certificates;
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};
use sqlx::Row;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::command_line::process::Invocation;
use crate::command_line::serve::with_plugins;
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::oauth::Answer as TokenAnswer;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, StandIn};

/// Past the life of every token here.
const LAPSED: TimeDelta = TimeDelta::hours(2);

/// The mailbox that two gateways share stands at `plugin_b`, where both know the same sandbox.
const SHARED: &str = "shared@sandbox.example";

#[tokio::test(flavor = "multi_thread")]
async fn a_lapsed_token_is_refreshed_before_it_is_used() {
    let gateway = Gateway::start().await;
    gateway.clock.advance(LAPSED);
    for _ in 0..2 {
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(gateway.sandbox.authorization.refreshes(), 1);
    assert_eq!(gateway.arrived().await.len(), 2);
    gateway.stop().await;
}

/// Numbers that no date can be made of (RFC 6749 §5.1 has seconds, and says no more of them).
#[tokio::test(flavor = "multi_thread")]
async fn no_life_of_a_token_is_too_long_or_too_short_for_a_date() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for life in [
        json!("9000000000000"),
        json!("9223372036854775807"),
        json!("-9223372036854775808"),
        json!(9_000_000_000_000_000_i64),
        json!(1e300),
        json!("inf"),
        json!("nan"),
    ] {
        let tokens = json!({ "access_token": "a", "refresh_token": "r", "expires_in": life });
        stand_in.tokens.queue(TokenAnswer::json(200, &tokens));
        stand_in.connect(&gateway).await;
        let expires_at: chrono::DateTime<chrono::Utc> = sqlx::query_scalar(
            "SELECT access_token_expires_at FROM mailboxes WHERE plugin = 'plugin_b'",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
        assert!(
            expires_at < chrono::Utc::now() + TimeDelta::days(366),
            "{life}"
        );
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{life}: {answer}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_provider_refuses_is_refreshed_and_the_message_sent_once() {
    let gateway = Gateway::start().await;
    let authorization = &gateway.sandbox.authorization;
    authorization.expire_access_tokens().await.unwrap();
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(authorization.refreshes(), 1);
    assert_eq!(gateway.arrived().await.len(), 1);
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_challenge_of_a_refused_token_is_answered_with_an_empty_line() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    submission.once(Stage::Auth, Answer::token_refused());
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(submission.answers_to_challenges(), [""]);
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1"]);
    let messages = submission.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].token, "access-2");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refresh_shows_the_refresh_token_of_the_one_before() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for _ in 0..4 {
        gateway.clock.advance(LAPSED);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(
        stand_in.tokens.refresh_tokens(),
        ["refresh-1", "refresh-2", "refresh-3", "refresh-4"]
    );
    let used = stand_in.submission.messages();
    let used: Vec<&str> = used.iter().map(|message| message.token.as_str()).collect();
    assert_eq!(used, ["access-2", "access-3", "access-4", "access-5"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_without_a_new_refresh_token_keeps_the_old_one() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    for number in 0..2 {
        let answer = json!({ "access_token": format!("bare-{number}"), "expires_in": 3_600 });
        stand_in.tokens.queue(TokenAnswer::json(200, &answer));
        gateway.clock.advance(LAPSED);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1", "refresh-1"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lives_of_tokens_in_every_spelling_are_kept_to() {
    for (expires_in, good_minutes) in [
        (json!("7200"), 110),
        (json!(7_200.5), 110),
        (Value::Null, 50),
    ] {
        let (stand_in, gateway) = StandIn::with_gateway().await;
        let answer = json!({ "access_token": "named", "expires_in": expires_in });
        stand_in.tokens.queue(TokenAnswer::json(200, &answer));
        for (minutes, refreshes) in [(120, 1), (good_minutes, 1), (15, 2)] {
            gateway.clock.advance(TimeDelta::minutes(minutes));
            let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
            assert_eq!(status, 200, "{answer}");
            let refreshed = stand_in.tokens.refresh_tokens().len();
            assert_eq!(refreshed, refreshes, "{expires_in} after {minutes} minutes");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_at_once_share_one_refresh() {
    for (count, refused) in [(2, false), (20, false), (20, true)] {
        let gateway = Gateway::start().await;
        if refused {
            let authorization = &gateway.sandbox.authorization;
            authorization.expire_access_tokens().await.unwrap();
        } else {
            gateway.clock.advance(LAPSED);
        }
        send_at_once(&gateway, &[&gateway], "plugin_a", count).await;
        assert_eq!(gateway.sandbox.authorization.refreshes(), 1, "{count}");
        assert_eq!(gateway.arrived().await.len(), count);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_at_once_through_two_gateways_share_one_refresh() {
    for refused in [false, true] {
        let gateway = Gateway::start().await;
        let mut plugins = gateway.sandbox.plugins(&gateway.ca_file);
        plugins.remove("plugin_a");
        let replica = gateway.replica().plugins(plugins).start().await;
        gateway.connect(None, Plugin::B, SHARED).await;
        if refused {
            let authorization = &gateway.sandbox.authorization;
            authorization.expire_access_tokens().await.unwrap();
        } else {
            gateway.clock.advance(LAPSED);
            replica.clock.advance(LAPSED);
        }
        send_at_once(&gateway, &[&gateway, &replica], "plugin_b", 20).await;
        assert_eq!(gateway.sandbox.authorization.refreshes(), 1, "{refused}");
        assert_eq!(gateway.arrived().await.len(), 20);
        replica.stop().await;
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_grant_disconnects_the_mailbox_and_says_so() {
    let gateway = Gateway::start().await;
    let authorization = &gateway.sandbox.authorization;
    authorization.withdraw(MAILBOX).await.unwrap();
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert_eq!(answer["code"], "provider_rejected");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("connect it again"), "{answer}");
    let logged = gateway.logged().await;
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0].0, "failed_perm");
    assert_eq!(gateway.spooled().await, 0);

    let row = sqlx::query(
        "SELECT status, disconnect_reason,
                coalesce(refresh_token_sealed, access_token_sealed) IS NULL AS forgotten
         FROM mailboxes WHERE id = $1",
    )
    .bind(gateway.mailbox.credential.0)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(row.get::<String, _>("status"), "disconnected");
    assert_eq!(row.get::<String, _>("disconnect_reason"), "invalid_grant");
    assert!(row.get::<bool, _>("forgotten"));

    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 422, "{answer}");
    assert_eq!(answer["code"], "no_mailbox");
    let mut client = SmtpClient::authenticated(&gateway).await;
    let message = format!("From: {MAILBOX}\r\nTo: bob@example.com\r\n\r\nHello");
    let reply = client.submit("bob@example.com", message.as_bytes()).await;
    let expected = "550 5.7.1 From address not authorized: no connected mailbox";
    assert!(reply.starts_with(expected), "{reply}");
    assert!(gateway.arrived().await.is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_connected_again_keeps_its_ids() {
    let gateway = Gateway::start().await;
    let authorization = &gateway.sandbox.authorization;
    authorization.withdraw(MAILBOX).await.unwrap();
    let (status, _) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 502);
    let again = gateway.connect(None, Plugin::A, MAILBOX).await;
    assert_eq!(again.credential, gateway.mailbox.credential);
    assert_eq!(again.user_key, gateway.mailbox.user_key);
    // Its first token, and then one that is refreshed.
    for _ in 0..2 {
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
        gateway.clock.advance(LAPSED);
    }
    assert_eq!(gateway.arrived().await.len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_grant_in_passing_disconnects_nobody() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in
        .tokens
        .queue(TokenAnswer::error(400, "invalid_grant"));
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1", "refresh-1"]);
    assert_eq!(mailbox_status(&gateway).await, "active");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_are_not_the_mailboxs_queue_the_mail_and_disconnect_nobody() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let elsewhere = format!("{}/token", stand_in.tokens.url());
    let cases = [
        (TokenAnswer::error(401, "invalid_client"), "invalid_client"),
        (
            TokenAnswer::error(400, "unauthorized_client"),
            "unauthorized_client",
        ),
        (TokenAnswer::error(500, "invalid_grant"), "500"),
        (TokenAnswer::new(503, "<html>busy</html>"), "503"),
        (TokenAnswer::new(429, ""), "429"),
        (TokenAnswer::new(200, "<html>hello</html>"), "malformed"),
        (TokenAnswer::new(200, "{}"), "malformed"),
        // Followed, it would bring good tokens; but the secret isn't shown to whoever is named.
        (TokenAnswer::redirect(elsewhere), "307"),
    ];
    for (number, (answer, told)) in (1..).zip(cases) {
        stand_in.tokens.queue(answer);
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{told}: {answer}");
        assert_eq!(answer["status"], "failed_temp", "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(told), "{answer}");
        assert_eq!(stand_in.tokens.refresh_tokens().len(), number, "{told}");
        assert_eq!(mailbox_status(&gateway).await, "active", "{told}");
    }
    stand_in.tokens.close();
    gateway
        .eventually("the closed port", async |gateway| {
            let (status, answer) = stand_in::send(gateway, "bob@example.com").await;
            assert_eq!(status, 202, "{answer}");
            let error = answer["error"].as_str().unwrap();
            error.contains("can't be reached") && error.contains("refused")
        })
        .await;
    assert_eq!(mailbox_status(&gateway).await, "active");
    assert_eq!(stand_in.submission.connections(), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_token_endpoint_is_not_waited_for_without_end() {
    let builder = Gateway::builder().set("SENDING__OAUTH_SECONDS", 1);
    let (stand_in, gateway) = StandIn::with(builder).await;
    gateway.clock.advance(LAPSED);
    let late = TokenAnswer::error(400, "invalid_grant").held(&CancellationToken::new());
    stand_in.tokens.queue(late);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    // Nobody is kept from trying again.
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_loses_no_rotated_token() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let rotated = json!({
        "access_token": "late-access", "refresh_token": "late-refresh", "expires_in": 3_600,
    });
    let release = CancellationToken::new();
    let answer = TokenAnswer::json(200, &rotated).held(&release);
    stand_in.tokens.queue(answer);
    {
        let asked = gateway.eventually("the refresh", async |_| {
            !stand_in.tokens.refresh_tokens().is_empty()
        });
        tokio::select! {
            // Its connection is closed when this ends.
            (status, answer) = stand_in::send(&gateway, "bob@example.com") => {
                panic!("answered before the refresh: {status} {answer}");
            }
            () = asked => {}
        }
    }
    release.cancel();
    gateway
        .eventually("the message", async |_| {
            !stand_in.submission.messages().is_empty()
        })
        .await;
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        stand_in.tokens.refresh_tokens(),
        ["refresh-1", "late-refresh"]
    );
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].token, "late-access");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_that_dies_with_its_gateway_is_asked_for_again() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let folder = gateway.ca_file.parent().unwrap();
    let files = certificates::ensure(folder, &[], chrono::Utc::now()).unwrap();
    let child = Invocation::serve(&gateway.database_url, &files);
    let child = with_plugins(child, gateway.sandbox.plugins(&gateway.ca_file));
    let mut child = with_plugins(child, stand_in.plugins()).start();
    let http = child.ready().await.http;
    sqlx::raw_sql("UPDATE mailboxes SET access_token_expires_at = now() WHERE plugin = 'plugin_b'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    // The provider has answered, and the process dies before it has stored the answer.
    let never = CancellationToken::new();
    let rotated = json!({ "access_token": "a", "refresh_token": "lost", "expires_in": 3_600 });
    stand_in
        .tokens
        .queue(TokenAnswer::json(200, &rotated).held(&never));
    let request = gateway
        .http
        .post(format!("http://{http}/send"))
        .header("x-send-key", gateway.app.send_key.expose())
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": "bob@example.com",
            "subject": "Hello",
            "body": "It works.",
            "plugin": "plugin_b",
        }));
    let killing = async {
        gateway
            .eventually("the refresh", async |_| {
                stand_in.tokens.refresh_tokens() == ["refresh-1"]
            })
            .await;
        child.signal("KILL").await;
    };
    let (answered, ()) = tokio::join!(request.send(), killing);
    assert!(answered.is_err(), "{answered:?}");
    // Nobody sends anything meanwhile.
    gateway
        .eventually("the next refresh", async |_| {
            stand_in.tokens.refresh_tokens() == ["refresh-1", "refresh-1"]
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_goes_on_when_nobody_waits_for_it() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let rotated = json!({ "access_token": "late-access", "refresh_token": "late-refresh" });
    let release = CancellationToken::new();
    let answer = TokenAnswer::json(200, &rotated).held(&release);
    stand_in.tokens.queue(answer);
    let mailboxes = &gateway.daemon.mailboxes;
    let wanted = Wanted {
        app: gateway.app.id,
        user: None,
        plugin: Some(Plugin::B),
        address_lookup: None,
        only: None,
    };
    let mailbox = mailboxes.choose(&wanted).await.unwrap().unwrap().mailbox;
    let asked = gateway.eventually("the refresh", async |_| {
        !stand_in.tokens.refresh_tokens().is_empty()
    });
    tokio::select! {
        account = mailboxes.access(&mailbox, None) => panic!("too early: {account:?}"),
        () = asked => {}
    }
    release.cancel();
    gateway
        .eventually("the new token", async |_| {
            let mailbox = mailboxes.active(mailbox.id).await.unwrap().unwrap();
            mailbox.token_generation > 2
        })
        .await;
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        stand_in.tokens.refresh_tokens(),
        ["refresh-1", "late-refresh"]
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_that_is_refused_too_ends_the_message_and_not_the_mailbox() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let submission = &stand_in.submission;
    submission.always(Stage::Auth, Answer::token_refused());
    submission.always(Stage::AuthEnd, Answer::reply("535 5.7.8 Not on Sundays"));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("535 5.7.8 Not on Sundays"), "{answer}");
    assert_eq!(stand_in.tokens.refresh_tokens().len(), 1);
    assert_eq!(submission.count("AUTH"), 2);
    assert_eq!(mailbox_status(&gateway).await, "active");
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_without_smtp_submission_needs_no_other_token() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let words = "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled";
    stand_in
        .submission
        .always(Stage::Auth, Answer::reply(words));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert!(
        answer["detail"].as_str().unwrap().contains(words),
        "{answer}"
    );
    assert!(stand_in.tokens.refresh_tokens().is_empty());
    assert_eq!(stand_in.submission.count("AUTH"), 1);
    assert_eq!(mailbox_status(&gateway).await, "active");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_lie_sealed_in_the_database() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(LAPSED);
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let row = sqlx::query(
        "SELECT mailboxes::text AS row, refresh_token_sealed AS refresh,
                access_token_sealed AS access
         FROM mailboxes WHERE plugin = 'plugin_b'",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    let columns = [
        row.get::<String, _>("row").into_bytes(),
        row.get("refresh"),
        row.get("access"),
    ];
    for column in columns {
        assert!(!column.is_empty());
        for token in ["access-", "refresh-"] {
            let found = column
                .windows(token.len())
                .any(|part| part == token.as_bytes());
            assert!(!found, "{token} can be read");
        }
    }
    assert_eq!(stand_in.tokens.refresh_tokens(), ["refresh-1"]);
    gateway.stop().await;
}

/// Of the stand-in's mailbox.
async fn mailbox_status(gateway: &Gateway) -> String {
    sqlx::query_scalar("SELECT status FROM mailboxes WHERE plugin = 'plugin_b'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// Sends `count` messages of the gateway's app at once, through `doors` in turn; all go out.
async fn send_at_once(gateway: &Gateway, doors: &[&Gateway], plugin: &str, count: usize) {
    let mut sends = JoinSet::new();
    for door in doors.iter().cycle().take(count) {
        let request = gateway
            .http
            .post(format!("{}/send", door.daemon.base_url))
            .header("x-send-key", gateway.app.send_key.expose())
            .json(&json!({
                "pk": gateway.app.pushable_key.expose(),
                "to": "bob@example.com",
                "subject": "Hello",
                "body": "It works.",
                "plugin": plugin,
            }));
        sends.spawn(async move {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        });
    }
    for (status, answer) in sends.join_all().await {
        assert_eq!(status, 200, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_nobody_uses_is_refreshed_before_it_lapses() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    gateway.clock.advance(TimeDelta::days(29));
    gateway.daemon.mailboxes.refresh_idle().await.unwrap();
    assert!(stand_in.tokens.refresh_tokens().is_empty());
    gateway.clock.advance(TimeDelta::days(2));
    // Several replicas look at once; each mailbox is one's.
    let (first, second) = tokio::join!(
        gateway.daemon.mailboxes.refresh_idle(),
        gateway.daemon.mailboxes.refresh_idle()
    );
    // The sandbox's mailbox is due as well; the gateway's own worker may have been first.
    assert!(first.unwrap() + second.unwrap() <= 2);
    gateway
        .eventually("the refresh", async |_| {
            stand_in.tokens.refresh_tokens() == ["refresh-1"]
        })
        .await;
    // A provider that is away is asked again an hour later, and nobody is disconnected.
    gateway.clock.advance(TimeDelta::days(31));
    stand_in
        .tokens
        .queue(TokenAnswer::error(401, "invalid_client"));
    gateway.daemon.mailboxes.refresh_idle().await.unwrap();
    gateway.clock.advance(TimeDelta::hours(2));
    gateway.daemon.mailboxes.refresh_idle().await.unwrap();
    gateway
        .eventually("the refresh after the failure", async |_| {
            stand_in.tokens.refresh_tokens() == ["refresh-1", "refresh-2", "refresh-2"]
        })
        .await;
    gateway.stop().await;
}
