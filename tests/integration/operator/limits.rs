//! `mailgate subscriber limits`: what it shows, sets and refuses.

use serde_json::{Value, json};

use super::{answered, subscriber};
use crate::command_line::process::Invocation;
use crate::support::caller::has_just;
use crate::support::gateway::{Gateway, SEAL_KEY};

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_shown_with_their_origin_and_set_one_by_one() {
    let gateway = Gateway::start().await;
    let (url, id) = (&gateway.database_url, gateway.subscriber.to_string());
    let shown = answered(url, &["limits", &id]).await;
    has_just(&shown, vec!["subscriber_id", "limits", "changed"]);
    let expected = json!({
        "apps": { "value": 1000, "source": "setting", "setting": 1000, "used": 1 },
        "mailboxes": { "value": 50_000, "source": "setting", "setting": 50_000, "used": 1 },
        "end_users": { "value": 200_000, "source": "setting", "setting": 200_000, "used": 1 },
        "waiting_messages": { "value": 20_000, "source": "setting", "setting": 20_000, "used": 0 },
        "waiting_bytes": {
            "value": 2_147_483_648_u64, "source": "setting", "setting": 2_147_483_648_u64, "used": 0,
        },
        "requests_per_second": { "value": 50, "source": "setting", "setting": 50, "used": null },
    });
    assert_eq!(shown["limits"], expected);
    assert_eq!(shown["changed"], false);
    let set = answered(
        url,
        &["limits", &id, "--apps", "7", "--waiting-bytes", "30000000"],
    )
    .await;
    let own = |value: i64, setting: i64, used: i64| json!({ "value": value, "source": "subscriber", "setting": setting, "used": used });
    assert_eq!(set["limits"]["apps"], own(7, 1000, 1), "{set}");
    let bytes = &set["limits"]["waiting_bytes"];
    assert_eq!(bytes, &own(30_000_000, 2_147_483_648, 0), "{set}");
    assert_eq!(set["limits"]["mailboxes"], expected["mailboxes"]);
    assert_eq!(set["changed"], true);
    // Once more, and one of them back.
    let again = answered(url, &["limits", &id, "--apps", "7"]).await;
    assert_eq!(again["changed"], false, "{again}");
    let rate = ["--waiting-bytes", "default", "--requests-per-second", "9"];
    let set = answered(url, &[&["limits", &id], rate.as_slice()].concat()).await;
    assert_eq!(set["limits"]["waiting_bytes"], expected["waiting_bytes"]);
    assert_eq!(set["limits"]["requests_per_second"]["value"], 9, "{set}");
    let shown = answered(url, &["show", &id]).await;
    let limits = json!({
        "apps_per_subscriber": 7, "mailboxes_per_subscriber": 50_000,
        "end_users_per_subscriber": 200_000, "waiting_messages_per_subscriber": 20_000,
        "waiting_bytes_per_subscriber": 2_147_483_648_u64, "requests_per_second": 9,
    });
    assert_eq!(shown["limits"], limits);
    let words = subscriber(url, &["show", &id]).await;
    for part in [
        "1 of 7 (its own)",
        "1 of 200000 (limits.end_users_per_subscriber)",
        "9 (its own)",
    ] {
        assert!(words.stdout.contains(part), "{}", words.stdout);
    }
    let words = subscriber(url, &["limits", &id]).await;
    let lines: Vec<Vec<&str>> = (words.stdout.lines())
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|it| !it.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(lines[0], ["LIMIT", "VALUE", "USED", "FROM"]);
    assert_eq!(lines[1], ["apps", "7", "1", "its own"]);
    let unset = ["mailboxes", "50000", "1", "limits.mailboxes_per_subscriber"];
    assert_eq!(lines[2], unset);
    assert_eq!(lines[6], ["requests per second", "9", "-", "its own"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_no_setting_may_have_is_refused() {
    let gateway = Gateway::start().await;
    let (url, id) = (&gateway.database_url, gateway.subscriber.to_string());
    for (arguments, part) in [
        (
            ["--apps", "0"],
            "--apps: must be a whole number from 1 to 1000000, or default",
        ),
        (
            ["--mailboxes", "1"],
            "--mailboxes: must be a whole number from 2",
        ),
        (["--end-users", "many"], "--end-users: must be"),
        (["--waiting-messages", "1.5"], "--waiting-messages: must be"),
        (
            ["--waiting-bytes", "26214399"],
            "must be limits.message_bytes (26214400) or more",
        ),
        (
            ["--requests-per-second", "1000001"],
            "--requests-per-second: must be",
        ),
    ] {
        let refused = subscriber(url, &[&["limits", &id], arguments.as_slice()].concat()).await;
        refused.fails(1, &[part]);
    }
    let unknown = "sub_01h2xcejqtf2nbrexx3vqjhp41";
    for further in [&[] as &[&str], &["--apps", "3"]] {
        let refused = subscriber(url, &[&["limits", unknown], further].concat()).await;
        refused.fails(1, &["there is no subscriber sub_01h2"]);
    }
    let shown = answered(url, &["limits", &id]).await["limits"].clone();
    let is_set = |limit: &Value| limit["source"] != "setting";
    assert!(!shown.as_object().unwrap().values().any(is_set), "{shown}");
    // A gateway whose messages have become larger takes the largest one nevertheless.
    let larger = [
        "subscriber",
        "limits",
        &id,
        "--waiting-bytes",
        "26214400",
        "--json",
    ];
    let finished = Invocation::new(larger)
        .set("DATABASE__URL", url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish();
    finished.await.succeeds();
    let finished = Invocation::new(["subscriber", "limits", &id, "--json"])
        .set("DATABASE__URL", url)
        .set("SEAL__KEYS", SEAL_KEY)
        .set("LIMITS__MESSAGE_BYTES", "30000000")
        .finish()
        .await;
    finished.succeeds();
    let shown: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(
        shown["limits"]["waiting_bytes"]["value"], 30_000_000,
        "{shown}"
    );
    gateway.stop().await;
}
