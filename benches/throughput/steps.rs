//! The run: brings everybody up, and measures one step after the other.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mailgate_domain::accounts::CreatedApp;
use mailgate_sandbox::certificates::{self, CertificateFiles};
use mailgate_sandbox::postgres::{self, Durability, PrivatePostgres};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use super::child::{LOAD, Mode, SINK, expect};
use super::gateway::{self, Gateway};
use super::load::{Door, Job, MEASURED, MEASURING, Report};
use super::neighbour::{self, Turn};
use super::postfix::Postfix;
use super::sessions::{self, Sessions};
use super::sink::{self, Counts, Ports};
use super::summary::{self, Measured, ONE_AT_A_TIME, WebhookResults, Who};
use super::webhooks::{self, Setup};
use super::{Outcome, usage};

/// Clients at once, from step to step.
const CLIENTS: [usize; 3] = [1, 16, 64];

/// Postfix is measured with these alone.
const SEVERAL_CLIENTS: [usize; 2] = [16, 64];

/// How long Postfix may take to deliver what it has queued.
const DRAIN: Duration = Duration::from_mins(3);

/// Seconds that each step is measured, unless `BENCH_SECONDS` says otherwise.
const SECONDS: u64 = 5;

/// What runs beside the steps.
struct Bench {
    environment: Vec<(String, String)>,
    files: CertificateFiles,
    app: CreatedApp,
    folder: PathBuf,
    http: reqwest::Client,
    ports: Ports,
    postgres: PrivatePostgres,
    measured: Duration,
}

