//! A provider that doesn't let a mailbox be read: it is asked less and less often, and the app is told.

use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_storage::mailboxes::due;
use mailgate_types::clock::Clock as _;
use serde_json::{Value, json};
use sqlx::PgConnection;
use tempfile::TempDir;

use super::scripted::{GREETING, Server, obedient};
use crate::portal::visitor::Visitor;
use crate::replies::events;
use crate::support::caller::{Caller, path};
use crate::support::gateway::Gateway;
use crate::support::stand_in::{self, ADDRESS, StandIn};

/// What the server answers to log-ins; `None`: it takes them.
type Words = Arc<Mutex<Option<&'static str>>>;

struct Provider {
    stand_in: StandIn,
    server: Server,
    words: Words,
    gateway: Gateway,
    _folder: TempDir,
}

impl Provider {
    async fn start(words: &'static str) -> Self {
        let words: Words = Arc::new(Mutex::new(Some(words)));
        let said = Arc::clone(&words);
        let server = Server::start(GREETING, move |line| {
            let words = *said.lock().unwrap();
            match words.filter(|_| line.starts_with("AUTHENTICATE")) {
                Some(words) => format!("{words}\r\n"),
                None => obedient(line),
            }
        })
        .await;
        let (stand_in, folder) = (StandIn::start().await, TempDir::new().unwrap());
        let plugins = server.plugins(&stand_in, folder.path());
        let gateway = Gateway::builder()
            .plugins(plugins)
            .set("MAILBOXES__REPLIES_SECONDS", 90)
            .start()
            .await;
        stand_in.connect(&gateway).await;
        sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
        Self {
            stand_in,
            server,
            words,
            gateway,
            _folder: folder,
        }
    }

    fn log_ins(&self) -> usize {
        let said = self.server.said();
        (said.iter().filter(|line| line.starts_with("AUTHENTICATE"))).count()
    }

    /// Moves the clock on to the next check, and waits for its end; returns how long it is then until the one after it.
    async fn check(&self) -> TimeDelta {
        let due = async || -> DateTime<Utc> {
            let sql = "SELECT replies_due_at FROM mailboxes WHERE plugin = 'plugin_b'";
            (sqlx::query_scalar(sql)
                .fetch_one(&mut self.gateway.database().await)
                .await)
                .unwrap()
        };
        let clock = &self.gateway.clock;
        let before = self.log_ins();
        let next = due().await;
        clock.advance((next - clock.now()).max(TimeDelta::zero()));
        let has_begun = async |_: &Gateway| self.log_ins() > before;
        self.gateway.eventually("a check", has_begun).await;
        // While it lasts, the mailbox is claimed for ten minutes.
        let wait = async || due().await - clock.now();
        let is_over = async |_: &Gateway| {
            let wait = wait().await;
            wait > TimeDelta::zero()
                && (wait - TimeDelta::minutes(10)).abs() > TimeDelta::minutes(1)
        };
        self.gateway.eventually("its end", is_over).await;
        wait().await
    }

    /// As if an hour had passed since the app was told of the mailbox.
    async fn forget_told(&self) {
        sqlx::query("UPDATE mailboxes SET reading_told_at = reading_told_at - interval '1 hour'")
            .execute(&mut self.gateway.database().await)
            .await
            .unwrap();
    }

    async fn view(&self) -> (bool, Value) {
        let caller = Caller::owner(&self.gateway).await;
        let detail = caller.get(&path(&self.gateway.app)).await.success(200);
        let users = detail["users"].as_array().unwrap();
        let mailbox = users.iter().find(|user| user["email"] == ADDRESS).unwrap();
        let tracked = mailbox["reply_tracking"].as_bool().unwrap();
        (tracked, mailbox["reply_tracking_error"].clone())
    }
}

