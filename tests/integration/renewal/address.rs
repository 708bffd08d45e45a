//! The account's address: a new one counts once it is confirmed, and who reads the former one can undo it.

use chrono::TimeDelta;
use mail_parser::MessageParser;
use reqwest::Method;
use serde_json::{Value, json};

use crate::portal::visitor::Visitor;
use crate::support::caller::{Answer, Caller, text};
use crate::support::gateway::{Gateway, create_app};

const PORTAL: &str = "https://portal.example/portal";
pub(super) const OWNER: &str = "owner@example.com";
pub(super) const EVE: &str = "eve@example.com";

pub(super) async fn gateway() -> Gateway {
    // With the sandbox's relay.
    Gateway::builder()
        .billed()
        .set("PORTAL__BASE_URL", PORTAL)
        .start()
        .await
}

/// A replica that mails by the same relay.
async fn replica(gateway: &Gateway) -> Gateway {
    gateway
        .replica()
        .relay(gateway.sandbox.relay(&gateway.ca_file))
        .set("PORTAL__BASE_URL", PORTAL)
        .start()
        .await
}

/// The subjects and texts of the mails to an address, the newest first.
async fn mails(gateway: &Gateway, to: &str) -> Vec<(String, String)> {
    let mut mails = Vec::new();
    for arrived in gateway.sandbox.inbox.list(500) {
        if arrived.envelope_to != [to] {
            continue;
        }
        let raw = gateway.sandbox.inbox.raw(&arrived.id).await.unwrap();
        let raw = raw.unwrap();
        let parsed = MessageParser::new().parse(&raw).unwrap();
        let subject = parsed.subject().unwrap().to_owned();
        mails.push((subject, parsed.body_text(0).unwrap().into_owned()));
    }
    mails
}

/// The text of the newest mail to an address with this word in its subject, once there are so many.
pub(super) async fn mail(gateway: &Gateway, to: &str, word: &str, count: usize) -> String {
    gateway
        .eventually("the mail", async |gateway| {
            let mails = mails(gateway, to).await;
            mails.iter().filter(|(it, _)| it.contains(word)).count() == count
        })
        .await;
    let mails = mails(gateway, to).await;
    let found = mails
        .into_iter()
        .find(|(subject, _)| subject.contains(word));
    found.unwrap().1
}

/// The paths of the links in a mail.
fn paths(text: &str) -> Vec<String> {
    let links = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(PORTAL));
    links.map(|path| format!("/portal{path}")).collect()
}

/// The path of its only link.
pub(super) fn path(text: &str) -> String {
    let paths = paths(text);
    assert_eq!(paths.len(), 1, "{text}");
    paths[0].clone()
}

pub(super) async fn change(owner: &Caller<'_>, email: &str) -> Answer {
    let request = owner.request(Method::PATCH, "/me");
    Answer::to(request.json(&json!({ "email": email }))).await
}

pub(super) async fn email(owner: &Caller<'_>) -> String {
    let me = owner.get("/me").await.success(200);
    text(&me, "email").to_owned()
}

