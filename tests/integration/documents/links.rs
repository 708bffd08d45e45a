//! Every link in the documents leads somewhere, and everything can be found from the top.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::blocks::{Page, pages, root};

/// Lines that the first page may have.
const FIRST_PAGE: usize = 200;

/// What GitHub calls a heading.
pub fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// The anchors of a document's headings.
pub fn anchors(page: &Page) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let prose = page.prose();
    for line in prose.lines().filter(|line| line.starts_with('#')) {
        let anchor = anchor(line.trim_start_matches('#').trim());
        assert!(anchors.insert(anchor), "{}: {line} is twice", page.path);
    }
    anchors
}

/// The places in the repository that a document links to: paths from its root, with anchors.
fn targets(page: &Page) -> Vec<(PathBuf, Option<String>)> {
    let prose = page.prose();
    let links = prose.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split(')').next());
    links
        .filter(|link| !link.starts_with("https://"))
        .map(|link| {
            let (path, anchor) = match link.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor.to_owned())),
                None => (link, None),
            };
            let target = if path.is_empty() {
                PathBuf::from(&page.path)
            } else {
                let folder = Path::new(&page.path).parent().unwrap();
                level(&folder.join(path))
            };
            (target, anchor)
        })
        .collect()
}

/// Without `..`.
fn level(path: &Path) -> PathBuf {
    let mut leveled = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            assert!(leveled.pop(), "{} leads out", path.display());
        } else {
            leveled.push(component);
        }
    }
    leveled
}

#[test]
fn every_link_leads_somewhere() {
    let mut count = 0;
    for page in pages() {
        for (target, anchor) in targets(&page) {
            let shown = format!("{}: {} {anchor:?}", page.path, target.display());
            assert!(root().join(&target).exists(), "{shown}");
            if let Some(anchor) = anchor {
                let target = Page::named(target.to_str().unwrap());
                assert!(anchors(&target).contains(&anchor), "{shown}");
            }
            count += 1;
        }
    }
    assert!(count > 150, "{count}");
}

#[test]
fn every_document_is_found_from_the_first_page_and_from_the_index() {
    let wanted: BTreeSet<PathBuf> = pages()
        .into_iter()
        .map(|page| PathBuf::from(page.path))
        .filter(|path| !path.ends_with("docs/README.md") && path != Path::new("README.md"))
        .collect();
    for top in ["README.md", "docs/README.md"] {
        let linked: BTreeSet<PathBuf> = targets(&Page::named(top))
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        let missing: Vec<_> = wanted.difference(&linked).collect();
        assert!(missing.is_empty(), "{top} doesn't lead to {missing:?}");
    }
}

#[test]
fn the_first_page_is_short() {
    let lines = Page::named("README.md").text.lines().count();
    assert!(lines <= FIRST_PAGE, "{lines} lines");
}
