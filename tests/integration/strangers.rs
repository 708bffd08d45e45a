//! What strangers can make the gateway hold, and how long: memory, connections, room for messages, the database.

mod bodies;
mod connections;
mod database;
mod form;
mod http2;
pub mod raw;
mod resets;
mod shares;
mod stall;
