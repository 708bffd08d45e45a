//! AUTH: who gets in, who doesn't, and for how long.

use std::time::{Duration, Instant};

use super::{RECIPIENT, base64, message, plain, subjects};
use crate::support::gateway::{Gateway, create_app};
use crate::support::smtp_client::SmtpClient;

const FAILED: &str = "535 5.7.8 Authentication failed";

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn the_send_key_alone_lets_a_client_in() {
    let gateway = Gateway::start().await;
    plain_and_login_with_and_without_an_initial_response(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    wrong_credentials_are_refused_and_the_third_closes(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    two_failures_leave_room_for_a_success(&gateway).await;
}

async fn plain_and_login_with_and_without_an_initial_response(gateway: &Gateway) {
    let (app_id, key) = (&gateway.app.slug, gateway.app.send_key.expose());
    let (user, password) = (base64(app_id), base64(key));
    let ask_user = format!("334 {}", base64("Username:"));
    let ask_password = format!("334 {}", base64("Password:"));
    let response = plain(app_id, key);
    let named = base64(&format!("{app_id}\0{app_id}\0{key}"));
    let conversations = [
        vec![(format!("AUTH PLAIN {response}"), "235 ".to_owned())],
        vec![(format!("auth plain {response}"), "235 ".to_owned())],
        vec![(format!("AUTH PLAIN {named}"), "235 ".to_owned())],
        vec![
            ("AUTH PLAIN".to_owned(), "334".to_owned()),
            (response.clone(), "235 ".to_owned()),
        ],
        vec![
            ("AUTH LOGIN".to_owned(), ask_user.clone()),
            (user.clone(), ask_password.clone()),
            (password.clone(), "235 ".to_owned()),
        ],
        vec![
            (format!("AUTH LOGIN {user}"), ask_password),
            (password, "235 ".to_owned()),
        ],
        vec![
            ("AUTH LOGIN".to_owned(), ask_user),
            ("*".to_owned(), "501 5.7.0".to_owned()),
            (format!("AUTH PLAIN {response}"), "235 ".to_owned()),
        ],
    ];
    for (number, conversation) in conversations.into_iter().enumerate() {
        let mut client = SmtpClient::encrypted(gateway).await;
        for (line, expected) in conversation {
            let reply = client.command(&line).await;
            assert!(reply.starts_with(&expected), "{number}: {reply}");
        }
        let reply = client.command("AUTH PLAIN").await;
        assert!(reply.starts_with("503 5.5.1"), "{number}: {reply}");
        let reply = client.command("EHLO client.example").await;
        assert!(!reply.contains("AUTH"), "{number}: {reply}");
        let reply = client.submit(RECIPIENT, &message("in")).await;
        assert!(reply.starts_with("250 2.0.0"), "{number}: {reply}");
    }
    assert_eq!(subjects(gateway), ["in"; 7]);
}

async fn wrong_credentials_are_refused_and_the_third_closes(gateway: &Gateway) {
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let (app_id, key) = (gateway.app.slug.as_str(), gateway.app.send_key.expose());
    let mut swapped: String = key.chars().map(swap_case).collect();
    swapped.replace_range(..4, "sek_");
    assert_ne!(swapped, key);
    for (case, user, password) in [
        ("app_id", "nobody", key),
        ("another app's app_id", other.slug.as_str(), key),
        ("app_id in upper case", "DEMO", key),
        ("no app_id", "", key),
        ("key", app_id, "sek_wrong"),
        ("another app's key", app_id, other.send_key.expose()),
        ("key in other case", app_id, swapped.as_str()),
        ("key and a space", app_id, &format!("{key} ")),
        ("pushable key", app_id, gateway.app.pushable_key.expose()),
        ("no key", app_id, ""),
    ] {
        let mut client = SmtpClient::encrypted(gateway).await;
        let reply = client
            .command(&format!("AUTH PLAIN {}", plain(user, password)))
            .await;
        assert_eq!(reply, FAILED, "{case}");
        let reply = client.command("MAIL FROM:<ada@sandbox.example>").await;
        assert!(reply.starts_with("530 5.7.0"), "{case}: {reply}");
        let user_response = if user.is_empty() {
            "=".to_owned()
        } else {
            base64(user)
        };
        client.command(&format!("AUTH LOGIN {user_response}")).await;
        assert_eq!(client.command(&base64(password)).await, FAILED, "{case}");
        let reply = client
            .command(&format!("AUTH PLAIN {}", plain(user, password)))
            .await;
        assert_eq!(reply, FAILED, "{case}");
        assert_eq!(client.next_reply().await, None, "{case}: still open");
    }
}

fn swap_case(letter: char) -> char {
    if letter.is_ascii_lowercase() {
        letter.to_ascii_uppercase()
    } else {
        letter.to_ascii_lowercase()
    }
}

async fn two_failures_leave_room_for_a_success(gateway: &Gateway) {
    let mut client = SmtpClient::encrypted(gateway).await;
    for key in ["sek_wrong", "sek_wrong"] {
        let response = plain(&gateway.app.slug, key);
        let reply = client.command(&format!("AUTH PLAIN {response}")).await;
        assert_eq!(reply, FAILED);
    }
    let response = plain(&gateway.app.slug, gateway.app.send_key.expose());
    let reply = client.command(&format!("AUTH PLAIN {response}")).await;
    assert!(reply.starts_with("235 "), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_keeps_failing_is_slowed_down() {
    let gateway = Gateway::builder()
        .set("LIMITS__AUTHENTICATION_FAILURES_PER_MINUTE", 1)
        .start()
        .await;
    let attempt = format!("AUTH PLAIN {}", plain(&gateway.app.slug, "sek_wrong"));
    let mut client = SmtpClient::encrypted(&gateway).await;
    assert_eq!(client.command(&attempt).await, FAILED);
    let mut client = SmtpClient::encrypted(&gateway).await;
    let early = tokio::time::timeout(Duration::from_millis(500), client.command(&attempt)).await;
    assert!(early.is_err(), "{early:?}");
    // The right key is not made to wait: of ten, some take less than a slowed answer does.
    let quick = async {
        for _ in 0..10 {
            let began = Instant::now();
            SmtpClient::authenticated(&gateway).await;
            if began.elapsed() < Duration::from_secs(3) {
                return true;
            }
        }
        false
    };
    assert!(quick.await, "the right key is slowed down");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_key_ends_what_the_old_one_opened() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client.submit(RECIPIENT, &message("before")).await;
    assert!(reply.starts_with("250 "), "{reply}");
    sqlx::query("UPDATE apps SET send_key_digest = '\\x00' WHERE id = $1")
        .bind(gateway.app.id.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(client.submit(RECIPIENT, &message("after")).await, FAILED);
    assert_eq!(client.next_reply().await, None);
    assert_eq!(subjects(&gateway), ["before"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_database_the_gateway_asks_for_patience() {
    let gateway = Gateway::start().await;
    let mut authenticated = SmtpClient::authenticated(&gateway).await;
    let mut encrypted = SmtpClient::encrypted(&gateway).await;
    gateway.daemon.pool.close().await;
    let reply = authenticated.submit(RECIPIENT, &message("lost")).await;
    assert!(reply.starts_with("451 4.3.0"), "{reply}");
    assert!(authenticated.command("NOOP").await.starts_with("250 "));
    let response = plain(&gateway.app.slug, gateway.app.send_key.expose());
    let reply = encrypted.command(&format!("AUTH PLAIN {response}")).await;
    assert!(reply.starts_with("454 4.7.0"), "{reply}");
    assert_eq!(gateway.sandbox.inbox.count(), 0);
}
