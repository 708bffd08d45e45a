//! The series of the largest subscribers: ten by each measure, the same at every process, and none of those that drop out.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use chrono::{DateTime, Utc};
use mailgate_types::ids::{AppId, SubscriberId};

use crate::command_line::process::http_client;
use crate::command_line::serve::replica;
use crate::support::gateway::{Gateway, create_app};
use crate::support::{patience, ports};

/// More than are shown.
const SUBSCRIBERS: u8 = 15;

const SENT: &str = "messages";
const FAILED: &str = "messages failed";
const WAITING: &str = "waiting";
const SHARE: &str = "share";

/// The series of a scrape, as the metric's last words with the value and the subscriber.
async fn series(metrics: SocketAddr) -> BTreeSet<String> {
    let response = http_client().get(format!("http://{metrics}/metrics"));
    let scrape = response.send().await.unwrap().text().await.unwrap();
    let lines = scrape.lines();
    lines
        .filter_map(|line| line.strip_prefix("mailgate_top_subscriber_"))
        .map(str::to_owned)
        .collect()
}

/// What of each subscriber there is: its share of the limits is a two-hundredth for a message.
struct Has {
    id: SubscriberId,
    sent: u8,
    failed: u8,
    waiting: u8,
}

impl Has {
    fn line(&self, measure: &str) -> String {
        let id = self.id;
        match measure {
            SENT => format!(
                "messages{{subscriber=\"{id}\",outcome=\"sent\"}} {}",
                self.sent
            ),
            FAILED => {
                format!(
                    "messages{{subscriber=\"{id}\",outcome=\"failed_perm\"}} {}",
                    self.failed
                )
            }
            WAITING => format!("waiting_messages{{subscriber=\"{id}\"}} {}", self.waiting),
            _ => {
                let share = f64::from(self.waiting) / 200.0;
                format!("waiting_ratio{{subscriber=\"{id}\"}} {share}")
            }
        }
    }
}

/// Ten by each measure, the smaller ids of equals.
fn expected(all: &[Has]) -> BTreeSet<String> {
    let mut expected = BTreeSet::new();
    for name in [SENT, FAILED, WAITING, SHARE] {
        let measure = |has: &Has| match name {
            SENT => has.sent,
            FAILED => has.failed,
            _ => has.waiting,
        };
        let mut some: Vec<&Has> = all.iter().filter(|has| measure(has) > 0).collect();
        some.sort_by_key(|has| (u8::MAX - measure(has), has.id.0));
        expected.extend(some.into_iter().take(10).map(|has| has.line(name)));
    }
    expected
}

/// `now` is the test's: the hour may turn meanwhile.
async fn count(gateway: &Gateway, has: &Has, app: AppId, now: DateTime<Utc>) {
    let mut database = gateway.database().await;
    for (unit, factor) in [("hour", 1), ("day", 3), ("month", 5)] {
        sqlx::query(
            "INSERT INTO email_counters
                 (owner_id, unit, start, plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
                  plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm)
             SELECT owner, $2, date_trunc($2, $6::timestamptz, 'UTC'), $3, 0, 0, 0, 0, $4
             FROM unnest(ARRAY[$1, $5]) AS owner
             ON CONFLICT (owner_id, unit, start) DO UPDATE SET plugin_a_sent = EXCLUDED.plugin_a_sent",
        )
        .bind(has.id.0)
        .bind(unit)
        .bind(i64::from(has.sent) * factor)
        .bind(i64::from(has.failed) * factor)
        .bind(app.0)
        .bind(now)
        .execute(&mut database)
        .await
        .unwrap();
    }
    sqlx::query(
        "INSERT INTO spool_usage (app_id, messages, bytes) VALUES ($1, $2, 100)
         ON CONFLICT (app_id) DO UPDATE SET messages = EXCLUDED.messages",
    )
    .bind(app.0)
    .bind(i64::from(has.waiting))
    .execute(&mut database)
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_subscribers_are_shown_and_vanish_when_others_are_larger() {
    let gateway = Gateway::start().await;
    let now = Utc::now();
    let mut all = Vec::new();
    let mut apps = Vec::new();
    for number in 0..SUBSCRIBERS {
        let (id, app) = create_app(&gateway.daemon, &format!("Subscriber {number}")).await;
        let has = Has {
            id,
            sent: number,
            // Three in a row have as many, and some none.
            failed: number.saturating_sub(3) / 3,
            waiting: 2 * (SUBSCRIBERS - number),
        };
        count(&gateway, &has, app.id, now).await;
        all.push(has);
        apps.push(app.id);
    }
    // What was long ago counts no more.
    sqlx::query(
        "INSERT INTO email_counters SELECT $1, 'hour', date_trunc('hour', now(), 'UTC') - interval '2 hours',
             900, 0, 0, 0, 0, 900",
    )
    .bind(all[0].id.0)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    let start = async || {
        let metrics = ports::local_address();
        let serve = replica(&gateway)
            .set("METRICS__LISTEN", metrics.to_string())
            .set("LIMITS__WAITING_MESSAGES_PER_SUBSCRIBER", "200");
        let mut serve = serve.start();
        serve.ready().await;
        (serve, metrics)
    };
    let (mut one, at_one) = start().await;
    let (mut other, at_other) = start().await;
    let comes = async |all: &[Has]| {
        let expected = expected(all);
        assert!(expected.len() <= 40);
        for metrics in [at_one, at_other] {
            let is_so = async || series(metrics).await == expected;
            patience::until("the largest subscribers", is_so).await;
        }
    };
    comes(&all).await;
    // The smallest of each measure overtakes all others, and the last of the ten vanish.
    all[0].sent = 100;
    count(&gateway, &all[0], apps[0], now).await;
    all[14].waiting = 150;
    count(&gateway, &all[14], apps[14], now).await;
    comes(&all).await;
    let shown = series(at_one).await;
    assert!(shown.contains(&all[0].line(SENT)), "{shown:?}");
    let fifth = format!("{}\",outcome=\"sent", all[5].id);
    assert!(!shown.iter().any(|line| line.contains(&fifth)), "{shown:?}");
    one.terminate().await;
    other.terminate().await;
    gateway.stop().await;
}
