//! What a process remembers of an app between two messages is worth nothing once another process has changed it.

use mailgate_domain::mailboxes::Connected;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Answer, Caller, anonymous, path, text};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::{ADDRESS, StandIn};

/// Two processes that know the demo app and its mailbox of `plugin_b`, at one provider.
struct Two {
    stand_in: StandIn,
    mailbox: Connected,
    first: Gateway,
    second: Gateway,
}

impl Two {
    async fn start() -> Self {
        let stand_in = StandIn::start().await;
        let first = Gateway::builder().plugins(stand_in.plugins()).start().await;
        let mailbox = stand_in.connect(&first).await;
        let second = first.replica().plugins(stand_in.plugins()).start().await;
        let two = Self {
            stand_in,
            mailbox,
            first,
            second,
        };
        two.warm().await;
        two
    }

    /// Each has sent two messages by each door: what the first of them needed is remembered for the second.
    async fn warm(&self) {
        for gateway in [&self.first, &self.second] {
            for _ in 0..2 {
                self.send(gateway).await.success(200);
                let reply = self.session(gateway).await.deliver().await;
                assert!(reply.starts_with("250 2.0.0"), "{reply}");
            }
        }
    }

    fn body(&self) -> Value {
        json!({
            "pk": self.first.app.pushable_key.expose(),
            "to": "bob@example.com", "subject": "s", "body": "b", "plugin": "plugin_b",
        })
    }

    /// `POST /send` at one of them, with the key that the app began with.
    async fn post(&self, gateway: &Gateway, body: &Value, key: Option<&str>) -> Answer {
        let mut request = anonymous(gateway, Method::POST, "/send")
            .header("x-send-key", self.first.app.send_key.expose());
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        Answer::to(request.json(body)).await
    }

    async fn send(&self, gateway: &Gateway) -> Answer {
        self.post(gateway, &self.body(), None).await
    }

    async fn session(&self, gateway: &Gateway) -> Session {
        let (slug, key) = (&self.first.app.slug, self.first.app.send_key.expose());
        Session(super::session(gateway, slug, key).await)
    }

    async fn execute(&self, statement: &'static str) {
        let done = sqlx::query(statement)
            .execute(&mut self.first.database().await)
            .await
            .unwrap();
        assert_ne!(done.rows_affected(), 0, "{statement}");
    }

    fn arrived(&self) -> usize {
        self.stand_in.submission.messages().len()
    }
}

struct Session(SmtpClient);

