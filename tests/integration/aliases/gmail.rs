//! Gmail's `settings.sendAs`, by the stand-in of its interface.

use mailgate_providers::mail::gmail::send_as::SCOPES;
use mailgate_types::ids::CredentialId;
use reqwest::Method;
use serde_json::{Value, json};

use super::{addresses, execute, is_refused, logged_senders, rows, send, submit};
use crate::support::caller::{Answer, Caller, path};
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn, SEND_SCOPE};
use crate::support::stand_in::ADDRESS;
use crate::support::stand_in::submission::Answer as Reply;
use crate::support::stand_in::submission::Stage;
use crate::support::stand_in::{self, StandIn};

const SALES: &str = "Sales@stand-in.example";
const NEW: &str = "new@stand-in.example";

/// A gateway with a mailbox that may send as [`SALES`], and perhaps one day as [`NEW`].
async fn start() -> (GmailStandIn, Gateway) {
    let stand_in = GmailStandIn::start().await;
    stand_in.set_send_as(&[(SALES, "accepted"), (NEW, "pending")]);
    let builder = Gateway::builder().plugins(stand_in.plugins(FULL_SCOPE));
    let gateway = builder.start().await;
    execute(
        &gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    stand_in.connect(&gateway).await;
    (stand_in, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_address_is_the_mailboxs_at_both_doors() {
    let (stand_in, gateway) = start().await;
    assert_eq!(addresses(&gateway).await, [ADDRESS, SALES]);

    let (status, answer) = send(&gateway, "Our Sales <SALES@stand-in.example>").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (&answer["from"], &answer["plugin"]),
        (&json!(SALES), &json!("plugin_b"))
    );
    let reply = submit(&gateway, "Sales <sales@stand-in.example>").await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    let (status, answer) = send(&gateway, ADDRESS).await;
    assert_eq!(
        (status, &answer["from"]),
        (200, &json!(ADDRESS)),
        "{answer}"
    );

    let sent: Vec<String> = (stand_in.sent().iter())
        .map(|sent| String::from_utf8_lossy(&sent.raw).into_owned())
        .collect();
    for (raw, from) in sent.iter().zip([
        "From: Our Sales <Sales@stand-in.example>\r\n",
        "From: Sales <sales@stand-in.example>\r\n",
        "From: carol@stand-in.example\r\n",
    ]) {
        assert!(raw.contains(from), "{raw}");
    }
    assert_eq!(sent.len(), 3);
    assert_eq!(logged_senders(&gateway).await, [SALES, SALES, ADDRESS]);
    let told: Vec<String> = sqlx::query_scalar(
        "SELECT body FROM webhook_messages WHERE event = 'email.sent' ORDER BY id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    let told: Vec<Value> = (told.iter())
        .map(|body| serde_json::from_str(body).unwrap())
        .collect();
    for (told, from) in told.iter().zip([SALES, SALES, ADDRESS]) {
        assert_eq!(told["data"]["from_address"], from, "{told}");
    }

    for from in [NEW, "sales@stand-in.example.org", "nobody@stand-in.example"] {
        is_refused(&gateway, from).await;
    }
    let (_, answer) = send(&gateway, NEW).await;
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("{ADDRESS}, {SALES}")), "{detail}");
    // It was asked once, and no message asks it again.
    assert_eq!(stand_in.send_as_reads(), 1);
    assert_eq!(stand_in.sent().len(), 3);
    gateway.stop().await;
}

/// As the discovery document has it.
#[test]
fn the_scopes_are_those_of_the_contract() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/target/peers/contracts/gmail.json"
    );
    let contract: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let operations = contract["operations"].as_array().unwrap();
    let list = operations.iter().find(|operation| {
        let path = operation["path"].as_str().unwrap();
        operation["method"] == "GET" && path.ends_with("/settings/sendAs")
    });
    assert_eq!(list.unwrap()["scopes"], json!(SCOPES));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_asked_where_the_grant_allows_it_and_nowhere_else() {
    let stand_in = GmailStandIn::start().await;
    stand_in.set_send_as(&[(SALES, "accepted")]);
    let reads = |scope: String| {
        let stand_in = &stand_in;
        async move {
            let before = stand_in.send_as_reads();
            let builder = Gateway::builder().plugins(stand_in.plugins(&scope));
            let gateway = builder.start().await;
            stand_in.connect(&gateway).await;
            let told = addresses(&gateway).await;
            gateway.stop().await;
            (stand_in.send_as_reads() - before, told.len())
        }
    };
    let metadata = "https://www.googleapis.com/auth/gmail.metadata";
    assert_eq!(
        reads(format!("openid {SEND_SCOPE} {metadata}")).await,
        (0, 1)
    );
    for scope in SCOPES {
        assert_eq!(
            reads(format!("{SEND_SCOPE} {scope}")).await,
            (1, 2),
            "{scope}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_it_is_nobodys() {
    let (stand_in, gateway) = start().await;
    let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM mailboxes WHERE plugin = 'plugin_b'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    let owner = Caller::owner(&gateway).await;
    let credential = format!("{}/credentials/{}", path(&gateway.app), CredentialId(id));
    owner.delete(&credential).await.success(200);
    assert_eq!(rows(&gateway).await, 0);
    is_refused(&gateway, SALES).await;
    assert_eq!(stand_in.sent().len(), 0);

    // Connected again under other addresses, and then deleted with its app.
    stand_in.set_send_as(&[(NEW, "accepted")]);
    stand_in.connect(&gateway).await;
    assert_eq!(addresses(&gateway).await, [ADDRESS, NEW]);
    is_refused(&gateway, SALES).await;
    stand_in.set_send_as(&[(SALES, "accepted"), (NEW, "accepted")]);
    stand_in.connect(&gateway).await;
    assert_eq!(addresses(&gateway).await, [ADDRESS, SALES, NEW]);
    let gone = Answer::to(owner.request(Method::DELETE, &path(&gateway.app))).await;
    gone.success(200);
    assert_eq!(rows(&gateway).await, 0);
    gateway.stop().await;
}

/// A message that waits goes by what holds when it is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_not_sent_as_an_address_that_is_gone() {
    let (stand_in, gateway) = start().await;
    stand_in.fail_once(crate::support::gmail_stand_in::refusal(
        429,
        "rateLimitExceeded",
        "Slow",
    ));
    let (status, answer) = send(&gateway, SALES).await;
    assert_eq!(status, 202, "{answer}");
    execute(&gateway, "DELETE FROM mailbox_addresses").await;
    gateway.clock.advance(chrono::TimeDelta::minutes(2));
    gateway
        .eventually("the end of the message", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    let (status, error) = gateway.logged().await.remove(0);
    assert_eq!(status, "failed_perm");
    assert_eq!(
        error.unwrap(),
        format!("5.7.1 The mailbox may no longer send as {SALES}")
    );
    assert_eq!(stand_in.sent().len(), 0);
    gateway.stop().await;
}

/// A reply is told with the address that the message was sent as, and what the mailbox sends to itself is none.
#[tokio::test(flavor = "multi_thread")]
async fn replies_are_to_the_address_that_was_used() {
    let stand_in = GmailStandIn::start().await;
    stand_in.set_send_as(&[(SALES, "accepted")]);
    let builder = Gateway::builder()
        .plugins(stand_in.plugins(FULL_SCOPE))
        .set("MAILBOXES__REPLIES_SECONDS", 1);
    let gateway = builder.start().await;
    execute(
        &gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    stand_in.connect(&gateway).await;
    let (status, answer) = send(&gateway, SALES).await;
    assert_eq!(status, 200, "{answer}");
    let original = answer["message_id"].as_str().unwrap();
    for (from, id) in [
        ("sales@STAND-IN.example", "<own@stand-in.example>"),
        ("bob@example.com", "<reply@example.com>"),
    ] {
        let headers = [
            ("From", from),
            ("Message-ID", id),
            ("In-Reply-To", original),
            ("Subject", "Re: s"),
        ];
        stand_in.receive(&headers, 4_000_000_000);
    }
    let told = crate::support::patience::found("reply", async || {
        let told: Vec<String> =
            sqlx::query_scalar("SELECT body FROM webhook_messages WHERE event = 'email.reply'")
                .fetch_all(&mut gateway.database().await)
                .await
                .unwrap();
        (!told.is_empty()).then_some(told)
    })
    .await;
    assert_eq!(told.len(), 1, "{told:?}");
    let told: Value = serde_json::from_str(&told[0]).unwrap();
    assert_eq!(told["data"]["from_address"], "bob@example.com");
    assert_eq!(told["data"]["to_address"], SALES);
    gateway.stop().await;
}

/// Google by SMTP, whose interface tells it too; and a server's own word for a sender that it refuses.
#[tokio::test(flavor = "multi_thread")]
async fn google_by_smtp_is_asked_by_the_interface() {
    let gmail = GmailStandIn::start().await;
    gmail.set_send_as(&[(SALES, "accepted")]);
    let smtp = StandIn::start().await;
    let mut plugins = smtp.plugins();
    let plugin = plugins["plugin_b"].as_table_mut().unwrap();
    for (name, value) in [
        ("kind", "google"),
        ("api_base_url", &gmail.url()),
        ("imap_host", ""),
    ] {
        plugin.insert(name.to_owned(), value.into());
    }
    let gateway = Gateway::builder().plugins(plugins).start().await;
    smtp.connect(&gateway).await;
    assert_eq!(addresses(&gateway).await, [ADDRESS, SALES]);
    let (status, answer) = send(&gateway, SALES).await;
    assert_eq!((status, &answer["from"]), (200, &json!(SALES)), "{answer}");
    // The envelope is the mailbox's own.
    let commands = format!("{:?}", smtp.submission.commands());
    assert!(
        commands.contains(&format!("MAIL FROM:<{ADDRESS}>")),
        "{commands}"
    );

    gmail.set_send_as(&[]);
    gateway.clock.advance(chrono::TimeDelta::minutes(2));
    let refusal = "550 5.7.60 SMTP; Client does not have permissions to send as this sender";
    smtp.submission.once(Stage::Mail, Reply::reply(refusal));
    let (status, answer) = send(&gateway, SALES).await;
    assert_eq!(
        (status, &answer["code"]),
        (502, &json!("provider_rejected")),
        "{answer}"
    );
    super::until_they_are(&gateway, &[ADDRESS]).await;
    is_refused(&gateway, SALES).await;
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(
        (status, &answer["from"]),
        (200, &json!(ADDRESS)),
        "{answer}"
    );
    gateway.stop().await;
}
