//! Providers of kind generic that say in their own ways whose account it is, and what was granted.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use toml::Table;

use super::{Visit, complete, link, rows};
use crate::peers::Provider;
use crate::peers_end_to_end::{Encryption, plugins};
use crate::support::gateway::Gateway;
use crate::support::ports;
use crate::support::stand_in::StandIn;
use crate::support::stand_in::oauth::Answer;

const ISSUER: &str = "https://login.stand-in.example/";

/// A stand-in at `plugin_b` with these settings beside its own.
async fn start(settings: &[(&str, Value)]) -> (StandIn, Gateway) {
    let stand_in = StandIn::start().await;
    let mut plugins = stand_in.plugins();
    let plugin = plugins["plugin_b"].as_table_mut().unwrap();
    for (name, value) in settings {
        let value: Table = toml::from_str(&format!("x = {value}")).unwrap();
        plugin.insert((*name).to_owned(), value["x"].clone());
    }
    let gateway = Gateway::builder().plugins(plugins).start().await;
    (stand_in, gateway)
}

async fn come_back(gateway: &Gateway, begun: &Visit) -> Visit {
    let state = begun.parameter("state").unwrap();
    let base = &gateway.daemon.base_url;
    let url = format!("{base}/oauth/callback?state={state}&code=c");
    complete(url.parse().unwrap()).await
}

async fn press(gateway: &Gateway) -> Visit {
    Visit::press(link(gateway, &gateway.app, &[("plugin", "plugin_b")])).await
}

async fn has(gateway: &Gateway, email: &str) -> bool {
    let rows = rows(gateway, &gateway.app).await;
    rows.iter().any(|row| row.email == email)
}

// SocialiteProviders/Yandex#1, grafana/grafana#15311: the address is in another field. And the token in the query.
#[tokio::test(flavor = "multi_thread")]
async fn the_address_is_found_where_the_settings_say() {
    for (field, auth, account, shown) in [
        (
            "default_email",
            "bearer",
            json!({ "default_email": "ada@y.example", "id": 7 }),
            "Bearer a&b",
        ),
        (
            "default_email",
            "query",
            json!({ "default_email": " ada@y.example " }),
            "?access_token=a%26b",
        ),
        (
            "data.emails.0",
            "query",
            json!({ "data": { "emails": ["ada@y.example"] } }),
            "?access_token=a%26b",
        ),
        (
            "",
            "query",
            json!({ "email": "\tada@y.example\n" }),
            "?access_token=a%26b",
        ),
        (
            "",
            "bearer",
            json!({ "email": "", "mail": "ada@y.example" }),
            "Bearer a&b",
        ),
        (
            "",
            "bearer",
            json!({ "email": "ada@y.example", "error": null }),
            "Bearer a&b",
        ),
    ] {
        let settings = [
            ("email_field", json!(field)),
            ("userinfo_auth", json!(auth)),
        ];
        let (stand_in, gateway) = start(&settings).await;
        let tokens = json!({ "access_token": "a&b", "refresh_token": "r" });
        stand_in.tokens.queue(Answer::json(200, &tokens));
        stand_in.tokens.queue_account(Answer::json(200, &account));
        let page = come_back(&gateway, &press(&gateway).await).await;
        assert_eq!(page.status, 200, "{account}: {}", page.body);
        assert!(has(&gateway, "ada@y.example").await, "{account}");
        assert_eq!(stand_in.tokens.shown(), [shown]);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_lacks_is_told() {
    let (stand_in, gateway) = start(&[("email_field", json!("default_email"))]).await;
    for (account, word) in [
        (
            json!({ "email": "ada@y.example", "sub": "s" }),
            "provider_error",
        ),
        (
            json!({ "default_email": { "value": "ada@y.example" } }),
            "provider_error",
        ),
        (json!({}), "provider_error"),
        (json!(["ada@y.example"]), "provider_error"),
        (json!({ "default_email": "ada" }), "no_address"),
        (
            json!({ "default_email": "ada@y.example", "email_verified": "false" }),
            "unverified_address",
        ),
        (json!({ "error": "invalid_token" }), "invalid_token"),
    ] {
        stand_in.tokens.queue_account(Answer::json(200, &account));
        let page = come_back(&gateway, &press(&gateway).await).await;
        let status = if matches!(word, "no_address" | "unverified_address") {
            400
        } else {
            502
        };
        page.is_failure(status, word);
    }
    // And so it is logged: names, and nothing that stands there.
    let account = json!({ "email": "ada@y.example", "sub": "s" });
    stand_in.tokens.queue_account(Answer::json(200, &account));
    let new = mailgate_domain::mailboxes::NewConnection {
        app: gateway.app.id,
        user_id: None,
        plugin: mailgate_types::plugin::Plugin::B,
        code: "c",
        redirect_uri: "http://127.0.0.1:9/oauth/callback",
        code_verifier: "v",
    };
    let error = gateway.daemon.mailboxes.connect(&new).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.ends_with("it has no default_email; its fields: email, sub"),
        "{error}"
    );
    gateway.stop().await;
}

// ramosbugs/oauth2-rs#86: granted scopes in a list; and with commas, in another case, as URIs.
#[tokio::test(flavor = "multi_thread")]
async fn granted_scopes_are_known_in_every_spelling() {
    let scopes = json!([
        "openid",
        "email",
        "Mail.Send",
        "https://x.example/auth/imap"
    ]);
    let (stand_in, gateway) = start(&[("scopes", scopes)]).await;
    for (scope, is_enough) in [
        (json!("Mail.Send https://x.example/auth/imap"), true),
        (json!("openid,Mail.Send,https://x.example/auth/imap"), true),
        (json!(["mail.send", "IMAP"]), true),
        (json!("https://x.example/auth/mail.send, imap"), true),
        (json!(["openid email mail.send,imap"]), true),
        (json!(null), true),
        (json!("Mail.Send"), false),
        (json!("Mail.SendAs,imap"), false),
        (json!(["mail.send", "https://y.example/auth/imap"]), false),
        (json!([]), false),
    ] {
        let tokens = json!({ "access_token": "a", "refresh_token": "r", "scope": scope });
        stand_in.tokens.queue(Answer::json(200, &tokens));
        let page = come_back(&gateway, &press(&gateway).await).await;
        if is_enough {
            assert_eq!(page.status, 200, "{scope}: {}", page.body);
        } else {
            page.is_failure(400, "insufficient_scope");
        }
    }
    gateway.stop().await;
}

struct Key {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random).unwrap();
        Self { id, pair }
    }

    fn public(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|it| URL_SAFE_NO_PAD.encode(it));
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": self.id, "x": x, "y": y })
    }

    fn sign(&self, algorithm: &str, claims: &Value) -> String {
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let header = json!({ "alg": algorithm, "kid": self.id });
        let message = format!("{}.{}", part(&header), part(claims));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), message.as_bytes())
            .unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Settings by which the address is in the ID token.
