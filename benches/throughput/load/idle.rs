//! Connections that authenticate and then say nothing.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::smtp::Login;
use super::{MEASURING, Outcome, SmtpServer};
use crate::child::left_alone;

/// Handshakes under way at once.
const AT_ONCE: usize = 32;

/// Says [`MEASURING`] once all are there.
pub(super) async fn hold(server: &SmtpServer, connections: usize) -> Outcome<()> {
    let login = Arc::new(Login::new(server)?);
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
    left_alone().await
}