/// What a server says, what is shown of it, and whether one such answer is enough to tell the app.
const REFUSED: [(&str, &str, bool); 7] = [
    (
        "{tag} NO [AUTHENTICATIONFAILED] Invalid credentials",
        "Invalid credentials",
        true,
    ),
    (
        "{tag} NO AUTHENTICATE failed.",
        "AUTHENTICATE failed.",
        false,
    ),
    (
        "{tag} NO [CANNOT] Unsupported mechanism",
        "Unsupported mechanism",
        false,
    ),
    ("{tag} BAD Unknown command", "Unknown command", false),
    (
        "{tag} NO [WEBALERT https://x.example/] Web login required.",
        "Web login required.",
        false,
    ),
    (
        "{tag} NO [AUTHORIZATIONFAILED] Not yours",
        "Not yours",
        true,
    ),
    (
        "{tag} NO [ALERT] Your account is not enabled for IMAP use.",
        "Your account is not enabled for IMAP use.",
        true,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_log_in_is_tried_less_and_less_and_told_once() {
    let provider = Provider::start(REFUSED[0].0).await;
    let gateway = &provider.gateway;
    let mut waits = Vec::new();
    let end = gateway.clock.now() + TimeDelta::days(4);
    while gateway.clock.now() < end {
        waits.push(provider.check().await);
        assert!(waits.len() < 15, "{waits:?}");
    }
    assert!(waits[0] > TimeDelta::minutes(7), "{waits:?}");
    assert!(
        waits.is_sorted_by(|one, next| *one <= *next + TimeDelta::minutes(1)),
        "{waits:?}"
    );
    let longest = waits[waits.len() - 1];
    assert!(
        longest > TimeDelta::hours(23) && longest <= TimeDelta::days(1),
        "{waits:?}"
    );
    let (tracked, words) = provider.view().await;
    assert!(
        !tracked && words.as_str().unwrap().contains("Invalid credentials"),
        "{words}"
    );
    let told = events(gateway, "mailbox.degraded").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["data"]["email"], ADDRESS);
    assert_eq!(told[0]["data"]["error"], words);

    // It sends all the same, and once it is read again, all is as before.
    let (status, answer) = stand_in::send(gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    *provider.words.lock().unwrap() = None;
    assert!(provider.check().await < TimeDelta::minutes(2));
    assert_eq!(provider.view().await, (true, Value::Null));
    let told = events(gateway, "mailbox.recovered").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["data"]["email"], ADDRESS);
    provider.check().await;
    // A refusal after that is news, but not at once: a server may hesitate for days.
    *provider.words.lock().unwrap() = Some(REFUSED[5].0);
    let wait = provider.check().await;
    assert!(
        wait > TimeDelta::minutes(7) && wait <= TimeDelta::hours(1),
        "{wait}"
    );
    assert!(!provider.view().await.0);
    assert_eq!(events(gateway, "mailbox.degraded").await.len(), 1);
    provider.forget_told().await;
    provider.check().await;
    assert_eq!(events(gateway, "mailbox.degraded").await.len(), 2);
    // Connecting it again is a new beginning.
    provider.stand_in.connect(gateway).await;
    let is_told = async |gateway: &Gateway| events(gateway, "mailbox.degraded").await.len() == 3;
    gateway.eventually("it is told again", is_told).await;
    assert_eq!(events(gateway, "mailbox.recovered").await.len(), 1);
    provider.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_a_new_connection_has_overtaken_changes_nothing() {
    let (_stand_in, gateway) = StandIn::with_gateway().await;
    gateway.stop_daemon().await;
    let mut database = gateway.database().await;
    let now = gateway.clock.now();
    let row = async |database: &mut PgConnection| -> Value {
        let sql = "SELECT to_jsonb(mailboxes) FROM mailboxes WHERE plugin = 'plugin_b'";
        sqlx::query_scalar(sql).fetch_one(database).await.unwrap()
    };
    let sql = "UPDATE mailboxes SET replies_due_at = $1, replies_cursor = 'old' WHERE plugin = 'plugin_b'";
    let due = sqlx::query(sql).bind(now);
    due.execute(&mut database).await.unwrap();
    let lease = now + TimeDelta::minutes(10);
    let looks = due::claim_reply_looks(&mut database, now, lease, 10).await;
    let look = (looks.unwrap().into_iter())
        .find(|look| look.mailbox.email == ADDRESS)
        .unwrap();
    let outcome = async |database: &mut PgConnection| {
        due::store_reply_cursor(database, &look, None).await?;
        due::note_reading(database, &look, Some("no"), now).await?;
        let told = due::tell_reading(database, &look, true, now, now).await?;
        due::put_off_reply_look(database, &look, Some(now + TimeDelta::days(1))).await?;
        Ok::<bool, sqlx::Error>(told)
    };
    // As a new connection has it, and another's claim.
    let due = sqlx::query(sql).bind(now + TimeDelta::seconds(1));
    due.execute(&mut database).await.unwrap();
    let connected = row(&mut database).await;
    assert!(!outcome(&mut database).await.unwrap());
    assert_eq!(row(&mut database).await, connected);
    // Of its own claim everything is kept.
    let sql = "UPDATE mailboxes SET replies_due_at = $1 WHERE plugin = 'plugin_b'";
    let claimed = sqlx::query(sql).bind(look.lease_until);
    claimed.execute(&mut database).await.unwrap();
    assert!(outcome(&mut database).await.unwrap());
    let noted = row(&mut database).await;
    for (field, value) in [
        ("replies_cursor", Value::Null),
        ("reading_refused", "no".into()),
        ("is_degraded", true.into()),
    ] {
        assert_eq!(noted[field], value, "{noted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_a_refusal_and_what_passes() {
    let provider = Provider::start(REFUSED[0].0).await;
    let gateway = &provider.gateway;
    let mut told = 0;
    for (said, words, is_sure) in REFUSED {
        provider.forget_told().await;
        *provider.words.lock().unwrap() = Some(said);
        assert!(provider.check().await > TimeDelta::minutes(7), "{said}");
        let (tracked, error) = provider.view().await;
        assert!(
            !tracked && error.as_str().unwrap().ends_with(words),
            "{said}: {error}"
        );
        told += 1;
        if !is_sure {
            let degraded = events(gateway, "mailbox.degraded").await;
            assert_eq!(degraded.len(), told - 1, "{said}");
            provider.check().await;
        }
        let degraded = events(gateway, "mailbox.degraded").await;
        assert_eq!(degraded.len(), told, "{said}");
        // Days pass.
        let visitor = Visitor::signed_in(gateway).await;
        let page = visitor.get("/portal/mailboxes").await.text;
        assert!(page.contains("Refused"), "{page}");
        let id = events(gateway, "mailbox.degraded").await.pop().unwrap()["data"]["credential_id"]
            .clone();
        let page = visitor
            .get(&format!("/portal/mailboxes/{}", id.as_str().unwrap()))
            .await
            .text;
        assert!(page.contains(words), "{page}");
        provider.forget_told().await;
        *provider.words.lock().unwrap() = None;
        provider.check().await;
        assert_eq!(provider.view().await, (true, json!(null)), "{said}");
        let recovered = events(gateway, "mailbox.recovered").await;
        assert_eq!(recovered.len(), told, "{said}");
    }
    for said in [
        "{tag} NO [UNAVAILABLE] Try later",
        "{tag} NO [LIMIT] Too many",
        "{tag} NO [INUSE] Later",
        "{tag} NO [ALERT] Too many simultaneous connections",
        "* BYE [AUTHENTICATIONFAILED] Bye",
        "* BYE Shutting down",
    ] {
        *provider.words.lock().unwrap() = Some(said);
        let wait = provider.check().await;
        assert!(
            wait > TimeDelta::minutes(7) && wait < TimeDelta::minutes(8),
            "{said}: {wait}"
        );
        assert_eq!(provider.view().await, (true, json!(null)), "{said}");
    }
    assert_eq!(
        events(gateway, "mailbox.degraded").await.len(),
        REFUSED.len()
    );
    provider.gateway.stop().await;
}
