//! Running it in production: behind balancers, under systemd, to a clean end, over a database in trouble, and
//! watched.

mod clean_end;
mod database_trouble;
mod logged;
mod observed;
mod observed_mailboxes;
mod observed_requests;
mod observed_subscribers;
mod observed_work;
mod open_files;
mod proxy_protocol;
mod refusing_database;
mod reload;
mod request_log;
mod runbook;
mod second_role;
mod systemd;
mod unable;
mod warnings;
