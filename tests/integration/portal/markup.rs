//! Every page that links lead to, with markup in whatever others may write.

use std::collections::{BTreeSet, VecDeque};

use serde_json::json;

use super::visitor::Visitor;
use super::webhooks::{add, gateway};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x>";

/// More pages than links lead to.
const MOST: usize = 200;

/// Writes it into what apps, users, providers and endpoints say.
async fn spoil(gateway: &Gateway) {
    let mut database = gateway.database().await;
    for statement in [
        "UPDATE apps SET name = $1",
        "UPDATE subscribers SET label = $1",
        "UPDATE mailboxes SET email = $1",
        "UPDATE end_users SET user_id = $1",
        "UPDATE email_logs SET error_message = $1, from_address = $1, to_address = $1, cc_addresses = ARRAY[$1]",
        "UPDATE email_attempts SET error_message = $1",
        "UPDATE audit_entries SET address = $1, app_slug = $1",
        "UPDATE portal_sessions SET user_agent = $1, address = $1",
        "INSERT INTO bounces (credential_id, key, log_id, recipient, bounce_type, status, diagnostic, bounced_at, awaits_sent)
         SELECT credential_id, uuid_send(id), id, $1, 'permanent', $1, $1, now(), false FROM email_logs",
        "INSERT INTO message_replies (log_id, key, from_address, replied_at) SELECT id, '', $1, now() FROM email_logs",
    ] {
        let spoilt = sqlx::query(statement).bind(MARKUP).execute(&mut database).await;
        let spoilt = spoilt.unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert!(spoilt.rows_affected() > 0, "{statement}");
    }
}

/// The paths that a page leads to by links.
fn links(page: &str) -> impl Iterator<Item = String> {
    let links = page.split("href=\"").skip(1);
    links
        .filter_map(|rest| rest.split('"').next())
        .filter(|path| {
            path.starts_with("/portal") && !path.contains("/assets/") && !path.contains(".csv")
        })
        .map(|path| path.replace("&amp;", "&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stays_text_on_all_of_them() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let hook = add(&gateway, &visitor, &receiver.url("/hook")).await;
    receiver.then([Reply::Status(500, MARKUP)]);
    assert_eq!(visitor.post(&format!("{hook}/test"), &[]).await.status, 303);
    for to in [
        "bob@example.com",
        "tempfail@example.com",
        "permfail@example.com",
    ] {
        let message = json!({
            "to": to, "subject": MARKUP, "body": "x", "metadata": { "key": MARKUP }
        });
        gateway.send(message).await;
    }
    gateway
        .eventually("all are in the log", async |gateway| {
            gateway.logged().await.len() == 3
        })
        .await;
    spoil(&gateway).await;

    let mut waiting = VecDeque::from(["/portal".to_owned()]);
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut showing = 0;
    while let Some(path) = waiting.pop_front() {
        let page = visitor.get(&path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        let media_type = page.header("content-type");
        assert!(media_type.starts_with("text/html"), "{path}: {media_type}");
        for wrong in ["<script>alert", "<img", "sk_", "sek_", "whsec_", "whs_"] {
            assert!(!page.text.contains(wrong), "{path}: {wrong}: {}", page.text);
        }
        showing += usize::from(page.text.contains("&lt;script&gt;alert(1)"));
        for link in links(&page.text) {
            if seen.len() < MOST && seen.insert(link.clone()) {
                waiting.push_back(link);
            }
        }
    }
    for path in [
        "/portal/webhooks/new",
        "/deliveries/",
        "/replay",
        "/messages/log_",
        "/mailboxes/cred_",
        "/cancel",
        "/renew",
    ] {
        assert!(
            seen.iter().any(|seen| seen.contains(path)),
            "{path}: {seen:?}"
        );
    }
    assert_eq!(showing, seen.len(), "the app's name is on every page");

    // What a browser makes of it.
    let secret = super::visitor::api_secret(&gateway).await;
    let base = &gateway.daemon.base_url;
    let mut steps = vec![
        Step::goto(format!("{base}/portal")),
        Step::Type(secret),
        Step::Press(vec!["Enter"]),
        Step::expect_url("/portal$"),
    ];
    for path in seen.iter().filter(|path| !path.contains('?')) {
        steps.push(Step::goto(format!("{base}{path}")));
        steps.push(Step::Fits(()));
    }
    for result in Browser::phone().run(&steps).await {
        assert!(result.console_errors.is_empty(), "{result:?}");
    }
    gateway.stop().await;
}
