//! Dropping old days while messages are logged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::Days;
use mailgate_storage::partitions;
use mailgate_types::clock::Clock;
use sqlx::Executor as _;

use crate::support::gateway::Gateway;
use crate::support::retention::{kept_for, look_after};

/// Longest that a message may take meanwhile, and that a day may take to go: much longer than they do, for
/// machines that do other things beside.
const STALL: Duration = Duration::from_secs(3);
const DAY: Duration = Duration::from_millis(500);

/// How long somebody goes on reading the oldest day.
const READ: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn old_days_go_in_no_time_and_hold_up_nobody() {
    let gateway = Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .start()
        .await;
    let today = gateway.clock.now().date_naive();
    let mut connection = gateway.database().await;
    for back in 1..=90 {
        let day = today - Days::new(back);
        partitions::create(&mut connection, day).await.unwrap();
    }
    // Whoever reads the old days keeps them from going, and must not keep messages from coming.
    let mut reader = gateway.database().await;
    reader.execute("BEGIN").await.unwrap();
    reader
        .execute("SELECT count(*) FROM email_logs")
        .await
        .unwrap();

    let dropped = AtomicBool::new(false);
    let dropping = async {
        let began = Instant::now();
        look_after(&gateway, kept_for(30)).await;
        dropped.store(true, Ordering::Relaxed);
        began.elapsed()
    };
    let sending = async {
        let (mut longest, mut sent, began) = (Duration::ZERO, 0, Instant::now());
        while !dropped.load(Ordering::Relaxed) {
            let one = Instant::now();
            let (status, answer) = gateway.send_to("bob@example.com").await;
            assert_eq!(status, 200, "{answer}");
            longest = longest.max(one.elapsed());
            sent += 1;
            if began.elapsed() > READ {
                // Only once.
                drop(reader.execute("COMMIT").await);
            }
        }
        (longest, sent, began.elapsed())
    };
    let (took, (longest, sent, all)) = tokio::join!(dropping, sending);
    println!("60 days went in {took:?}, {sent} messages meanwhile, the longest took {longest:?}");
    assert!(all >= READ, "nobody waited for the reader: {all:?}");
    assert!(longest < STALL, "a message took {longest:?}");
    assert!(took < READ + 60 * 2 * DAY, "60 days took {took:?}");
    let left: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'email\\_logs\\_%'
         AND relname < $1",
    )
    .bind(format!(
        "email_logs_{}",
        (today - Days::new(30)).format("%Y%m%d")
    ))
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(left, 0);
    gateway.stop().await;
}
