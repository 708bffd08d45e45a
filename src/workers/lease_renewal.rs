//! Renews this process's lease for as long as it sends, independent of other work, and ends the expired leases of
//! others.

use std::time::Duration;

use super::clock::ClockWatch;
use mailgate_domain::sending::LeaseKeeper;
use mailgate_server::shutdown::Shutdown;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::readiness::Readiness;

/// How often the lease is renewed: a dozen times within its length.
const EVERY: Duration = Duration::from_secs(1);

/// Runs until sending has stopped, or until another process has ended this one, which then shuts down. Logs changes of
/// the number of live gateways.
pub async fn run(
    mut keeper: LeaseKeeper,
    readiness: Readiness,
    living: impl Fn(usize) + Send,
    shutdown: Shutdown,
) {
    let mut known = 1;
    let mut clock = ClockWatch::default();
    let nobody_sends = keeper.nobody_sends().clone();
    while !keeper.lease().has_ended() {
        let confirmed = keeper.confirm().await;
        readiness.lease_renewed(confirmed.as_ref().err());
        if let Err(error) = confirmed {
            trouble!(
                error,
                error,
                "this process's lease can't be renewed; nothing is sent until it is"
            );
        }
        if let Some(ahead) = keeper.clock().ahead() {
            clock.look(ahead);
        }
        if keeper.lease().living() != known {
            known = keeper.lease().living();
            tracing::info!(
                gateways = known,
                "the number of living gateways has changed"
            );
            living(known);
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = keeper.lease().ended() => {}
            () = nobody_sends.cancelled() => {
                if let Err(error) = keeper.end().await {
                    trouble!(warn, error, "the end of this process can't be recorded; its lease will expire");
                }
                return;
            }
        }
    }
    shutdown.fail("another gateway has ended this one, whose lease had expired, and has taken over its messages".to_owned());
}
