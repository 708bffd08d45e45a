//! A loop that panics ends its process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use mailgate_types::clock::{Clock, SystemClock};
use tokio::net::TcpStream;

use crate::support::gateway::Gateway;

/// A clock whose reader panics, once it is broken.
#[derive(Debug, Default)]
struct Brittle(AtomicBool);

impl Clock for Brittle {
    fn now(&self) -> DateTime<Utc> {
        assert!(!self.0.load(Ordering::Relaxed), "the clock is broken");
        SystemClock.now()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_worker_has_panicked_ends_and_says_why() {
    let clock = Arc::new(Brittle::default());
    let gateway = Gateway::builder().clock(clock.clone()).start().await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    assert_eq!(gateway.failure(), None);
    clock.0.store(true, Ordering::Relaxed);
    gateway
        .eventually("the end", async |gateway| gateway.failure().is_some())
        .await;
    let why = gateway.failure().unwrap();
    assert!(why.contains("has panicked"), "{why}");
    assert!(why.contains("the clock is broken"), "{why}");
    let http = gateway.daemon.http_address;
    gateway
        .eventually("closed doors", async |_| {
            TcpStream::connect(http).await.is_err()
        })
        .await;
}
