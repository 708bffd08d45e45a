//! The fenced blocks of the README.

use std::path::Path;

/// Before the block that it marks: `<!-- sample: send-rest python -->`.
const MARK: &str = "<!-- sample: ";

#[derive(Debug)]
pub struct Block {
    /// What a comment in the line before calls it.
    pub mark: Option<String>,
    /// The word behind the fence.
    pub language: String,
    /// What stands between the fences, without the indentation that they have.
    pub text: String,
    /// The line of its first fence.
    pub line: usize,
}

pub fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    std::fs::read_to_string(path).unwrap()
}

pub fn blocks() -> Vec<Block> {
    parse(&readme())
}

/// The text without its blocks.
pub fn prose() -> String {
    let text = readme();
    let pieces = text.split("```").step_by(2);
    pieces.collect::<Vec<_>>().join("\n")
}

fn parse(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let Some((indentation, language)) = line.split_once("```") else {
            before = line;
            continue;
        };
        if !indentation.trim().is_empty() {
            continue;
        }
        let mut text = String::new();
        loop {
            let (line, _) = lines
                .next()
                .unwrap_or_else(|| panic!("line {number}: the block doesn't end"));
            let line = line.strip_prefix(indentation).unwrap_or(line);
            if line.trim_end() == "```" {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        let mark = before
            .trim()
            .strip_prefix(MARK)
            .and_then(|mark| mark.strip_suffix(" -->"));
        blocks.push(Block {
            mark: mark.map(str::to_owned),
            language: language.to_owned(),
            text,
            line: number,
        });
        before = "";
    }
    blocks
}

#[test]
fn blocks_are_found_wherever_they_stand() {
    let text = "# A\n```sh\na\n\nb\n```\n\n1. c\n\n   ```toml\n   [d]\n   ```\n<!-- sample: e f -->\n```f\ng\n```\n";
    let found: Vec<_> = parse(text)
        .into_iter()
        .map(|block| (block.mark, block.language, block.text, block.line))
        .collect();
    let expected = [
        (None, "sh", "a\n\nb\n", 2),
        (None, "toml", "[d]\n", 10),
        (Some("e f"), "f", "g\n", 14),
    ];
    let expected = expected.map(|(mark, language, text, line)| {
        (
            mark.map(str::to_owned),
            language.to_owned(),
            text.to_owned(),
            line,
        )
    });
    assert_eq!(found, expected);
}
