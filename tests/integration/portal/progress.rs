//! What takes its time says so: replays, the deletion of an app, exports.

use chrono::{Days, Utc};
use sqlx::{Connection as _, PgConnection};

use super::visitor::{Visitor, api_secret};
use super::webhooks::add;
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::{Gateway, create_app};
use crate::support::receiver::{Receiver, Reply};

/// The polling of a page that isn't at its end, with scripts and without.
const FOLLOWS: [&str; 2] = ["hx-trigger=\"every 2s\"", "http-equiv=\"refresh\""];

fn ends(text: &str) {
    for wrong in FOLLOWS {
        assert!(!text.contains(wrong), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_says_how_far_it_has_come() {
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .set("WEBHOOKS__ENDPOINT_CONCURRENCY", 1)
        .set("WEBHOOKS__EXCHANGE_SECONDS", 4)
        .start()
        .await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let hook = add(&gateway, &visitor, &receiver.url("/hook")).await;
    for _ in 0..6 {
        assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    }
    gateway
        .eventually("all are delivered", async |_| {
            let page = visitor.get(&hook).await.text;
            page.matches("/deliveries/").count() == 6
        })
        .await;

    let form = visitor.get(&format!("{hook}/replay")).await.text;
    let today = Utc::now().date_naive();
    let days = [today.checked_sub_days(Days::new(1)).unwrap(), today];
    for day in days {
        assert!(form.contains(&format!("value=\"{day}\"")), "{form}");
    }
    let today = today.to_string();
    let failed = [("since", today.as_str()), ("until", &today)];
    let page = visitor.post(&format!("{hook}/replay"), &failed).await;
    assert!(
        !page.location().contains("/progress"),
        "{}",
        page.location()
    );
    let page = visitor.get(page.location()).await;
    page.says(&["No event had to be queued."]);

    let replica = gateway.replica().start().await;
    receiver.always(Reply::Hang);
    let delivered = [("since", today.as_str()), ("success", "true")];
    let page = visitor.post(&format!("{hook}/replay"), &delivered).await;
    let progress = page.location().to_owned();
    assert!(
        progress.starts_with(&format!("{hook}/replay/progress?")),
        "{progress}"
    );
    // Any replica may be asked.
    for base in [&gateway.daemon.base_url, &replica.daemon.base_url] {
        let page = visitor.at(base).get(&progress).await;
        assert_eq!(page.status, 200);
        page.says(&FOLLOWS);
        page.says(&["Replaying ", " of 6 events", "<progress"]);
    }
    replica.stop().await;
    receiver.always(Reply::Status(204, ""));
    gateway
        .eventually("the replay's end", async |_| {
            let page = visitor.get(&progress).await.text;
            page.contains("All 6 events were sent again.")
        })
        .await;
    let page = visitor.get(&progress).await;
    ends(&page.text);
    page.says(&[&format!("href=\"{hook}#deliveries\"")]);

    // No number, and a time long before.
    for began in ["began=x", "began=-", "began=-8000"] {
        let wrong = progress.replace("began=", began);
        assert_eq!(visitor.get(&wrong).await.status, 404, "{wrong}");
    }
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let other = gateway.daemon.accounts.app_credentials(other.id).await;
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    let other = other.unwrap().unwrap();
    stranger.sign_in(other.api_secret.expose()).await;
    assert_eq!(stranger.get(&progress).await.status, 404);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apps_deletion_says_what_is_left() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    for to in ["bob@example.com", "eve@example.com"] {
        assert_eq!(gateway.send_to(to).await.0, 200);
    }
    gateway
        .eventually("both are in the log", async |gateway| {
            gateway.logged().await.len() == 2
        })
        .await;
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let foreign = gateway.daemon.accounts.app_credentials(other.id).await;
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    let foreign = foreign.unwrap().unwrap();
    stranger.sign_in(foreign.api_secret.expose()).await;
    // Held for as long as this transaction takes.
    let mut database = gateway.database().await;
    let mut held = database.begin().await.unwrap();
    sqlx::query("SELECT FROM email_logs FOR UPDATE")
        .execute(&mut *held)
        .await
        .unwrap();
    let app = format!("/portal/apps/{}", gateway.app.slug);
    let name = name(&mut gateway.database().await, &gateway.app.slug).await;
    let page = visitor
        .post(&format!("{app}/delete"), &[("name", &name)])
        .await;
    let progress = format!("/portal/deleted-apps/{}?of=2", gateway.app.id);
    assert_eq!((page.status, page.location()), (303, progress.as_str()));
    assert_eq!(visitor.get(&app).await.status, 404);
    let page = visitor.get(&progress).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.says(&FOLLOWS);
    page.says(&["2 messages left", "max=\"2\" value=\"0\""]);
    assert_eq!(stranger.get(&progress).await.status, 404);
    let living = format!("/portal/deleted-apps/{}", other.id);
    assert_eq!(stranger.get(&living).await.status, 404);
    held.rollback().await.unwrap();
    gateway
        .eventually("the deletion's end", async |_| {
            let page = visitor.get(&progress).await.text;
            page.contains("and its messages are deleted.")
        })
        .await;
    let page = visitor.get(&progress).await;
    ends(&page.text);
    page.says(&[&name, "href=\"/portal/apps\""]);
    gateway.stop().await;
}

async fn name(database: &mut PgConnection, slug: &str) -> String {
    sqlx::query_scalar("SELECT name FROM apps WHERE slug = $1")
        .bind(slug)
        .fetch_one(database)
        .await
        .unwrap()
}

/// What the page says of the export, until it is over; and the file that the browser was given.
const EXPORTED: &str = "new Promise((resolve) => {
    const made = URL.createObjectURL;
    URL.createObjectURL = (blob) => { blob.text().then((text) => { window.file = text; }); return made(blob); };
    const said = [];
    const line = () => document.querySelector('[data-export-said]').textContent;
    const timer = setInterval(() => {
      if (said.at(-1) !== line()) said.push(line());
      if (/^Exported|broke off/.test(line())) { clearInterval(timer); setTimeout(() => resolve(said.join('|')), 300); }
    }, 1);
    document.querySelector('a[data-export]').click();
  })";

const FILE: &str = "window.file";

#[tokio::test(flavor = "multi_thread")]
async fn an_export_counts_its_rows() {
    let gateway = Gateway::start().await;
    for subject in ["Your invoice", "5\" pipe,\twith; \"quotes\"", "Third"] {
        let message =
            serde_json::json!({ "to": "bob@example.com", "subject": subject, "body": "x" });
        assert_eq!(gateway.send(message).await.0, 200);
    }
    gateway
        .eventually("all are in the log", async |gateway| {
            gateway.logged().await.len() == 3
        })
        .await;
    let steps = [
        Step::goto(format!("{}/portal/messages", gateway.daemon.base_url)),
        Step::fill("#api-secret", api_secret(&gateway).await),
        Step::click("role=button[name=\"Sign in\"]"),
        Step::expect_text("Export CSV"),
        Step::Measure(EXPORTED),
        Step::Measure(FILE),
    ];
    let results = Browser::desktop().run(&steps).await;
    let said = results[4].text.clone().unwrap();
    assert!(said.starts_with("Exporting…"), "{said}");
    assert!(said.ends_with("Exported 3 rows."), "{said}");
    let file = results[5].text.clone().unwrap();
    let visitor = Visitor::signed_in(&gateway).await;
    assert_eq!(file, visitor.get("/portal/messages.csv").await.text);
    for result in results {
        assert!(result.console_errors.is_empty(), "{result:?}");
    }
    gateway.stop().await;
}
