//! A mailbox that is connected on the pages leaves an entry in the audit trail, with the user's address.

use super::connect_by_session;
use crate::support::caller::Caller;
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn the_entry_of_a_user_has_the_users_address() {
    let gateway = Gateway::start().await;
    connect_by_session(&gateway, "grace@sandbox.example").await;
    let owner = Caller::owner(&gateway).await;
    let page = owner.get("/audit?action=user.connected&limit=1").await;
    let entry = &page.success(200)["entries"][0];
    assert_eq!(entry["actor"], "user");
    assert_eq!(entry["address"], "127.0.0.1");
    assert_eq!(entry["details"]["email"], "grace@sandbox.example");
    gateway.stop().await;
}
