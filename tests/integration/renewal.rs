//! What a renewed API secret ends.

mod address;
mod mailed;
mod many;
mod minted;
mod overlapping;
mod under_way;
