//! Pagination of long lists.

use clap::Args;

/// A part of a list.
#[derive(Debug, Clone, Copy, Args)]
pub struct Page {
    /// Rows at most.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub limit: i64,
    /// Rows to skip.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..=4_294_967_295))]
    pub offset: i64,
}

impl Page {
    /// The text of an empty page: `nothing` if it is the first one.
    pub(super) fn empty(self, nothing: &'static str) -> &'static str {
        if self.offset > 0 {
            "No more rows."
        } else {
            nothing
        }
    }

    /// Notes on standard error that there may be more rows, if the page is full.
    pub(super) fn say_whether_full(self, rows: usize) {
        if i64::try_from(rows).is_ok_and(|rows| rows < self.limit) {
            return;
        }
        let next = self.offset.saturating_add(self.limit);
        eprintln!(
            "mailgate: there may be more: --offset {next} shows the next rows, and --limit takes up to 1000"
        );
    }
}
