//! Who may send as what, beside a plain model of it, over random mailboxes. `MAILGATE_ALIASES_SEED` repeats a run.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_domain::mailboxes::Wanted;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::AppId;
use mailgate_types::plugin::Plugin;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use uuid::Uuid;

use crate::support::gateway::{Gateway, create_app};

const ROUNDS: usize = 20;

/// Few enough that they clash.
const ADDRESSES: [&str; 6] = [
    "a@x.example",
    "b@x.example",
    "c@x.example",
    "a@y.example",
    "j\u{f6}rg@b\u{fc}cher.example",
    "\"a b\"@x.example",
];

/// The app whose users send for themselves alone.
const MULTIUSER: usize = 1;

#[derive(Debug, Clone)]
struct Sample {
    app: usize,
    user: usize,
    plugin: Plugin,
    own: &'static str,
    aliases: Vec<&'static str>,
    by_session: bool,
    is_active: bool,
    seconds: i64,
}

/// A sample as a row.
struct Placed {
    id: Uuid,
    app: AppId,
    user: String,
    user_key: Uuid,
    connected_at: DateTime<Utc>,
    sample: Sample,
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let sample = (
        0..2_usize,
        0..2_usize,
        select(Plugin::ALL.to_vec()),
        select(ADDRESSES.to_vec()),
        subsequence(ADDRESSES.to_vec(), 0..=4),
        any::<bool>(),
        prop::bool::weighted(0.8),
        0..3_i64,
    )
        .prop_map(
            |(app, user, plugin, own, aliases, by_session, is_active, seconds)| Sample {
                app,
                user,
                plugin,
                own,
                aliases,
                by_session,
                is_active,
                seconds,
            },
        );
    prop::collection::vec(sample, 0..9)
}

fn seed() -> [u8; 32] {
    let text = std::env::var("MAILGATE_ALIASES_SEED").ok();
    let number = text.and_then(|text| text.parse().ok());
    let number: u64 = number.unwrap_or_else(rand::random);
    eprintln!("MAILGATE_ALIASES_SEED={number}");
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    seed
}

/// The rows of the samples; of those that are one mailbox, the first.
async fn place(gateway: &Gateway, apps: &[AppId], samples: Vec<Sample>) -> Vec<Placed> {
    let mut database = gateway.database().await;
    sqlx::query("DELETE FROM end_users")
        .execute(&mut database)
        .await
        .unwrap();
    let mut users = Vec::new();
    for (app, id) in apps.iter().enumerate() {
        for user in 0..2 {
            let (key, name) = (Uuid::now_v7(), format!("user-{user}"));
            sqlx::query("INSERT INTO end_users VALUES ($1, $2, $3, now())")
                .bind(key)
                .bind(id.0)
                .bind(&name)
                .execute(&mut database)
                .await
                .unwrap();
            users.push(((app, user), key, name));
        }
    }
    let mut placed: Vec<Placed> = Vec::new();
    for sample in samples {
        let at = (sample.app, sample.user);
        let (_, user_key, user) = users.iter().find(|(place, ..)| *place == at).unwrap();
        let is_there = placed.iter().any(|other| {
            other.user_key == *user_key
                && other.sample.plugin == sample.plugin
                && other.sample.own == sample.own
        });
        if is_there {
            continue;
        }
        let one = Placed {
            id: Uuid::now_v7(),
            app: apps[sample.app],
            user: user.clone(),
            user_key: *user_key,
            connected_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(sample.seconds),
            sample,
        };
        insert(&mut database, &one).await;
        placed.push(one);
    }
    placed
}

