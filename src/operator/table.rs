//! Tables for the commands' text output.

use std::fmt::Write as _;

/// Untrusted text, without characters that affect a terminal: controls, line separators, and changes of text direction.
pub(super) fn plain(text: &str) -> String {
    let acts = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let shown = text.chars().map(|it| if acts(it) { '?' } else { it });
    shown.collect()
}

/// Rows of cells; the first row has the column names.
#[derive(Debug)]
pub(super) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(super) fn new(names: [&str; COLUMNS]) -> Self {
        Self {
            rows: vec![names.map(str::to_owned)],
        }
    }

    pub(super) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| plain(&cell)));
    }

    /// All lines, without trailing spaces.
    pub(super) fn text(&self) -> String {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                // Writing to a `String` can't fail.
                let _ = write!(line, "{cell:<width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_plain() {
        let mut table = Table::new(["A", "B"]);
        table.row(["één".to_owned(), "x\u{1b}[2J".to_owned()]);
        assert_eq!(table.text(), "A    B\néén  x?[2J\n");
    }
}
