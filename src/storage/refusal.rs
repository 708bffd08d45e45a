//! Tells what the database will never take from what it can't take at the moment.

/// Whether the database refuses what it was given for good: a value that it can't hold, a constraint, or a
/// limit of its own such as that of an index row (SQLSTATE classes 22, 23 and 54). The same again would be
/// refused again, whoever asks.
#[must_use]
pub fn is_refusal(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code().unwrap_or_default();
    // A partition that is still to be made is reported as a CHECK of no name.
    let lacks_partition = code == "23514" && error.constraint().is_none();
    !lacks_partition && matches!(code.get(..2), Some("22" | "23" | "54"))
}

/// Whether the database is held up by something else than what it was given: a deadlock, a lack of room, a lock,
/// an end that was asked for (SQLSTATE classes 40, 53, 55, 57 and 58).
#[must_use]
pub fn is_passing(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code().unwrap_or_default();
    matches!(code.get(..2), Some("40" | "53" | "55" | "57" | "58"))
}
