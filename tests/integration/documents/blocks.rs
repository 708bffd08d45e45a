//! The documents, and the fenced blocks in them.

use std::path::{Path, PathBuf};

/// The documents beside those in `docs/`.
const BESIDE: [&str; 4] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "examples/README.md",
];

/// A document.
#[derive(Debug)]
pub struct Page {
    /// From the repository's root.
    pub path: String,
    pub text: String,
}

#[derive(Debug)]
pub struct Block {
    /// The path of its document.
    pub page: String,
    /// The word behind the fence.
    pub language: String,
    /// What stands between the fences, without the indentation that they have.
    pub text: String,
    /// The line of its first fence.
    pub line: usize,
}

impl Page {
    pub fn named(path: &str) -> Self {
        let text = std::fs::read_to_string(root().join(path));
        Self {
            path: path.to_owned(),
            text: text.unwrap_or_else(|error| panic!("{path}: {error}")),
        }
    }

    /// The text without its blocks.
    pub fn prose(&self) -> String {
        let pieces = self.text.split("```").step_by(2);
        pieces.collect::<Vec<_>>().join("\n")
    }
}

impl Block {
    /// Where it stands.
    pub fn place(&self) -> String {
        format!("{}, line {}", self.page, self.line)
    }
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub fn pages() -> Vec<Page> {
    let docs = root().join("docs");
    let mut paths: Vec<String> = std::fs::read_dir(docs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension().is_some_and(|it| it == "md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    paths.sort();
    let beside = BESIDE.iter().map(|path| Page::named(path));
    beside
        .chain(paths.iter().map(|path| Page::named(path)))
        .collect()
}

pub fn blocks() -> Vec<Block> {
    pages().iter().flat_map(parse).collect()
}

fn parse(page: &Page) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let Some((indentation, language)) = line.split_once("```") else {
            continue;
        };
        if !indentation.trim().is_empty() {
            continue;
        }
        let mut text = String::new();
        loop {
            let (line, _) = lines
                .next()
                .unwrap_or_else(|| panic!("{}, line {number}: the block doesn't end", page.path));
            let line = line.strip_prefix(indentation).unwrap_or(line);
            if line.trim_end() == "```" {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        blocks.push(Block {
            page: page.path.clone(),
            language: language.to_owned(),
            text,
            line: number,
        });
    }
    blocks
}

#[test]
fn blocks_are_found_wherever_they_stand() {
    let text = "# A\n```sh\na\n\nb\n```\n\n1. c\n\n   ```toml\n   [d]\n   ```\n";
    let page = Page {
        path: "a.md".to_owned(),
        text: text.to_owned(),
    };
    let found: Vec<_> = parse(&page)
        .into_iter()
        .map(|block| (block.place(), block.language, block.text))
        .collect();
    let expected = [
        ("a.md, line 2", "sh", "a\n\nb\n"),
        ("a.md, line 10", "toml", "[d]\n"),
    ];
    let expected = expected
        .map(|(place, language, text)| (place.to_owned(), language.to_owned(), text.to_owned()));
    assert_eq!(found, expected);
}
