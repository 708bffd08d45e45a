//! Measures outgoing webhooks: deliveries from committed event to the receiver's 200, beside a bare loop
//! that signs and posts with the gateway's own client; and, with little to do, the time from a commit to
//! the first byte at the receiver.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mailgate_domain::accounts::CreatedApp;
use mailgate_sandbox::certificates::CertificateFiles;
use mailgate_sandbox::postgres::PrivatePostgres;
use mailgate_storage::webhook_messages;
use mailgate_types::event::Emission;
use sqlx::{Connection, PgConnection};
use tokio::net::TcpListener;

use super::child::{LOAD, Mode, RECEIVER, expect};
use super::gateway::{self, Gateway};
use super::load::{Door, Emitting, Job, MEASURED, MEASURING, Report, event};
use super::receiver;
use super::summary::{Delivered, FirstByte, float};
use super::{Outcome, usage};

/// Endpoints, from step to step.
pub const ENDPOINTS: [u16; 3] = [1, 10, 1_000];

/// Posts at once of the bare loop.
const BARE_CLIENTS: usize = 64;

/// Commits one after the other, with a pause between.
const SINGLE: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Where the steps run.
pub struct Setup<'a> {
    pub folder: &'a Path,
    pub files: &'a CertificateFiles,
    pub app: &'a CreatedApp,
    pub environment: &'a [(String, String)],
    pub postgres: &'a PrivatePostgres,
    pub measured: Duration,
}

impl Setup<'_> {
    /// Delivers to so many endpoints, one of each app.
    pub async fn deliver(&self, endpoints: u16) -> Outcome<Delivered> {
        let mut target = Mode::start(RECEIVER, &receiver::Job { endpoints }, &[])?;
        let port: u16 = target.line().await?.parse()?;
        let urls: Vec<String> = (0..endpoints)
            .map(|endpoint| format!("http://{}:{port}/hook", receiver::address(endpoint)))
            .collect();
        let times = [
            u64::try_from(self.measured.as_millis())? / 4,
            u64::try_from(self.measured.as_millis())?,
        ];

        let (bare, bare_used) = self.bare(&urls, times).await?;
        let mut database = PgConnection::connect(&self.postgres.url("bench")).await?;
        let apps = gateway::apps(self.environment, &urls).await?;
        let gateway = self.gateway(&format!("webhooks-{endpoints}")).await?;
        let job = Job::Send {
            door: Door::Events(Emitting {
                database_url: self.postgres.url("bench"),
                apps: apps.iter().map(|app| app.id.0).collect(),
                count_url: format!("http://{}:{port}/", receiver::address(0)),
            }),
            clients: 1,
            warm_up: times[0],
            measured: times[1],
        };
        let recorded_before = recorded(&mut database).await?;
        let mut load = Mode::start(LOAD, &job, &[])?;
        expect(&mut load, MEASURING).await?;
        let used = || {
            let (gateway, postgres) = (usage::process(gateway.pid)?, self.postgres.pid());
            Outcome::Ok((gateway, usage::tree(postgres)?))
        };
        let before = used()?;
        expect(&mut load, MEASURED).await?;
        let after = used()?;
        let report: Report = serde_json::from_str(&load.line().await?)?;
        load.end().await?;
        gateway.stop().await?;
        target.end().await?;
        let recorded = recorded(&mut database).await? - recorded_before;
        if recorded != i64::try_from(report.total)? {
            let total = report.total;
            return Err(format!("{total} webhooks arrived, and {recorded} were recorded").into());
        }
        let each = |used: Duration| used.as_secs_f64() * 1_000.0 / float(report.messages);
        Ok(Delivered {
            endpoints,
            rate: float(report.messages) / report.seconds,
            bare: float(bare.messages) / bare.seconds,
            gateway: each(after.0.saturating_sub(before.0)),
            database: each(after.1.saturating_sub(before.1)),
            bare_cpu: bare_used.as_secs_f64() * 1_000.0 / float(bare.messages),
        })
    }

    async fn bare(&self, urls: &[String], times: [u64; 2]) -> Outcome<(Report, Duration)> {
        let job = Job::Send {
            door: Door::Post(urls.to_vec()),
            clients: BARE_CLIENTS,
            warm_up: times[0],
            measured: times[1],
        };
        let mut load = Mode::start(LOAD, &job, &[])?;
        let pid = load.pid()?;
        expect(&mut load, MEASURING).await?;
        let before = usage::process(pid)?;
        expect(&mut load, MEASURED).await?;
        let after = usage::process(pid)?;
        let report = serde_json::from_str(&load.line().await?)?;
        load.end().await?;
        Ok((report, after.saturating_sub(before)))
    }

    /// One event after the other, each in a commit of its own.
    pub async fn one_at_a_time(&self) -> Outcome<FirstByte> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let arrived = Arc::<Mutex<Vec<Instant>>>::default();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&arrived)));
        let apps = gateway::apps(self.environment, &[url]).await?;
        let gateway = self.gateway("webhooks-single").await?;
        let mut database = PgConnection::connect(&self.postgres.url("bench")).await?;
        let mut took = Vec::new();
        for number in 0..SINGLE {
            let emission = Emission::of(apps[0].id, event());
            webhook_messages::emit(&mut database, &[emission], chrono::Utc::now()).await?;
            let committed = Instant::now();
            tokio::time::sleep(PAUSE).await;
            let at = loop {
                let at = arrived
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get(number)
                    .copied();
                match at {
                    Some(at) => break at,
                    None => tokio::time::sleep(Duration::from_micros(200)).await,
                }
            };
            took.push(at.saturating_duration_since(committed).as_secs_f64() * 1_000.0);
        }
        accepting.abort();
        gateway.stop().await?;
        took.sort_by(f64::total_cmp);
        Ok(FirstByte {
            p50: took[SINGLE / 2],
            p99: took[SINGLE * 99 / 100],
        })
    }

    /// A gateway that posts to this machine.
    pub async fn gateway(&self, name: &str) -> Outcome<Gateway> {
        let folder = self.folder.join(name);
        std::fs::create_dir(&folder)?;
        let mut environment = self.environment.to_vec();
        environment.push((
            "MAILGATE__WEBHOOKS__ALLOW_PRIVATE".to_owned(),
            "true".to_owned(),
        ));
        Gateway::start(&folder, &environment, self.app, &self.files.ca).await
    }
}

async fn recorded(database: &mut PgConnection) -> Outcome<i64> {
    let query = "SELECT count(*) FROM webhook_deliveries WHERE success";
    Ok(sqlx::query_scalar(query).fetch_one(database).await?)
}

/// Notes when each request's head is there.
async fn accept(listener: TcpListener, arrived: Arc<Mutex<Vec<Instant>>>) {
    while let Ok((socket, _)) = listener.accept().await {
        let arrived = Arc::clone(&arrived);
        tokio::spawn(async move {
            let service = service_fn(|_: Request<hyper::body::Incoming>| {
                arrived
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Instant::now());
                async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) }
            });
            drop(
                http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service)
                    .await,
            );
        });
    }
}
