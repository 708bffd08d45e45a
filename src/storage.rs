//! Floor 1: the only SQL. One file per table, free functions over a connection; transactions begin
//! on floor 2.

pub mod apps;
pub mod audit_entries;
pub mod batch_loader;
pub mod billing_jobs;
pub mod billing_notices;
pub mod deleted_apps;
pub mod email_attempts;
pub mod email_counters;
pub mod email_logs;
pub mod end_users;
pub mod gateways;
pub mod idempotency_keys;
pub mod journal;
pub mod known;
pub mod log_retention;
pub mod mailbox_pace;
pub mod mailboxes;
pub mod outage;
pub mod partitions;
pub mod payprov_events;
pub mod pool;
pub mod readiness;
pub mod refusal;
pub mod refusals;
pub mod replies;
pub mod sealed;
pub mod spool;
pub mod subscribers;
pub mod used_links;
pub mod waiting;
pub mod webhook_configs;
pub mod webhook_counters;
pub mod webhook_deliveries;
pub mod webhook_messages;
pub mod webhook_queue;
