//! A key that is deleted, restricted or has expired stops working immediately: by REST, on SMTP sessions that are
//! open, and at another process that remembers it.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use mailgate_types::moment::iso8601;
use std::sync::Arc;

use super::*;
use crate::support::stand_in::{ADDRESS, StandIn};

/// Two processes that have both sent with an additional key by REST, and have a session with it.
struct Two {
    _stand_in: StandIn,
    first: Gateway,
    second: Gateway,
    id: String,
    key: String,
}

impl Two {
    async fn start(fields: &Value) -> Self {
        let stand_in = StandIn::start().await;
        let first = Gateway::builder().plugins(stand_in.plugins()).start().await;
        stand_in.connect(&first).await;
        let second = first
            .replica()
            .plugins(stand_in.plugins())
            .clock(Arc::clone(&first.clock) as _)
            .start()
            .await;
        let mut fields = fields.clone();
        fields["name"] = json!("Other");
        let created = create(&first, &fields).await;
        Self {
            _stand_in: stand_in,
            id: text(&created, "id").to_owned(),
            key: text(&created, "send_key").to_owned(),
            first,
            second,
        }
    }

    async fn post(&self, gateway: &Gateway) -> Answer {
        let further = json!({ "pk": self.first.app.pushable_key.expose(), "plugin": "plugin_b" });
        send_with(gateway, &self.key, &further).await
    }

    /// Everybody remembers the key then. Each session has a message under way too.
    async fn sessions(&self) -> Vec<SmtpClient> {
        let mut open = Vec::new();
        for gateway in [&self.first, &self.second] {
            for _ in 0..2 {
                self.post(gateway).await.success(200);
                let mut client = session(gateway, &self.first.app.slug, &self.key).await;
                let reply = submit(&mut client, ADDRESS).await;
                assert!(reply.starts_with("250 2.0.0"), "{reply}");
                open.push(client);
            }
            open.last_mut().unwrap().begin_data("bob@example.com").await;
        }
        open
    }

    async fn nothing_works(&self, open: Vec<SmtpClient>) {
        for (index, mut client) in open.into_iter().enumerate() {
            let content = format!("From: {ADDRESS}\r\nTo: bob@example.com\r\n\r\nb");
            if index % 2 == 0 {
                client.begin_data("bob@example.com").await;
            }
            client.write(content.as_bytes()).await;
            client.write(b"\r\n.\r\n").await;
            assert_eq!(client.reply().await, AUTHENTICATION_FAILED, "{index}");
            assert_eq!(client.next_reply().await, None);
        }
        for gateway in [&self.first, &self.second] {
            assert_eq!(
                self.post(gateway).await.problem(),
                (401, "invalid_send_key")
            );
            let mut client = SmtpClient::encrypted(gateway).await;
            let reply = authenticate(&mut client, &self.first.app.slug, &self.key).await;
            assert_eq!(reply, AUTHENTICATION_FAILED);
            // Nobody hears what is wrong with a request either.
            let body = json!({ "pk": 7 });
            let request = anonymous(gateway, Method::POST, "/send").header("x-send-key", &self.key);
            let answer = Answer::to(request.json(&body)).await;
            assert_eq!(answer.problem(), (401, "invalid_send_key"));
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", keys_path(&self.first), self.id)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_key_stops_working_everywhere() {
    let two = Two::start(&json!({})).await;
    let open = two.sessions().await;
    let owner = Caller::owner(&two.first).await;
    owner.delete(&two.path()).await.success(204);
    two.nothing_works(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_stops_working_everywhere() {
    let clock = chrono::Utc::now();
    let two = Two::start(&json!({ "expires_at": iso8601(clock + TimeDelta::hours(1)) })).await;
    let open = two.sessions().await;
    two.first.clock.advance(TimeDelta::hours(2));
    two.nothing_works(open).await;
    let now = two.first.clock.now();
    let owner = Caller::owner(&two.first).await;
    let later = json!({ "expires_at": iso8601(now + TimeDelta::hours(1)) });
    owner.put(&two.path(), &later).await.success(200);
    for gateway in [&two.first, &two.second] {
        two.post(gateway).await.success(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_be_used_from_here_any_more_stops_working_everywhere() {
    let two = Two::start(&json!({})).await;
    let open = two.sessions().await;
    let owner = Caller::owner(&two.first).await;
    let elsewhere = json!({ "allowed_addresses": ["192.0.2.0/24"] });
    owner.put(&two.path(), &elsewhere).await.success(200);
    two.nothing_works(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_restricted_to_another_mailbox_counts_at_the_next_message() {
    let two = Two::start(&json!({})).await;
    let mut open = two.sessions().await;
    let owner = Caller::owner(&two.first).await;
    let other = json!({ "credential_ids": [two.first.mailbox.credential.to_string()] });
    owner.put(&two.path(), &other).await.success(200);
    for (index, client) in open.iter_mut().enumerate() {
        if index % 2 == 0 {
            client.begin_data("bob@example.com").await;
        }
        let content = format!("From: {ADDRESS}\r\nTo: bob@example.com\r\n\r\nb\r\n.\r\n");
        client.write(content.as_bytes()).await;
        let reply = client.reply().await;
        assert_eq!(reply, "550 5.7.1 From address not authorized");
    }
    for gateway in [&two.first, &two.second] {
        assert_eq!(
            two.post(gateway).await.problem(),
            (403, "mailbox_not_allowed")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_message_needs_its_key_at_its_time() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let keys = keys_path(&gateway);
    let mut created = Vec::new();
    for name in ["kept", "deleted", "expired"] {
        let expires_at = match name {
            "expired" => iso8601(gateway.clock.now() + TimeDelta::minutes(30)),
            _ => String::new(),
        };
        let fields = json!({ "name": name, "expires_at": expires_at });
        let key = create(&gateway, &fields).await;
        let at = iso8601(gateway.clock.now() + TimeDelta::hours(1));
        let further = json!({ "send_at": at, "subject": name });
        let answer = send_with(&gateway, text(&key, "send_key"), &further).await;
        answer.success(202);
        created.push(text(&key, "id").to_owned());
    }
    let deleted = owner.delete(&format!("{keys}/{}", created[1])).await;
    deleted.success(204);
    gateway.clock.advance(TimeDelta::hours(2));
    let outcomes = async |gateway: &Gateway| -> Vec<(String, String)> {
        sqlx::query_as("SELECT subject, status FROM email_logs ORDER BY subject")
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap()
    };
    let all = async |gateway: &Gateway| outcomes(gateway).await.len() == 3;
    gateway.eventually("all have left or failed", all).await;
    let expected = [
        ("deleted", "failed_perm"),
        ("expired", "failed_perm"),
        ("kept", "sent"),
    ];
    let expected = expected.map(|(subject, status)| (subject.to_owned(), status.to_owned()));
    assert_eq!(outcomes(&gateway).await, expected);
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    gateway.stop().await;
}
