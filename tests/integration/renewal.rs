//! What a renewed API secret ends.

mod minted;
mod under_way;
