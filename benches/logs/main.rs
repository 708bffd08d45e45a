//! Measures the reports over a log of many rows, beside the same over few and beside `count(*)`, and what
//! keeping the counters and indexes for them costs the journal: `make bench-logs`.
//!
//! `BENCH_ROWS` (10,000,000) says how many are many. With `BENCH_DIR` the database stays in that folder
//! and is used again. Words behind `--` choose the parts: `fill`, `reports`, `portal`, `journal`.

mod fill;
mod journal;
mod log;
mod measure;
mod place;
mod portal;
mod searches;

use std::error::Error;
use std::process::ExitCode;

use mailgate_sandbox::postgres::Durability;
use place::Server;
use tokio::runtime::Builder;

/// The same as the gateway's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What can go wrong is told and ends the run.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Rows of the large log unless `BENCH_ROWS` says otherwise, and of the small one.
const ROWS: u64 = 10_000_000;
const FEW: u64 = 10_000;

/// Disk that a row takes with its indexes, and what is written beside it while the log is filled.
const BYTES_PER_ROW: u64 = 900;

fn main() -> ExitCode {
    drop(rustls::crypto::ring::default_provider().install_default());
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let ended = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(&arguments)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-logs: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[String]) -> Outcome<()> {
    tokio::select! {
        ended = run_to_the_end(words) => ended,
        signalled = tokio::signal::ctrl_c() => {
            signalled?;
            Err("interrupted".into())
        }
    }
}

async fn run_to_the_end(words: &[String]) -> Outcome<()> {
    let rows = match std::env::var("BENCH_ROWS") {
        Ok(text) => (text.replace('_', "").parse())
            .map_err(|_| format!("BENCH_ROWS is no whole number: {text}"))?,
        Err(_) => ROWS,
    };
    let wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    if ["fill", "reports", "portal"].into_iter().any(wanted) {
        let server = Server::start("pg", Durability::Throwaway).await?;
        eprintln!(
            "bench-logs: {rows} rows take about {} GB of disk in {}",
            (rows * BYTES_PER_ROW).div_ceil(1_000_000_000),
            server.folder().display()
        );
        let few = server.log("few", FEW).await?;
        let many = server.log("many", rows).await?;
        if wanted("reports") {
            measure::run(&few, &many).await?;
            searches::run(&few, &many).await?;
        }
        if wanted("portal") {
            let environment = server.environment(&many.database);
            portal::run(&many, environment, server.folder()).await?;
        }
        server.stop().await?;
    }
    if wanted("journal") {
        let server = Server::start("pg-journal", Durability::Durable).await?;
        let journal = server.empty("journal").await?;
        journal::run(&journal).await?;
        server.stop().await?;
    }
    Ok(())
}