impl Session {
    async fn deliver(&mut self) -> String {
        let content = format!("From: {ADDRESS}\r\nTo: bob@example.com\r\n\r\nb\r\n");
        self.0.submit("bob@example.com", content.as_bytes()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_key_counts_at_once_everywhere() {
    let two = Two::start().await;
    let first = two.post(&two.second, &two.body(), Some("order 17")).await;
    first.success(200);
    let mut open = two.session(&two.second).await;
    let (sent, caller) = (two.arrived(), Caller::owner(&two.first).await);
    let reset = format!("{}/reset-send-key", path(&two.first.app));
    caller.reset(&reset).await.success(200);
    let refused = (401, "invalid_send_key");
    assert_eq!(two.send(&two.second).await.problem(), refused);
    let wrong = two.post(&two.second, &json!({ "pk": 7 }), None).await;
    assert_eq!(wrong.problem(), refused, "nobody hears what is wrong");
    let again = two.post(&two.second, &two.body(), Some("order 17")).await;
    assert_eq!(again.problem(), refused, "nor what became of a message");
    assert_eq!(open.deliver().await, "535 5.7.8 Authentication failed");
    assert_eq!(two.arrived(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_twin_is_no_answer_to_a_key_that_opens_nothing() {
    let two = Two::start().await;
    let sent = two.arrived();
    let caller = Caller::owner(&two.first).await;
    // The second process knows the key, but not the message: it tries to open it, and hears that all has changed.
    let reset = format!("{}/reset-send-key", path(&two.first.app));
    let new = caller.reset(&reset).await.success(200);
    let refused = two.post(&two.second, &two.body(), Some("order 18")).await;
    assert_eq!(refused.problem(), (401, "invalid_send_key"));
    // What it tried left no key behind: the same one stands for a message now.
    let request = anonymous(&two.second, Method::POST, "/send")
        .header("x-send-key", text(&new, "send_key"))
        .header("idempotency-key", "order 18");
    Answer::to(request.json(&two.body())).await.success(200);
    assert_eq!(two.arrived(), sent + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_opening_leaves_its_key_free() {
    let two = Two::start().await;
    let sent = two.arrived();
    two.execute("UPDATE subscribers SET subscription_status = 'unpaid'")
        .await;
    let refused = two.post(&two.second, &two.body(), Some("order 19")).await;
    assert_eq!(refused.problem(), (402, "subscription_blocked"));
    two.execute("UPDATE subscribers SET subscription_status = 'active'")
        .await;
    let body = two.body();
    let (one, other) = tokio::join!(
        two.post(&two.first, &body, Some("order 19")),
        two.post(&two.second, &body, Some("order 19")),
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert!(
        matches!(statuses, [200, 200 | 409]),
        "{} {}",
        one.body,
        other.body
    );
    assert_eq!(two.arrived(), sent + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_subscription_counts_at_once_everywhere() {
    let two = Two::start().await;
    let sent = two.arrived();
    let mut open = two.session(&two.second).await;
    two.execute("UPDATE subscribers SET subscription_status = 'unpaid'")
        .await;
    let refused = two.send(&two.second).await;
    assert_eq!(refused.problem(), (402, "subscription_blocked"));
    let reply = open.deliver().await;
    assert!(reply.starts_with("451 4.7.1"), "{reply}");
    assert_eq!(two.arrived(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_mailbox_counts_at_once_everywhere() {
    let two = Two::start().await;
    let sent = two.arrived();
    let mut open = two.session(&two.second).await;
    let (app, id) = (path(&two.first.app), two.mailbox.credential);
    let disconnect = format!("{app}/credentials/{id}");
    let caller = Caller::owner(&two.first).await;
    caller.delete(&disconnect).await.success(200);
    let refused = two.send(&two.second).await;
    assert_eq!(refused.problem(), (422, "no_mailbox"));
    let reply = open.deliver().await;
    assert!(reply.starts_with("550 5.7.1"), "{reply}");
    assert_eq!(two.arrived(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_comes_first_is_taken_at_once() {
    let two = Two::start().await;
    // Where nothing says which, the one that was connected first sends: the sandbox's, whom only the first knows.
    let mut unnamed = two.body();
    unnamed.as_object_mut().unwrap().remove("plugin");
    for _ in 0..2 {
        let sent = two.post(&two.first, &unnamed, None).await.success(200);
        assert_eq!(sent["plugin"], "plugin_a");
    }
    two.execute(
        "UPDATE mailboxes SET connected_at = connected_at - interval '1 day' WHERE plugin = 'plugin_b'",
    )
    .await;
    let sent = two.post(&two.first, &unnamed, None).await.success(200);
    assert_eq!(sent["plugin"], "plugin_b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_pushable_key_counts_at_once_everywhere() {
    let two = Two::start().await;
    let caller = Caller::owner(&two.first).await;
    let reset = format!("{}/reset-pushable-key", path(&two.first.app));
    let renewed = caller.reset(&reset).await.success(200);
    let sent = two.arrived();
    let refused = two.send(&two.second).await;
    assert_eq!(refused.problem(), (403, "pk_mismatch"));
    assert_eq!(two.arrived(), sent);
    let mut body = two.body();
    body["pk"] = renewed["pushable_key"].clone();
    two.post(&two.second, &body, None).await.success(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_is_gone_is_gone_at_once_everywhere() {
    let two = Two::start().await;
    let mut open = two.session(&two.second).await;
    open.0.begin_data("bob@example.com").await;
    let caller = Caller::owner(&two.first).await;
    caller.delete(&path(&two.first.app)).await.success(200);
    let sent = two.arrived();
    let refused = two.send(&two.second).await;
    assert_eq!(refused.problem(), (401, "invalid_send_key"));
    open.0
        .write(format!("From: {ADDRESS}\r\n\r\nb\r\n.\r\n").as_bytes())
        .await;
    assert_eq!(open.0.reply().await, "535 5.7.8 Authentication failed");
    assert_eq!(two.arrived(), sent);
}

/// Nobody can read these tables meanwhile: an ordinary message needs none of them.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_is_not_looked_up() {
    let two = Two::start().await;
    let mut open = two.session(&two.second).await;
    let mut database = two.first.database().await;
    let mut locked = sqlx::Connection::begin(&mut database).await.unwrap();
    sqlx::query(
        "LOCK TABLE subscribers, mailboxes, mailbox_addresses, end_users IN ACCESS EXCLUSIVE MODE",
    )
    .execute(&mut *locked)
    .await
    .unwrap();
    two.send(&two.second).await.success(200);
    let reply = open.deliver().await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    locked.rollback().await.unwrap();
    let log = two.first.logged().await;
    assert_eq!(log.len(), two.arrived());
    assert!(log.iter().all(|(status, _)| status == "sent"), "{log:?}");
    assert_eq!(two.first.spooled().await, 0);
}
