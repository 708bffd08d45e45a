//! The sources of a crate, and what each imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by its path: `[]` is the crate's root.
pub type Module = Vec<String>;

/// The modules of one crate that are files, with their code: neither comments nor tests.
pub struct Sources(BTreeMap<Module, String>);

impl Sources {
    /// Reads all below a crate's `src`.
    pub fn read(root: &Path) -> Self {
        let mut files = Vec::new();
        find(root, "rs", &mut files);
        let modules = files.iter().filter_map(|path| {
            let below = path.strip_prefix(root).expect("below the root");
            let source = fs::read_to_string(path).expect("a source can be read");
            Some((module(below)?, code(&source)))
        });
        Self(modules.collect())
    }

    pub fn of(files: &[(&str, &str)]) -> Self {
        let modules = files
            .iter()
            .filter_map(|(path, source)| Some((module(Path::new(path))?, code(source))));
        Self(modules.collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn modules(&self) -> impl Iterator<Item = (&Module, &String)> {
        self.0.iter()
    }

    /// The other modules that a module takes something from, where it is defined; its own ancestors and
    /// descendants don't count, since a room's root holds what its files add to.
    pub fn imports(&self, from: &Module) -> BTreeSet<Module> {
        paths(&self.0[from])
            .into_iter()
            .filter_map(|path| self.home(from, &path, 0))
            .filter(|to| !to.starts_with(from) && !from.starts_with(to))
            .collect()
    }

    /// The module that a path leads to, through re-exports.
    fn home(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut at = from.clone();
        let mut rest = path.iter().peekable();
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest.next();
            }
            "self" => drop(rest.next()),
            "super" => {}
            first => {
                let mut child = from.clone();
                child.push(first.to_owned());
                if !self.is_module(&child) {
                    return None;
                }
            }
        }
        while rest.next_if(|segment| *segment == "super").is_some() {
            at.pop();
        }
        while let Some(segment) = rest.peek() {
            let mut child = at.clone();
            child.push((*segment).clone());
            if !self.is_module(&child) {
                break;
            }
            at = child;
            rest.next();
        }
        let Some(name) = rest.next() else {
            return Some(at);
        };
        let reexport = (depth < 5)
            .then(|| {
                paths(self.0.get(&at)?)
                    .into_iter()
                    .find(|it| it.last() == Some(name) && it.len() > 1)
            })
            .flatten();
        match reexport {
            Some(path) if at != *from => self.home(&at, &path, depth + 1).or(Some(at)),
            _ => Some(at),
        }
    }

    /// Whether it is a file, or has files below it.
    fn is_module(&self, path: &Module) -> bool {
        let next = self.0.range(path.clone()..).next();
        next.is_some_and(|(module, _)| module.starts_with(path))
    }

    /// Every circle of modules, as the set of its members.
    pub fn circles(&self) -> BTreeSet<BTreeSet<Module>> {
        let reach: BTreeMap<&Module, BTreeSet<Module>> = self
            .0
            .keys()
            .map(|module| (module, self.reached(module)))
            .collect();
        self.0
            .keys()
            .filter(|module| reach[module].contains(*module))
            .map(|module| {
                let mutual = reach[module]
                    .iter()
                    .filter(|other| reach[other].contains(module));
                mutual.cloned().collect()
            })
            .collect()
    }

    fn reached(&self, from: &Module) -> BTreeSet<Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from.clone()];
        while let Some(module) = open.pop() {
            for next in self.imports(&module) {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    }
}

/// The files below a folder with this extension; with an empty one, all.
pub fn find(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            find(&path, ending, found);
        } else if ending.is_empty() || path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
}

/// `None` for tests and fuzz targets, which may look at anything.
fn module(below: &Path) -> Option<Module> {
    let mut module: Module = below
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if module
        .iter()
        .any(|part| part == "tests" || part == "fuzzing")
    {
        return None;
    }
    if module
        .last()
        .is_some_and(|last| last == "lib" || last == "main")
    {
        module.pop();
    }
    Some(module)
}

/// A source without its comments, and without the tests behind it.
fn code(source: &str) -> String {
    let is_of_tests = |position: &usize| {
        let mut behind = source[*position..].lines().skip(1);
        behind
            .find(|line| !line.starts_with(['#', ' ', ')']))
            .is_some_and(|line| line.starts_with("mod tests {"))
    };
    let tests = source
        .match_indices("#[cfg(test)]\n")
        .map(|(position, _)| position)
        .find(is_of_tests);
    let product = &source[..tests.unwrap_or(source.len())];
    let lines = product.lines().map(|line| {
        // An address has the same two strokes.
        let mut strokes = line.match_indices("//").map(|(position, _)| position);
        let comment = strokes.find(|position| !line[..*position].ends_with(':'));
        &line[..comment.unwrap_or(line.len())]
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that a source names: those of `use`, each of a braced list by itself, and those in the code that begin
/// with `crate`, `self` or `super`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for statement in code.split(';') {
        let Some(start) = statement.rfind("use ").filter(|start| {
            statement[..*start]
                .chars()
                .next_back()
                .is_none_or(char::is_whitespace)
        }) else {
            continue;
        };
        expand(statement[start + 4..].trim(), &[], &mut paths);
    }
    for start in ["crate::", "super::", "self::"] {
        for (position, _) in code.match_indices(start) {
            let path: String = code[position..]
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || "_:".contains(*letter))
                .collect();
            paths.push(
                path.split("::")
                    .filter(|it| !it.is_empty())
                    .map(str::to_owned)
                    .collect(),
            );
        }
    }
    paths
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`.
fn expand(tree: &str, before: &[String], paths: &mut Vec<Vec<String>>) {
    let (head, list) = match tree.split_once('{') {
        Some((head, list)) => (head, list.rsplit_once('}').map(|(list, _)| list)),
        None => (tree, None),
    };
    let name = head.split(" as ").next().unwrap_or_default();
    let mut path = before.to_vec();
    let segments = name.split("::").map(str::trim).filter(|it| !it.is_empty());
    path.extend(segments.map(str::to_owned));
    let Some(list) = list else {
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        paths.push(path);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (position, letter) in list.char_indices().chain([(list.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = list[start..position].trim();
                if !part.is_empty() {
                    expand(part, &path, paths);
                }
                start = position + 1;
            }
            _ => {}
        }
    }
}
