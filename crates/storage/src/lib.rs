//! Floor 1: all SQL is here. One file per table, with free functions over a connection; transactions begin on
//! floor 2. The triggers on a table are listed at the top of its file, with their migrations.
//!
//! A transaction that locks several of these locks them in this order, so that no two wait for each other: the
//! subscriber's credentials (an advisory lock, see `credentials`), the subscriber, its apps by id, their mailboxes, the
//! subscriber's billing jobs, the counters. A transaction that writes a mailbox and then anything later in this order
//! must keep its app first.

pub mod acme_accounts;
pub mod acme_challenges;
pub mod api_secrets;
pub mod apps;
pub mod audit_entries;
pub mod billing_jobs;
pub mod billing_notices;
pub mod bounced_messages;
pub mod bounces;
pub mod certificates;
pub mod clock_set;
pub mod credentials;
pub mod database;
pub mod deleted_apps;
pub mod email_attempts;
pub mod email_changes;
pub mod email_counters;
pub mod email_logs;
pub mod end_users;
pub mod gateways;
pub mod holdings;
pub mod idempotency_keys;
pub mod key_uses;
pub mod log_indexes;
pub mod log_retention;
pub mod mailbox_pace;
pub mod mailboxes;
pub mod minted;
pub mod partitions;
pub mod payprov_events;
pub mod portal_links;
pub mod portal_sessions;
pub mod queue_length;
pub mod refusals;
pub mod replies;
pub mod sealed;
pub mod send_keys;
pub mod sign_of_life;
pub mod signing_secrets;
pub mod spool;
pub mod subscribers;
pub mod suppressions;
pub mod used_links;
pub mod webhook_configs;
pub mod webhook_counters;
pub mod webhook_deliveries;
pub mod webhook_endpoints;
pub mod webhook_messages;
pub mod webhook_queue;
