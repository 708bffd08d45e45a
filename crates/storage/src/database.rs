//! The database itself, not one of its tables: its pool, transactions, migrations, outages, and code shared by several
//! tables.

pub mod batch_loader;
pub mod error_class;
pub mod journal;
pub mod left_backends;
pub mod outage;
pub mod pool;
pub mod query_cache;
pub mod readiness;
pub mod tables;
pub mod transaction;
pub mod url;
pub mod wal_archive;
