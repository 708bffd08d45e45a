//! What a renewed API secret ends.

mod under_way;
