//! The programs in `examples/`.

use std::collections::BTreeSet;
use std::fs;

use super::blocks::{Page, root};
use super::languages::Language::{self, Go, JavaScript, Php, Python, Ruby};

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    SendByRest,
    SendBySmtp,
    Receive,
}

use Task::{Receive, SendByRest, SendBySmtp};

/// Each of them, by its path below `examples/`. For each task a test runs those of all languages.
const EXAMPLES: [(Language, Task, &str); 15] = [
    (Python, SendByRest, "python/send_rest.py"),
    (Python, SendBySmtp, "python/send_smtp.py"),
    (Python, Receive, "python/receive_webhooks.py"),
    (JavaScript, SendByRest, "javascript/send-rest.mjs"),
    (JavaScript, SendBySmtp, "javascript/send-smtp.mjs"),
    (JavaScript, Receive, "javascript/receive-webhooks.mjs"),
    (Php, SendByRest, "php/send-rest.php"),
    (Php, SendBySmtp, "php/send-smtp.php"),
    (Php, Receive, "php/receive-webhooks.php"),
    (Ruby, SendByRest, "ruby/send_rest.rb"),
    (Ruby, SendBySmtp, "ruby/send_smtp.rb"),
    (Ruby, Receive, "ruby/receive_webhooks.rb"),
    (Go, SendByRest, "go/send-rest/main.go"),
    (Go, SendBySmtp, "go/send-smtp/main.go"),
    (Go, Receive, "go/receive-webhooks/main.go"),
];

/// The path of a program from the repository's root.
pub fn path(language: Language, task: Task) -> String {
    let of_both = |(its, does, _): &&(Language, Task, &str)| *its == language && *does == task;
    let (_, _, path) = EXAMPLES.iter().find(of_both).expect("one for each");
    format!("examples/{path}")
}

/// All of them.
pub fn texts() -> Vec<String> {
    let paths = EXAMPLES.iter().map(|(_, _, path)| path);
    paths
        .map(|path| fs::read_to_string(root().join("examples").join(path)).unwrap())
        .collect()
}

#[test]
fn every_file_is_run_and_shown() {
    let top = root().join("examples");
    let mut found = BTreeSet::new();
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(&top).unwrap();
                found.insert(path.to_str().unwrap().to_owned());
            }
        }
    }
    assert!(found.remove("README.md"));
    let run = EXAMPLES.map(|(_, _, path)| path.to_owned());
    assert_eq!(found, BTreeSet::from(run));
    let sending = Page::named("docs/sending.md").text;
    let webhooks = Page::named("docs/webhooks.md").text;
    let index = Page::named("examples/README.md").text;
    for (_, task, path) in EXAMPLES {
        let page = if task == Receive { &webhooks } else { &sending };
        assert!(page.contains(&format!("](../examples/{path})")), "{path}");
        assert!(index.contains(&format!("]({path})")), "{path}");
    }
}
