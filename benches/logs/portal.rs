//! The portal's pages over the large log, as a browser asks a gateway in this process for them.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mailgate::daemon::{self, Daemon};
use mailgate_domain::accounts::Visitor;
use mailgate_sandbox::certificates;
use mailgate_server::shutdown::Shutdown;
use mailgate_types::clock::SystemClock;
use reqwest::Client;
use reqwest::header::COOKIE;
use toml::Table;
use url::form_urlencoded;

use super::Outcome;
use super::fill::HOT_ADDRESS;
use super::log::Log;
use super::measure::target;
use super::place::Environment;

/// How often each page is asked for: to warm up, and measured.
const WARM: usize = 20;
const TIMES: usize = 200;

/// Longest that one answer may take.
const ANSWER: Duration = Duration::from_mins(1);

/// Milliseconds of a page (p99).
const PAGE_AT_MOST: f64 = 100.0;

/// Bytes of a first visit, uncompressed: the overview and all that it loads.
const FIRST_VISIT: usize = 150_000;

/// A browser that is signed in.
struct Visit {
    http: Client,
    base: String,
    cookie: String,
}

pub async fn run(log: &Log, environment: Environment, folder: &Path) -> Outcome<()> {
    let shutdown = Shutdown::default();
    let daemon = start(environment, folder, &shutdown).await?;
    let measured = measure(log, &daemon).await;
    shutdown.soft.cancel();
    shutdown.hard.cancel();
    shutdown.tracker.close();
    shutdown.tracker.wait().await;
    measured
}

/// A gateway on the log, in this process.
async fn start(
    mut environment: Environment,
    folder: &Path,
    shutdown: &Shutdown,
) -> Outcome<Daemon> {
    let files = certificates::ensure(&folder.join("tls"), &[], chrono::Utc::now())?;
    let of_gateway = [
        ("TLS__CERTIFICATE", files.certificate.display().to_string()),
        ("TLS__KEY", files.key.display().to_string()),
        ("HTTP__LISTEN", "127.0.0.1:0".to_owned()),
        ("SMTP__STARTTLS_LISTEN", String::new()),
        ("SMTP__TLS_LISTEN", "127.0.0.1:0".to_owned()),
        ("METRICS__LISTEN", String::new()),
        // One visitor asks as fast as it can.
        ("LIMITS__REQUESTS_PER_SECOND", "1000000".to_owned()),
        ("LIMITS__REQUESTS_BURST", "1000000".to_owned()),
    ]
    .map(|(name, value)| (format!("MAILGATE__{name}"), value));
    environment.extend(of_gateway);
    let settings = mailgate_settings::load(Table::new(), None, environment.into_iter())?;
    Ok(daemon::start(settings, Arc::new(SystemClock), shutdown).await?)
}

async fn measure(log: &Log, daemon: &Daemon) -> Outcome<()> {
    let visitor = Visitor {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        user_agent: "bench-logs".to_owned(),
        session: None,
    };
    let subscribers = daemon.accounts.subscribers().await?;
    let own = subscribers.iter().find(|it| it.id == log.subscriber);
    let own = own.ok_or("the log's subscriber is gone")?;
    let token = daemon.accounts.sign_in(own, &visitor).await?;
    let visit = Visit {
        http: Client::builder().no_proxy().timeout(ANSWER).build()?,
        base: format!("http://{}", daemon.http_address),
        cookie: format!("mailgate={}", token.expose()),
    };
    println!();
    println!("the portal's pages over {} rows; milliseconds", log.rows);
    println!("{:<52} {:>8} {:>8} {:>8}", "", "p50", "p99", "bytes");
    let mut slowest: f64 = 0.0;
    for (name, path) in pages(log, &visit).await? {
        let (p50, p99, bytes) = visit.figures(&path).await?;
        println!("{name:<52} {p50:>8.2} {p99:>8.2} {bytes:>8}");
        slowest = slowest.max(p99);
    }
    let first_visit = first_visit(&visit).await?;
    println!();
    target(
        &format!("the slowest page has a p99 of {slowest:.2} ms"),
        &format!("at most {PAGE_AT_MOST} ms"),
        slowest <= PAGE_AT_MOST,
    );
    target(
        &format!("a first visit loads {first_visit} bytes, uncompressed"),
        &format!("at most {FIRST_VISIT}"),
        first_visit <= FIRST_VISIT,
    );
    Ok(())
}