/// Measures the steps whose names hold all of `words`, and prints what came of them.
pub async fn run(words: &[String]) -> Outcome<()> {
    let seconds = match std::env::var("BENCH_SECONDS") {
        Ok(text) => text
            .parse()
            .map_err(|_| format!("BENCH_SECONDS is no whole number of seconds: {text}"))?,
        Err(_) => SECONDS,
    };
    // Postgres and Postfix run as users of their own, who must reach into it.
    let folder = tempfile::Builder::new()
        .prefix("mailgate-bench-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()?;
    tokio::select! {
        ended = run_in(&folder, Duration::from_secs(seconds), words) => ended,
        signalled = tokio::signal::ctrl_c() => {
            signalled?;
            Err("interrupted".into())
        }
    }
}

async fn run_in(folder: &TempDir, measured: Duration, words: &[String]) -> Outcome<()> {
    eprintln!("bench: starting the provider, Postgres, Postfix and Dovecot");
    let folder = folder.path();
    let files = certificates::ensure(&folder.join("tls"), &[], chrono::Utc::now())?;
    let job = sink::Job {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        mailbox: super::load::SENDER.to_owned(),
    };
    let mut provider = Mode::start(SINK, &job, &[])?;
    let ports: Ports = serde_json::from_str(&provider.line().await?)?;
    let postgres = postgres::start(&folder.join("pg"), Durability::Durable).await?;
    postgres.ensure_database("bench").await?;
    let environment = gateway::environment(&postgres, &files, ports);
    let bench = Bench {
        app: gateway::prepare(&environment).await?,
        environment,
        folder: folder.to_owned(),
        http: reqwest::Client::builder().no_proxy().build()?,
        files,
        ports,
        postgres,
        measured,
    };

    let wanted = |name: &str| words.iter().all(|word| name.contains(word.as_str()));
    let sessions = sessions::wanted()?;
    let sessions_name = summary::sessions_step(sessions);
    let names = CLIENTS.into_iter().flat_map(|clients| {
        Who::ALL
            .into_iter()
            .map(move |who| (who, clients))
            .filter(|(who, clients)| !who.is_postfix() || SEVERAL_CLIENTS.contains(clients))
    });
    let steps: Vec<(Who, usize)> = names
        .filter(|(who, clients)| wanted(&who.step(*clients)))
        .collect();
    let results = if steps.is_empty() {
        Vec::new()
    } else {
        bench.steps(&steps).await?
    };
    let sessions = if wanted(&sessions_name) {
        eprintln!("bench: {sessions_name}");
        Some(bench.sessions(sessions).await?)
    } else {
        None
    };
    let turns = if wanted(neighbour::NAME) {
        bench.beside_neighbour().await?
    } else {
        Vec::new()
    };
    let webhooks = bench.webhooks(wanted).await?;
    let is_done = !(results.is_empty() && turns.is_empty());
    if !is_done && sessions.is_none() && webhooks.is_empty() {
        return Err("no step has such a name".into());
    }
    bench.postgres.stop().await;
    provider.end().await?;
    summary::print(&results, &turns, sessions.as_ref(), &webhooks);
    Ok(())
}

impl Bench {
    /// What is compared is measured side by side, so that a machine that is busy for a while is busy
    /// for all.
    async fn steps(&self, steps: &[(Who, usize)]) -> Outcome<Vec<Measured>> {
        let gateway = self.gateway("steps").await?;
        let postfix =
            Postfix::start(&self.own_folder("postfix")?, &self.files, self.ports.plain).await?;
        let mut results = Vec::new();
        for (number, (who, clients)) in steps.iter().enumerate() {
            let name = who.step(*clients);
            eprintln!("bench: step {} of {}: {name}", number + 1, steps.len());
            let measured = self
                .step(*who, *clients, &gateway, &postfix)
                .await
                .map_err(|error| format!("{name}: {error}"))?;
            results.push(measured);
        }
        postfix.stop().await?;
        gateway.stop().await?;
        Ok(results)
    }

    async fn step(
        &self,
        who: Who,
        clients: usize,
        gateway: &Gateway,
        postfix: &Postfix,
    ) -> Outcome<Measured> {
        let door = match who {
            Who::Bare => Door::Bare,
            Who::Rest => Door::Rest(gateway.rest.clone()),
            Who::Kept => Door::Kept(gateway.smtp.clone()),
            Who::OneEach => Door::OneEach(gateway.smtp.clone()),
            Who::PostfixKept => Door::Kept(postfix.smtp.clone()),
            Who::PostfixOneEach => Door::OneEach(postfix.smtp.clone()),
        };
        let job = Job::Send {
            door,
            clients,
            warm_up: u64::try_from(self.measured.as_millis())? / 4,
            measured: self.measured.as_millis().try_into()?,
        };
        let arrived_before = self.arrived().await?;
        let mut load = Mode::start(LOAD, &job, &self.environment)?;
        let load_pid = load.pid()?;
        let server = || match who {
            Who::Bare => usage::process(load_pid),
            _ if who.is_postfix() => postfix.used(),
            _ => usage::process(gateway.pid),
        };
        let watched = match who {
            Who::Bare => Some(load_pid),
            _ if who.is_postfix() => None,
            _ => Some(gateway.pid),
        };
        expect(&mut load, MEASURING).await?;
        let wal_before = self.wal().await?;
        let before = (server()?, usage::tree(self.postgres.pid())?);
        if let Some(pid) = watched {
            usage::forget_peak(pid)?;
        }
        expect(&mut load, MEASURED).await?;
        let mut after = (server()?, usage::tree(self.postgres.pid())?);
        let peak = watched.map(usage::peak).transpose()?;
        let wal = self.wal().await?.saturating_sub(wal_before);
        let report: Report = serde_json::from_str(&load.line().await?)?;
        load.end().await?;

        let arrived = || async {
            let now = self.arrived().await?;
            Ok::<u64, Box<dyn std::error::Error + Send + Sync>>(if who.is_postfix() {
                now.plain - arrived_before.plain
            } else {
                now.submission - arrived_before.submission
            })
        };
        // What is queued is work that is still to be done.
        let deadline = Instant::now() + DRAIN;
        while who.is_postfix() && arrived().await? < report.total && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut of_messages = report.messages;
        if who.is_postfix() {
            after.0 = postfix.used()?;
            of_messages = report.total;
        }
        let arrived = arrived().await?;
        if arrived != report.total {
            let total = report.total;
            return Err(format!("{total} messages were accepted, and {arrived} arrived").into());
        }
        let each = |used: Duration| used.as_secs_f64() * 1_000.0 / summary::float(of_messages);
        Ok(Measured {
            who,
            clients,
            rate: summary::float(report.messages) / report.seconds,
            p50: report.p50,
            p99: report.p99,
            server: each(after.0.saturating_sub(before.0)),
            database: who
                .is_gateway()
                .then(|| each(after.1.saturating_sub(before.1))),
            wal: (who.is_gateway()).then(|| summary::float(wal) / summary::float(of_messages)),
            peak,
        })
    }

    async fn sessions(&self, sessions: usize) -> Outcome<Sessions> {
        let folder = self.own_folder("sessions")?;
        let mut environment = self.environment.clone();
        environment.extend(sessions::settings(sessions));
        let gateway = Gateway::start(&folder, &environment, &self.app, &self.files.ca).await?;
        let arrived = self.arrived().await?.submission;
        let measured = sessions::measure(&gateway, sessions).await?;
        let arrived = self.arrived().await?.submission - arrived;
        gateway.stop().await?;
        if arrived < measured.messages {
            let sent = measured.messages;
            return Err(format!("{sent} messages were accepted, and {arrived} arrived").into());
        }
        Ok(measured)
    }

    fn setup(&self) -> Setup<'_> {
        Setup {
            folder: &self.folder,
            files: &self.files,
            app: &self.app,
            environment: &self.environment,
            postgres: &self.postgres,
            measured: self.measured,
        }
    }

    async fn beside_neighbour(&self) -> Outcome<Vec<Turn>> {
        eprintln!("bench: {}", neighbour::NAME);
        let measured = neighbour::measure(&self.setup()).await;
        measured.map_err(|error| format!("{}: {error}", neighbour::NAME).into())
    }

    async fn webhooks(&self, wanted: impl Fn(&str) -> bool) -> Outcome<WebhookResults> {
        let place = self.setup();
        let mut results = WebhookResults::default();
        for endpoints in webhooks::ENDPOINTS {
            let name = summary::step(endpoints);
            if wanted(&name) {
                eprintln!("bench: {name}");
                let delivered = place.deliver(endpoints).await;
                let delivered = delivered.map_err(|error| format!("{name}: {error}"))?;
                results.delivered.push(delivered);
            }
        }
        if wanted(ONE_AT_A_TIME) {
            eprintln!("bench: {ONE_AT_A_TIME}");
            results.first_byte = Some(place.one_at_a_time().await?);
        }
        Ok(results)
    }

    async fn gateway(&self, name: &str) -> Outcome<Gateway> {
        let folder = self.own_folder(name)?;
        Gateway::start(&folder, &self.environment, &self.app, &self.files.ca).await
    }

    fn own_folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.folder.join(name);
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// Bytes that the database has written ahead since it was made.
    async fn wal(&self) -> Outcome<u64> {
        let mut connection = PgConnection::connect(&self.postgres.url("bench")).await?;
        let bytes: i64 =
            sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
                .fetch_one(&mut connection)
                .await?;
        connection.close().await?;
        Ok(bytes.try_into()?)
    }

    async fn arrived(&self) -> Outcome<Counts> {
        let url = format!("http://127.0.0.1:{}{}", self.ports.http, sink::COUNTS);
        Ok(self.http.get(url).send().await?.json().await?)
    }
}
