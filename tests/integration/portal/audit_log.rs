//! The audit log in the settings: changes in words, with links and filters.

use chrono::{TimeDelta, Utc};
use reqwest::Method;
use reqwest::header::USER_AGENT;
use uuid::Uuid;

use super::visitor::{Page, Visitor, answer, api_secret};
use crate::support::gateway::Gateway;
use mailgate_types::plugin::Plugin;

/// The audit log of a page, without its other tabs.
fn log(page: &Page) -> &str {
    assert_eq!(page.status, 200, "{page:?}");
    let (_, log) = page.text.split_once("id=\"entries\"").expect("the log");
    log
}

/// Where its older entries are.
fn older(log: &str) -> Option<String> {
    let (_, link) = log.split_once("rel=\"next\" href=\"")?;
    Some(link.split('"').next()?.replace("&amp;", "&"))
}

#[tokio::test]
async fn changes_are_told_in_words_and_found_by_what_and_by_whom() {
    let gateway = Gateway::start().await;
    gateway.connect(None, Plugin::A, "ada@example.com").await;
    let visitor = Visitor::signed_in(&gateway).await;
    let all = visitor.get("/portal/settings").await;
    let all = log(&all);
    for part in [
        "Mailbox <a href=\"/portal/mailboxes/cred_",
        ">ada@example.com</bdi></a> connected",
        "title=\"user.connected cred_",
        "Signed in with the API secret",
        &format!("<a href=\"/portal/apps/{}\">", gateway.app.slug),
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let (connected, signed_in) = ("ada@example.com", "Signed in with");
    for (asked, has_connected, has_signed_in) in [
        ("group=mailboxes", true, false),
        ("group=sign-ins", false, true),
        ("group=billing", false, false),
        ("group=nonsense&actor=nonsense", true, true),
        ("actor=user", true, false),
        ("group=sign-ins&actor=user", false, false),
    ] {
        let page = visitor.get(&format!("/portal/settings?{asked}")).await;
        let found = log(&page);
        assert_eq!(found.contains(connected), has_connected, "{asked}: {found}");
        assert_eq!(found.contains(signed_in), has_signed_in, "{asked}: {found}");
        let is_empty = !has_connected && !has_signed_in;
        assert_eq!(found.contains("Nothing matches"), is_empty, "{asked}");
        let shown = "<div class=\"tab chosen\" id=\"audit\">";
        assert!(page.text.contains(shown), "{asked}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn filters_are_kept_on_older_pages_and_a_rare_actor_is_found_step_by_step() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let statement = "INSERT INTO audit_entries (id, subscriber_id, action, actor, details)
         SELECT overlay(given.id::text PLACING lpad(to_hex(number), 12, '0') FROM 25)::uuid,
                $2, 'logs.exported', $3, '{}'
         FROM (SELECT $1::uuid AS id) AS given, generate_series(1, $4) AS number";
    // Before the gateway's own entries, the operator's first.
    for (hours, actor, count) in [(3, "operator", 1), (2, "subscriber", 1_050)] {
        let time = Utc::now() - TimeDelta::hours(hours);
        let time = u128::try_from(time.timestamp_millis()).unwrap();
        sqlx::query(statement)
            .bind(Uuid::from_u128((time << 80) | 0x7000_8000_0000_0000_0000))
            .bind(gateway.subscriber.0)
            .bind(actor)
            .bind(count)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    let first = visitor.get("/portal/settings?group=messages").await;
    let (first, next) = (log(&first), older(log(&first)).unwrap());
    assert_eq!(first.matches("Messages exported").count(), 20, "{first}");
    assert!(next.contains("group=messages"), "{next}");
    let second = visitor.get(&next).await;
    assert_eq!(log(&second).matches("Messages exported").count(), 20);
    assert!(!log(&second).contains("Signed in"), "{second:?}");

    let by_operator = "/portal/settings?group=messages&actor=operator";
    let page = visitor.get(by_operator).await;
    assert!(log(&page).contains("No matches since"), "{page:?}");
    assert!(log(&page).contains("Search further back"), "{page:?}");
    let next = older(log(&page)).unwrap();
    let page = visitor.get(&next).await;
    assert_eq!(log(&page).matches("Messages exported").count(), 1);
    assert!(older(log(&page)).is_none(), "{page:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn sessions_have_names_of_browsers() {
    const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let form = visitor.request(Method::POST, "/portal/sign-in");
    let form = form
        .header(USER_AGENT, BROWSER)
        .form(&[("api_secret", &secret)]);
    let page = answer(form).await;
    assert_eq!(page.status, 303, "{page:?}");
    visitor.keep_cookie(&page);
    let page = visitor.get("/portal/settings").await;
    let shown = format!("title=\"{BROWSER}\">Chrome on Linux</td>");
    assert!(page.text.contains(&shown), "{page:?}");
    gateway.stop().await;
}