/// Changes the address and confirms it; returns what the address before is told. `number` counts the changes from it.
pub(super) async fn moved(gateway: &Gateway, from: &str, to: &str, number: usize) -> String {
    let owner = Caller::owner(gateway).await;
    assert_eq!(change(&owner, to).await.success(200)["pending_email"], to);
    let confirm = path(&mail(gateway, to, "Confirm", 1).await);
    let stranger = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(stranger.get(&confirm).await.status, 200);
    assert_eq!(email(&owner).await, from);
    assert_eq!(stranger.post(&confirm, &[]).await.status, 200);
    assert_eq!(email(&owner).await, to);
    mail(gateway, from, "has changed", number).await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_moved_the_address_by_a_stolen_secret_sees_nothing_of_the_next() {
    let gateway = gateway().await;
    let other = replica(&gateway).await;
    let stolen = Caller::owner(&gateway).await;
    let answer = change(&stolen, EVE).await.success(200);
    assert_eq!(
        (&answer["email"], &answer["pending_email"]),
        (&json!(OWNER), &json!(EVE))
    );
    let told = mail(&gateway, OWNER, "about to change", 1).await;
    assert!(
        told.contains(EVE) && told.contains("from 127.0.0.1"),
        "{told}"
    );
    let mut eve = Visitor::new(&other.daemon.base_url);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    let page = eve.post(&confirm, &[]).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(eve.post(&confirm, &[]).await.status, 410);
    assert_eq!(email(&Caller::owner(&gateway).await).await, EVE);
    let undo = path(&mail(&gateway, OWNER, "has changed", 1).await);

    // The owner renews the secret, is shown the change, and both addresses hear of the renewal.
    let owner = Caller::owner(&gateway).await;
    let renewed = owner.reset("/me/reset-api-secret").await.success(200);
    let minted = &renewed["minted_since"]["email_change"];
    assert_eq!(
        (
            &minted["former_email"],
            &minted["email"],
            &minted["undoable"]
        ),
        (&json!(OWNER), &json!(EVE), &json!(true))
    );
    mail(&gateway, OWNER, "API secret of", 1).await;
    mail(&gateway, EVE, "API secret of", 1).await;
    assert_eq!(change(&stolen, EVE).await.status, 401);

    // By mail the thief comes in, but not to the secret.
    let asked = [("email", EVE)];
    eve.post("/portal/sign-in-mail", &asked).await;
    let link = path(&mail(&gateway, EVE, "Sign in", 1).await);
    let page = eve.post(&link, &[]).await;
    assert_eq!(page.status, 303);
    eve.keep_cookie(&page);
    let reveal = "/portal/settings/api-secret/reveal";
    assert_eq!(eve.post(reveal, &[]).await.status, 403);

    // Until the owner takes the address back.
    let mut ada = Visitor::new(&gateway.daemon.base_url);
    let page = ada.get(&undo).await;
    assert!(page.text.contains("Restore the address"), "{}", page.text);
    let page = ada.post(&undo, &[]).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(ada.post(&undo, &[]).await.status, 410);
    assert_eq!(eve.get("/portal/settings").await.status, 303);
    let told = mail(&gateway, EVE, "former one again", 1).await;
    assert_eq!(paths(&told).len(), 0, "{told}");
    eve.post("/portal/sign-in-mail", &asked).await;
    ada.post("/portal/sign-in-mail", &[("email", OWNER)]).await;
    // The replica's demo has this address too, but nobody has confirmed it.
    let link = paths(&mail(&gateway, OWNER, "Sign in", 1).await).remove(0);
    assert_eq!(
        mails(&gateway, EVE)
            .await
            .iter()
            .filter(|(it, _)| it.contains("Sign in"))
            .count(),
        1
    );
    let page = ada.post(&link, &[]).await;
    ada.keep_cookie(&page);
    assert_eq!(ada.post(reveal, &[]).await.status, 200);

    let trail = Caller::owner(&gateway)
        .await
        .get("/audit")
        .await
        .success(200);
    let actions = trail["entries"].as_array().unwrap().iter();
    let actions: Vec<&str> = actions.map(|entry| text(entry, "action")).rev().collect();
    assert_eq!(
        actions
            .into_iter()
            .filter(|it| !it.starts_with("app.") && *it != "user.connected")
            .collect::<Vec<_>>(),
        [
            "email_change.requested",
            "subscriber.changed",
            "api_secret.renewed",
            "portal.signed_in",
            "subscriber.changed",
            "portal.signed_in",
            "api_secret.revealed",
        ]
    );
    other.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_undone_for_three_days_however_often_it_is_changed_again() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let owner = Caller::owner(&gateway).await;
    let first = path(&moved(&gateway, OWNER, "b@example.com", 1).await);
    gateway.clock.advance(TimeDelta::hours(71));
    // Who had it for a short time has no say.
    let told = moved(&gateway, "b@example.com", "c@example.com", 1).await;
    assert_eq!(paths(&told).len(), 0, "{told}");
    // A third waits for its confirmation.
    change(&owner, "d@example.com").await.success(200);
    let third = path(&mail(&gateway, "d@example.com", "Confirm", 1).await);
    let stop = path(&mail(&gateway, "c@example.com", "about to change", 1).await);
    // So long after the last change, and not after the first.
    gateway.clock.advance(TimeDelta::hours(71));
    assert_eq!(stranger.post(&first, &[]).await.status, 200);
    assert_eq!(email(&owner).await, OWNER);
    mail(&gateway, "c@example.com", "former one again", 1).await;
    for path in [&stop, &third, &first] {
        assert_eq!(stranger.get(path).await.status, 410);
        assert_eq!(stranger.post(path, &[]).await.status, 410);
    }
    assert_eq!(email(&owner).await, OWNER);

    let late = path(&moved(&gateway, OWNER, "e@example.com", 2).await);
    gateway.clock.advance(TimeDelta::hours(73));
    assert_eq!(stranger.get(&late).await.status, 410);
    assert_eq!(stranger.post(&late, &[]).await.status, 410);
    assert_eq!(email(&owner).await, "e@example.com");
    // And who comes by the mail is as good as who has the secret again.
    assert_eq!(reveal_by_mail(&gateway, "e@example.com", 1).await, 200);
    gateway.stop().await;
}

/// Signs in by a mailed link, the `number`th to this address, and asks for the API secret; returns the answer's status.
async fn reveal_by_mail(gateway: &Gateway, address: &str, number: usize) -> u16 {
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let asked = [("email", address)];
    visitor.post("/portal/sign-in-mail", &asked).await;
    let link = path(&mail(gateway, address, "Sign in", number).await);
    let page = visitor.post(&link, &[]).await;
    visitor.keep_cookie(&page);
    let reveal = "/portal/settings/api-secret/reveal";
    visitor.post(reveal, &[]).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_before_comes_back_at_once() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let owner = Caller::owner(&gateway).await;
    let undo = path(&moved(&gateway, OWNER, EVE, 1).await);
    let back = change(&owner, "Owner@example.com").await.success(200);
    assert_eq!(back["email"], OWNER);
    assert!(back.get("pending_email").is_none(), "{back}");
    // Who had it in between is told, and can do nothing about it.
    let told = mail(&gateway, EVE, "former one again", 1).await;
    assert_eq!(paths(&told).len(), 0, "{told}");
    assert_eq!(stranger.post(&undo, &[]).await.status, 410);
    let renewed = owner.reset("/me/reset-api-secret?revoke=all").await;
    let minted = &renewed.success(200)["minted_since"];
    assert_eq!(minted["email_change"], Value::Null);
    let owner = Caller::owner(&gateway).await;
    assert_eq!(email(&owner).await, OWNER);
    assert_eq!(reveal_by_mail(&gateway, OWNER, 1).await, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_stops_a_change_and_undoes_it_on_request() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let owner = Caller::owner(&gateway).await;
    change(&owner, EVE).await.success(200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    let stop = path(&mail(&gateway, OWNER, "about to change", 1).await);
    owner.reset("/me/reset-api-secret").await.success(200);
    for path in [&confirm, &stop] {
        assert_eq!(stranger.post(path, &[]).await.status, 410);
    }
    let owner = Caller::owner(&gateway).await;
    let me = owner.get("/me").await.success(200);
    assert!(me.get("pending_email").is_none(), "{me}");

    moved(&gateway, OWNER, "b@example.com", 1).await;
    moved(&gateway, "b@example.com", "c@example.com", 1).await;
    for (wrong, field) in [
        ("revoke=some", "revoke"),
        ("revoke=all&keep_email=1", "keep_email"),
        ("keep_email=true", "keep_email"),
    ] {
        let renewed = owner.reset(&format!("/me/reset-api-secret?{wrong}")).await;
        assert_eq!(renewed.wrong_fields(), [field]);
    }
    let renewed = owner.reset("/me/reset-api-secret?revoke=all").await;
    let listed = renewed.success(200)["minted_since"]["email_change"].clone();
    assert_eq!(listed["former_email"], OWNER);
    assert_eq!(listed["email"], "c@example.com");
    assert_eq!(
        (&listed["undoable"], &listed["restored"]),
        (&json!(true), &json!(true))
    );
    let owner = Caller::owner(&gateway).await;
    assert_eq!(email(&owner).await, OWNER);
    // Nobody has shown to read it.
    let confirmed: Option<String> = sqlx::query_scalar("SELECT confirmed_email FROM subscribers")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(confirmed, None);
    // Had a thief moved it, and renewed: its owner gets in by mail as before.
    assert_eq!(reveal_by_mail(&gateway, OWNER, 1).await, 200);
    mail(&gateway, OWNER, "API secret of", 2).await;
    mail(&gateway, "c@example.com", "former one again", 1).await;

    // Whoever moved it keeps it; the address before can still undo that.
    let undo = path(&moved(&gateway, OWNER, "f@example.com", 2).await);
    let keeping = "/me/reset-api-secret?revoke=all&keep_email=true";
    let renewed = owner.reset(keeping).await.success(200);
    let listed = &renewed["minted_since"]["email_change"];
    assert_eq!(
        (&listed["undoable"], &listed["restored"]),
        (&json!(true), &json!(false))
    );
    let owner = Caller::owner(&gateway).await;
    assert_eq!(email(&owner).await, "f@example.com");
    assert_eq!(stranger.post(&undo, &[]).await.status, 200);
    assert_eq!(email(&owner).await, OWNER);
    let renewed = owner.reset("/me/reset-api-secret").await.success(200);
    assert_eq!(renewed["minted_since"]["email_change"], Value::Null);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_mailed_to_no_address_that_has_changed_meanwhile() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let mut other = gateway.database().await;
    let mut change = sqlx::Connection::begin(&mut other).await.unwrap();
    sqlx::query("UPDATE subscribers SET email = $1")
        .bind(EVE)
        .execute(&mut *change)
        .await
        .unwrap();
    let asked = [("email", OWNER)];
    stranger.post("/portal/sign-in-mail", &asked).await;
    gateway
        .eventually("the wait", async |gateway| {
            let waiting: i64 =
                sqlx::query_scalar("SELECT count(*) FROM pg_locks WHERE NOT granted")
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap();
            waiting > 0
        })
        .await;
    change.commit().await.unwrap();
    stranger
        .post("/portal/sign-in-mail", &[("email", EVE)])
        .await;
    path(&mail(&gateway, EVE, "Sign in", 1).await);
    assert_eq!(mails(&gateway, OWNER).await.len(), 0);
    let links: i64 = sqlx::query_scalar("SELECT count(*) FROM portal_links")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(links, 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_renews_without_end_keeps_no_owner_out() {
    let gateway = gateway().await;
    for _ in 0..60 {
        let thief = Caller::owner(&gateway).await;
        thief.reset("/me/reset-api-secret").await.success(200);
    }
    let thief = Caller::owner(&gateway).await;
    let again = thief.reset("/me/reset-api-secret").await;
    assert_eq!(again.problem(), (429, "too_many_renewals"));
    let mut owner = Visitor::new(&gateway.daemon.base_url);
    owner
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let link = path(&mail(&gateway, OWNER, "Sign in", 1).await);
    let page = owner.post(&link, &[]).await;
    owner.keep_cookie(&page);
    let form = "/portal/settings/api-secret/renew";
    let last = owner.get(form).await.field("last");
    let page = owner
        .post(form, &[("last", &last), ("revoke", "all")])
        .await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(thief.get("/me").await.status, 401);
    // Ten mails say enough.
    mail(&gateway, OWNER, "API secret of", 10).await;
    gateway.clock.advance(TimeDelta::hours(24));
    let owner = Caller::owner(&gateway).await;
    owner.reset("/me/reset-api-secret").await.success(200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_stopped_by_its_owner_and_nobody_is_flooded() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let owner = Caller::owner(&gateway).await;
    change(&owner, EVE).await.success(200);
    let settings = visitor.get("/portal/settings").await;
    assert!(settings.text.contains(EVE), "{}", settings.text);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    let page = visitor
        .post("/portal/settings/email-change/stop", &[])
        .await;
    assert_eq!(page.status, 303);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);

    // By asking for the present one, and by the former address' link.
    change(&owner, EVE).await.success(200);
    assert_eq!(
        change(&owner, OWNER)
            .await
            .success(200)
            .get("pending_email"),
        None
    );
    let confirm = path(&mail(&gateway, EVE, "Confirm", 2).await);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);
    change(&owner, EVE).await.success(200);
    let stop = path(&mail(&gateway, OWNER, "about to change", 3).await);
    assert!(visitor.get(&stop).await.text.contains("Stop the change"));
    assert_eq!(visitor.post(&stop, &[]).await.status, 200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 3).await);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);

    // A later one replaces an earlier one, and nobody gets more than five.
    change(&owner, EVE).await.success(200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 4).await);
    change(&owner, "new@example.com").await.success(200);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);
    assert_eq!(
        change(&owner, EVE).await.problem(),
        (429, "too_many_email_changes")
    );
    let fields = [
        ("label", "New"),
        ("email", EVE),
        ("api_secret", &owner.secret),
    ];
    let page = visitor.post("/portal/settings", &fields).await;
    assert_eq!(page.status, 429, "{}", page.text);
    let me = owner.get("/me").await.success(200);
    assert_eq!(me["pending_email"], "new@example.com");
    assert_ne!(me["label"], "New");
    // Whoever renews the secret can change the address all the same.
    owner.reset("/me/reset-api-secret").await.success(200);
    let owner = Caller::owner(&gateway).await;
    change(&owner, EVE).await.success(200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 5).await);
    gateway.clock.advance(TimeDelta::hours(24));
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);
    assert_eq!(email(&owner).await, OWNER);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_confirming_and_stopping_one_wins() {
    let gateway = gateway().await;
    let other = replica(&gateway).await;
    let here = Visitor::new(&gateway.daemon.base_url);
    let there = Visitor::new(&other.daemon.base_url);
    for round in 1..=4 {
        gateway.clock.advance(TimeDelta::hours(80));
        other.clock.advance(TimeDelta::hours(80));
        let owner = Caller::owner(&gateway).await;
        change(&owner, EVE).await.success(200);
        let confirm = path(&mail(&gateway, EVE, "Confirm", round).await);
        let stop = path(&mail(&gateway, OWNER, "about to change", round).await);
        let (confirmed, stopped) = tokio::join!(here.post(&confirm, &[]), there.post(&stop, &[]));
        // Who stops it after its confirmation takes it back.
        assert_eq!(stopped.status, 200, "{round}");
        assert!([200, 410].contains(&confirmed.status), "{round}");
        assert_eq!(email(&owner).await, OWNER, "{round}");
    }
    other.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_a_new_address_counts_immediately_and_renewing_takes_it_back() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    for address in [EVE, "other@example.com"] {
        let answer = change(&owner, address).await.success(200);
        assert_eq!(
            (&answer["email"], &answer["pending_email"]),
            (&json!(address), &Value::Null)
        );
    }
    let renewed = owner
        .reset("/me/reset-api-secret?revoke=all")
        .await
        .success(200);
    let listed = &renewed["minted_since"]["email_change"];
    assert_eq!(
        (&listed["former_email"], &listed["email"]),
        (&json!(OWNER), &json!("other@example.com"))
    );
    assert_eq!(email(&Caller::owner(&gateway).await).await, OWNER);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_claims_an_address_pushes_nobody_out_of_its_mail() {
    let gateway = gateway().await;
    let visitor = Visitor::new(&gateway.daemon.base_url);
    // The subscriber's own accounts, and those of others with its address: none is left out.
    for _ in 0..10 {
        gateway.clock.advance(TimeDelta::seconds(1));
        create_app(&gateway.daemon, "Demo").await;
    }
    visitor
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let text = mail(&gateway, OWNER, "Sign in", 1).await;
    assert_eq!(paths(&text).len(), 11);
    // Who has come by the mail reads the address, and is before all who only claim it.
    let line = text
        .lines()
        .rfind(|line| line.starts_with("Sign in as"))
        .unwrap();
    let youngest = line.split_once('(').unwrap().1.split_once(',').unwrap().0;
    let last = paths(&text).pop().unwrap();
    assert_eq!(visitor.post(&last, &[]).await.status, 303);
    gateway.clock.advance(TimeDelta::minutes(20));
    visitor
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let text = mail(&gateway, OWNER, "Sign in", 2).await;
    let first = text
        .lines()
        .find(|line| line.starts_with("Sign in as"))
        .unwrap();
    assert!(first.contains(youngest), "{youngest}: {text}");
    assert_eq!(paths(&text).len(), 11);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_former_address_lets_nobody_in() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    visitor
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let link = path(&mail(&gateway, OWNER, "Sign in", 1).await);
    let secret = Caller::owner(&gateway).await.secret;
    let change = |label, email| {
        let proof = ("api_secret", secret.as_str());
        [("label", label), ("email", email), proof]
    };
    // Neither a name alone nor what isn't confirmed takes a link back.
    for (email, done) in [(OWNER, "saved"), (EVE, "email-asked")] {
        let page = visitor
            .post("/portal/settings", &change("Renamed", email))
            .await;
        assert_eq!(page.location(), format!("/portal/settings?done={done}"));
        assert_eq!(visitor.get(&link).await.status, 200);
    }
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 200);
    assert_eq!(visitor.get(&link).await.status, 410);
    assert_eq!(visitor.post(&link, &[]).await.status, 410);
    gateway.stop().await;
}
