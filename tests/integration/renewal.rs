//! What a renewed API secret ends.

mod address;
mod minted;
mod under_way;