fn by_id_token(stand_in: &StandIn) -> Table {
    let mut plugins = stand_in.plugins();
    let plugin = plugins["plugin_b"].as_table_mut().unwrap();
    let jwks_url = format!("{}/jwks", stand_in.tokens.url());
    for (name, value) in [
        ("userinfo_url", ""),
        ("jwks_url", &jwks_url),
        ("issuer", ISSUER),
    ] {
        plugin.insert(name.to_owned(), value.into());
    }
    plugins
}

async fn start_by_id_token() -> (StandIn, Gateway) {
    let stand_in = StandIn::start().await;
    let plugins = by_id_token(&stand_in);
    let gateway = Gateway::builder().plugins(plugins).start().await;
    (stand_in, gateway)
}

/// A user whose ID token this key has signed, with these claims beside the usual ones.
async fn connect(
    stand_in: &StandIn,
    gateway: &Gateway,
    signer: &Key,
    algorithm: &str,
    changed: &Value,
) -> Visit {
    let now = gateway.clock.now().timestamp();
    let begun = press(gateway).await;
    let mut claims = json!({
        "iss": ISSUER, "aud": "stand-in", "sub": "1", "iat": now, "exp": now + 300,
        "nonce": begun.parameter("nonce"), "email": "ada@id.example", "email_verified": true,
    });
    let changed = changed.as_object().unwrap().clone();
    claims.as_object_mut().unwrap().extend(changed);
    let token = signer.sign(algorithm, &claims);
    let tokens = json!({ "access_token": "a", "refresh_token": "r", "id_token": token });
    stand_in.tokens.queue(Answer::json(200, &tokens));
    come_back(gateway, &begun).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_counts_only_if_it_was_signed_for_this_sign_in() {
    let started = Instant::now();
    let (stand_in, gateway) = start_by_id_token().await;
    let (key, stranger) = (Key::new("one"), Key::new("one"));
    stand_in.tokens.publish(&[key.public()]);
    let now = gateway.clock.now().timestamp();
    let connect = async |signer: &Key, algorithm: &str, changed: Value| {
        connect(&stand_in, &gateway, signer, algorithm, &changed).await
    };
    for (signer, algorithm, changed, word) in [
        (&stranger, "ES256", json!({}), "provider_error"),
        (&key, "none", json!({}), "provider_error"),
        (&key, "HS256", json!({}), "provider_error"),
        (
            &key,
            "ES256",
            json!({ "iss": "https://login.stand-in.example" }),
            "provider_error",
        ),
        (&key, "ES256", json!({ "aud": "another" }), "provider_error"),
        (&key, "ES256", json!({ "exp": now - 120 }), "provider_error"),
        (
            &key,
            "ES256",
            json!({ "nonce": "another" }),
            "provider_error",
        ),
        (&key, "ES256", json!({ "nonce": null }), "provider_error"),
        (&key, "ES256", json!({ "email": null }), "provider_error"),
        (
            &key,
            "ES256",
            json!({ "email_verified": false }),
            "unverified_address",
        ),
    ] {
        let page = connect(signer, algorithm, changed.clone()).await;
        let status = if word == "provider_error" { 502 } else { 400 };
        assert_eq!(page.status, status, "{changed}: {}", page.body);
        page.is_failure(status, word);
    }
    assert!(!has(&gateway, "ada@id.example").await);
    let page = connect(&key, "ES256", json!({})).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(has(&gateway, "ada@id.example").await);
    assert!(stand_in.tokens.shown().is_empty(), "nobody else was asked");

    // A new key is found a minute later, and the keys are fetched once a minute at most, however long this takes.
    let next = Key::new("two");
    stand_in.tokens.publish(&[next.public()]);
    gateway.clock.advance(TimeDelta::seconds(61));
    for _ in 0..3 {
        let page = connect(&next, "ES256", json!({})).await;
        assert_eq!(page.status, 200, "{}", page.body);
    }
    let page = connect(&key, "ES256", json!({})).await;
    assert_eq!(
        page.status, 502,
        "a key that is withdrawn is none: {}",
        page.body
    );
    let most = 2 + started.elapsed().as_secs() / 60;
    let fetches = u64::try_from(stand_in.tokens.fetches()).unwrap();
    assert!((2..=most).contains(&fetches), "{fetches} of {most}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn published_keys_are_fetched_again() {
    let started = Instant::now();
    let (stand_in, gateway) = start_by_id_token().await;
    let connect =
        async |signer: &Key| connect(&stand_in, &gateway, signer, "ES256", &json!({})).await;
    let first = Key::new("one");
    stand_in.tokens.publish(&[first.public()]);
    assert_eq!(connect(&first).await.status, 200);
    // One that has kept its name is found too.
    let second = Key::new("one");
    stand_in.tokens.publish(&[second.public()]);
    let page = connect(&second).await;
    assert_eq!(page.status, 502, "{}", page.body);
    gateway.clock.advance(TimeDelta::seconds(61));
    let page = connect(&second).await;
    assert_eq!(page.status, 200, "{}", page.body);

    // Keys that can't be fetched again are used for another day, and what fails is asked for once a minute.
    stand_in.tokens.publish(&[]);
    let before = stand_in.tokens.fetches();
    for (hours, status, fetches) in [
        (24, 200, 1),
        (0, 200, 1),
        (1, 200, 2),
        (23, 502, 3),
        (0, 502, 3),
    ] {
        gateway.clock.advance(TimeDelta::hours(hours));
        let page = connect(&second).await;
        assert_eq!(page.status, status, "{hours}: {}", page.body);
        let since = stand_in.tokens.fetches() - before;
        let most = fetches + usize::try_from(started.elapsed().as_secs() / 60).unwrap();
        assert!(
            (fetches..=most).contains(&since),
            "{hours}: {since} of {most}"
        );
    }
    stand_in.tokens.publish(&[second.public()]);
    gateway.clock.advance(TimeDelta::seconds(61));
    let page = connect(&second).await;
    assert_eq!(page.status, 200, "{}", page.body);
    gateway.stop().await;
}

/// oidc-provider signs with RS256; its ID token has no address, so that the account's name stands for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_providers_id_token_is_taken() {
    let [port] = ports::reserve();
    let provider = Provider::start(&format!("http://127.0.0.1:{port}/oauth/callback")).await;
    let mut settings = plugins(&provider, Encryption::StartTls);
    let plugin = settings["plugin_b"].as_table_mut().unwrap();
    for (name, value) in [
        ("userinfo_url", String::new()),
        ("jwks_url", format!("{}/jwks", provider.issuer)),
        ("issuer", provider.issuer.clone()),
        ("email_field", "sub".to_owned()),
    ] {
        plugin.insert(name.to_owned(), value.into());
    }
    let gateway = Gateway::builder()
        .plugins(settings)
        .set("HTTP__LISTEN", format!("127.0.0.1:{port}"))
        .start()
        .await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", "ada@provider.test")];
    let begun = Visit::press(link(&gateway, &gateway.app, &parameters)).await;
    let callback = provider.authorize(begun.location().as_str()).await;
    let page = complete(callback.parse().unwrap()).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(has(&gateway, "ada@provider.test").await);
    gateway.stop().await;
}
