//! Sessions that authenticate and then say nothing, until every hundredth of them sends a message.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::smtp::Login;
use super::{MEASURED, MEASURING, Outcome, SmtpServer};
use crate::child::{go_ahead, left_alone};

/// Handshakes under way at once.
const AT_ONCE: usize = 32;

/// One session of so many sends a message.
const EVERY: usize = 100;

/// Says [`MEASURING`] once all are there, and, asked to go ahead, [`MEASURED`] once the messages are sent; then how
/// many they were.
pub(super) async fn hold(server: &SmtpServer, source: Ipv4Addr, connections: usize) -> Outcome<()> {
    let login = Arc::new(Login::new(server)?.from(IpAddr::V4(source)));
    let mut open = Vec::with_capacity(connections);
    let mut opening = JoinSet::new();
    while open.len() < connections {
        while opening.len() < AT_ONCE && open.len() + opening.len() < connections {
            let login = Arc::clone(&login);
            opening.spawn(async move { login.connect().await });
        }
        if let Some(connected) = opening.join_next().await {
            open.push(connected??);
        }
    }
    println!("{MEASURING}");
    go_ahead().await?;
    let mut sent = 0_u64;
    for connection in open.iter_mut().step_by(EVERY) {
        login.send(connection).await?;
        sent += 1;
    }
    println!("{MEASURED}");
    println!("{sent}");
    left_alone().await
}
