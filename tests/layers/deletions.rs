//! What is deleted by its age is deleted by a time that has certainly passed.

use super::sources;

/// Statements that remove something.
const REMOVES: [&str; 4] = [
    "DELETE FROM",
    "DROP TABLE",
    "_sealed = NULL",
    "SET kept_since",
];

/// Comparisons with a time of somebody's own.
const BY_TIME: [&str; 7] = [
    "< $",
    "<= $",
    "< now()",
    "<= now()",
    "< clock_timestamp()",
    "<= clock_timestamp()",
    "interval '",
];

/// The functions of a source, from one's name to the next one.
fn functions(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let functions = code.split("fn ").skip(1);
    functions.filter_map(|function| {
        let name = function.split(['(', '<']).next()?;
        let is_name = name
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_');
        is_name.then_some((name, function))
    })
}

/// The functions that delete by age, and those of them that do so by any time.
fn by_age(code: &str) -> (Vec<&str>, Vec<&str>) {
    let has = |function: &str, words: &[&str]| words.iter().any(|word| function.contains(word));
    let by_age = functions(code).filter(|(_, function)| {
        has(function, &REMOVES) && (has(function, &BY_TIME) || function.contains("DROP TABLE"))
    });
    let (certain, wrong): (Vec<_>, Vec<_>) = by_age.partition(|(_, it)| it.contains(": Past"));
    let names = |of: Vec<(_, _)>| of.into_iter().map(|(name, _)| name).collect();
    (names(certain), names(wrong))
}

#[test]
fn nothing_is_deleted_by_the_word_of_one_clock() {
    let mut certain = 0;
    for (module, code) in sources("crates/storage").modules() {
        let (found, wrong) = by_age(code);
        assert!(
            wrong.is_empty(),
            "{}: {wrong:?} must take a Past",
            module.join("/")
        );
        certain += found.len();
    }
    assert!(certain > 18, "only {certain} were found");
}

#[test]
fn the_reader_sees_what_deletes_by_age() {
    let by_now = "async fn forget(now: DateTime<Utc>) { \"DELETE FROM a WHERE at < $1\" }";
    let by_sql = "fn forget() { \"DELETE FROM a WHERE at <= now()\" }";
    let by_past = "fn forget(past: Past) { \"DELETE FROM a WHERE at < $1\" }";
    let by_id = "fn delete(id: Id) { \"DELETE FROM a WHERE id = $1\" }";
    let code = [by_past, by_now, by_id, by_sql].join("\n");
    let found = by_age(&code);
    assert_eq!(found, (vec!["forget"], vec!["forget", "forget"]));
}
