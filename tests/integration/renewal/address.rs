//! The account's address: a new one counts once it is confirmed, and who reads the former one can undo it.

mod links;
mod stolen;
mod stopped;
mod undone;

use mail_parser::MessageParser;
use reqwest::Method;
use serde_json::json;

use crate::portal::visitor::Visitor;
use crate::support::caller::{Answer, Caller, text};
use crate::support::gateway::Gateway;

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