async fn insert(database: &mut sqlx::PgConnection, one: &Placed) {
    let status = if one.sample.is_active {
        "active"
    } else {
        "disconnected"
    };
    sqlx::query(
        "INSERT INTO mailboxes (id, app_id, user_key, plugin, email, email_lookup, status, scopes,
                                connected_at, by_session, addresses_due_at)
         VALUES ($1, $2, $3, $4, $5, lower($5), $6, '{}', $7, $8, NULL)",
    )
    .bind(one.id)
    .bind(one.app.0)
    .bind(one.user_key)
    .bind(one.sample.plugin.as_str())
    .bind(one.sample.own)
    .bind(status)
    .bind(one.connected_at)
    .bind(one.sample.by_session)
    .execute(&mut *database)
    .await
    .unwrap();
    // Also of a mailbox that is disconnected, as an older release leaves them.
    let others = (one.sample.aliases.iter()).filter(|alias| **alias != one.sample.own);
    for (place, alias) in (1_i16..).zip(others) {
        sqlx::query("INSERT INTO mailbox_addresses VALUES ($1, $2, $3, $3, $4)")
            .bind(one.id)
            .bind(one.app.0)
            .bind(alias)
            .bind(place)
            .execute(&mut *database)
            .await
            .unwrap();
    }
}

/// The mailbox that the words of the rule choose.
fn expected<'a>(
    placed: &'a [Placed],
    app: AppId,
    user: Option<&str>,
    plugin: Option<Plugin>,
    address: &str,
) -> Option<&'a Placed> {
    let address = address.to_ascii_lowercase();
    let mut candidates: Vec<&Placed> = (placed.iter())
        .filter(|one| one.app == app && one.sample.is_active)
        .filter(|one| user.is_none_or(|user| user == one.user || user == one.user_key.to_string()))
        .filter(|one| plugin.is_none_or(|plugin| plugin == one.sample.plugin))
        .filter(|one| {
            // Nobody's own address leaves another user's mailbox, even when its own is disconnected.
            let is_anothers = one.sample.app == MULTIUSER
                && (placed.iter()).any(|other| {
                    other.app == app
                        && other.sample.own == address
                        && other.user_key != one.user_key
                });
            one.sample.own == address
                || one.sample.aliases.contains(&address.as_str()) && !is_anothers
        })
        .collect();
    candidates.sort_by_key(|one| {
        (
            one.sample.own != address,
            !one.sample.by_session,
            one.connected_at,
            one.id,
        )
    });
    candidates.first().copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_send_as_what_is_what_the_rule_says() {
    let gateway = Gateway::start().await;
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let apps = [gateway.app.id, other.id];
    sqlx::query("UPDATE apps SET multiuser = true WHERE id = $1")
        .bind(apps[MULTIUSER].0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed());
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut found, mut by_alias) = (0, 0);
    for _ in 0..ROUNDS {
        let samples = samples().new_tree(&mut runner).unwrap().current();
        let placed = place(&gateway, &apps, samples).await;
        let key = placed.first().map(|one| one.user_key.to_string());
        let users = [
            None,
            Some("user-0"),
            Some("user-1"),
            Some("nobody"),
            key.as_deref(),
        ];
        let plugins = [None, Some(Plugin::A), Some(Plugin::B)];
        for (app, address) in apps.iter().flat_map(|app| ADDRESSES.map(|it| (*app, it))) {
            for (user, plugin) in users.iter().flat_map(|user| plugins.map(|it| (*user, it))) {
                let spelled = address.to_ascii_uppercase();
                let parsed = EmailAddress::parse(&spelled).unwrap();
                let wanted = Wanted {
                    app,
                    user: user.map(str::to_owned),
                    plugin,
                    address_lookup: Some(parsed.lookup_key()),
                    only: None,
                };
                let mailboxes = &gateway.daemon.mailboxes;
                let chosen = mailboxes.choose(&wanted).await.unwrap();
                let expected = expected(&placed, app, user, plugin, &spelled);
                assert_eq!(
                    chosen
                        .as_ref()
                        .map(|it| (it.mailbox.id.0, it.address.as_str())),
                    expected.map(|one| (one.id, address)),
                    "{app} {user:?} {plugin:?} {address}"
                );
                found += usize::from(chosen.is_some());
                by_alias += usize::from(expected.is_some_and(|one| one.sample.own != address));
            }
        }
    }
    assert!(found > by_alias && by_alias > 0, "{found} {by_alias}");
    gateway.stop().await;
}
