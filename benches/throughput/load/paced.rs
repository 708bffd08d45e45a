//! Messages at a rate that doesn't wait for the gateway: each has its time, and what it takes counts from then, so that
//! one that is late makes those behind it late too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::{Client, Done, MEASURED, MEASURING, Outcome, Report, undisturbed};

/// The times that messages are due, for whichever client is free.
type Due = Arc<Mutex<UnboundedReceiver<Instant>>>;

pub(super) async fn measure<C: Client>(
    clients: Vec<C>,
    per_second: u32,
    [warm_up, measured]: [Duration; 2],
) -> Outcome<Report> {
    let (sender, due) = unbounded_channel();
    let due = Arc::new(Mutex::new(due));
    let begun = Instant::now();
    let started = begun + warm_up;
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(send_when_due(client, Arc::clone(&due), started));
    }
    let every = Duration::from_secs(1) / per_second;
    let pacing = std::thread::spawn(move || pace(sender, begun, every, started + measured));
    undisturbed(&mut tasks, warm_up).await?;
    println!("{MEASURING}");
    undisturbed(&mut tasks, measured).await?;
    println!("{MEASURED}");
    // The clients end once it is dropped.
    drop(pacing.join().map_err(|_| "the pace was lost")?);
    let mut all = Done::default();
    while let Some(ended) = tasks.join_next().await {
        let done = ended??;
        all.total += done.total;
        all.took.extend(done.took);
    }
    Report::of(all, measured.as_secs_f64())
}

/// A thread sleeps to some 50 microseconds, where the runtime's timers know whole milliseconds.
fn pace(
    sender: UnboundedSender<Instant>,
    begun: Instant,
    every: Duration,
    end: Instant,
) -> UnboundedSender<Instant> {
    let mut due = begun;
    while due < end {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if sender.send(due).is_err() {
            break;
        }
        due += every;
    }
    sender
}

async fn send_when_due<C: Client>(mut client: C, due: Due, started: Instant) -> Outcome<Done> {
    let mut done = Done::default();
    loop {
        let next = due.lock().await.recv().await;
        let Some(due) = next else {
            return Ok(done);
        };
        client.send().await?;
        done.total += 1;
        if due >= started {
            done.took.push(due.elapsed().as_micros().try_into()?);
        }
    }
}
