//! Measures the gateway under load, beside a bare loop of its own submission client and beside Postfix
//! with Dovecot, in one run on one machine: `make bench`.
//!
//! Every party is a process of its own, so that each one's CPU time is its own: this program starts
//! itself again as the provider (`--sink`), as a receiver of webhooks (`--receiver`) and as the clients
//! (`--load`). What comes behind
//! `cargo bench --bench throughput --` chooses steps by words of their names.

mod child;
mod gateway;
mod hostile;
mod load;
mod neighbour;
mod postfix;
mod receiver;
mod sessions;
mod sink;
mod steps;
mod summary;
mod usage;
mod webhooks;

use std::error::Error;
use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

/// The same as the gateway's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What can go wrong is told and ends the run.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    drop(rustls::crypto::ring::default_provider().install_default());
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let ended = match arguments.as_slice() {
        [mode, job] if mode == child::SINK => sink::run(job),
        [mode, job] if mode == child::RECEIVER => receiver::run(job),
        [mode, job] if mode == child::LOAD => load::run(job),
        words => one_thread().and_then(|runtime| runtime.block_on(steps::run(words))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whoever shares the machine with what is measured takes no more than one core of it.
fn one_thread() -> Outcome<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