/// The pages by their names: of an app and of a message those that the lists link to first.
async fn pages(log: &Log, visit: &Visit) -> Outcome<Vec<(&'static str, String)>> {
    let apps = visit.page("/portal/apps").await?;
    let messages = visit.page("/portal/messages").await?;
    let message_id: String = sqlx::query_scalar("SELECT message_id FROM email_logs LIMIT 1")
        .fetch_one(&log.pool)
        .await?;
    let message_id: String = form_urlencoded::byte_serialize(message_id.as_bytes()).collect();
    let search = |query: &str| format!("/portal/messages?{query}");
    Ok(vec![
        ("overview", "/portal".to_owned()),
        ("apps", "/portal/apps".to_owned()),
        ("an app", link(&apps, "/portal/apps/")?),
        ("mailboxes", "/portal/mailboxes".to_owned()),
        ("messages", "/portal/messages".to_owned()),
        ("messages, the next page", cursor(&messages)?),
        (
            "messages to an address that a tenth went to",
            search(&format!("to_address={HOT_ADDRESS}")),
        ),
        (
            "messages to nobody",
            search("to_address=nobody%40customers.example"),
        ),
        ("messages that failed", search("status=failed_perm")),
        (
            "messages by Message-ID",
            search(&format!("message_id={message_id}")),
        ),
        ("a message", link(&messages, "/portal/messages/log_")?),
        ("webhooks", "/portal/webhooks".to_owned()),
        ("billing", "/portal/billing".to_owned()),
        ("settings", "/portal/settings".to_owned()),
    ])
}

impl Visit {
    async fn page(&self, path: &str) -> Outcome<String> {
        let request = self.http.get(format!("{}{path}", self.base));
        let answer = request.header(COOKIE, &self.cookie).send().await?;
        if answer.status() != 200 || answer.url().path().ends_with("sign-in") {
            return Err(format!("{path}: {} at {}", answer.status(), answer.url()).into());
        }
        Ok(answer.text().await?)
    }

    async fn figures(&self, path: &str) -> Outcome<(f64, f64, usize)> {
        let (mut times, mut bytes) = (Vec::with_capacity(TIMES), 0);
        for _ in 0..WARM + TIMES {
            let began = Instant::now();
            bytes = self.page(path).await?.len();
            times.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        times.drain(..WARM);
        times.sort_by(f64::total_cmp);
        Ok((times[TIMES / 2], times[TIMES * 99 / 100], bytes))
    }
}

/// Bytes of the overview with the style and the scripts that it names.
async fn first_visit(visit: &Visit) -> Outcome<usize> {
    let overview = visit.page("/portal").await?;
    let mut bytes = overview.len();
    for asset in addresses(&overview).filter(|address| address.contains("/assets/")) {
        bytes += visit.page(&asset).await?.len();
    }
    Ok(bytes)
}

/// The first link that begins so and leads further.
fn link(html: &str, prefix: &str) -> Outcome<String> {
    addresses(html)
        .find(|address| address.starts_with(prefix) && address.len() > prefix.len())
        .ok_or_else(|| format!("no link to {prefix}…").into())
}

/// The link to the next page.
fn cursor(html: &str) -> Outcome<String> {
    addresses(html)
        .find(|address| address.contains("cursor="))
        .ok_or_else(|| "no next page".into())
}

/// All addresses in a page.
fn addresses(html: &str) -> impl Iterator<Item = String> {
    html.split(" href=\"")
        .skip(1)
        .chain(html.split(" src=\"").skip(1))
        .filter_map(|rest| rest.split('"').next())
        .map(|address| address.replace("&amp;", "&").replace("&#38;", "&"))
}
