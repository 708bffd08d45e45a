//! Distinguishes permanent from temporary database errors.

use sqlx::error::DatabaseError;

/// Whether the database permanently refuses its input: a value that it can't hold, a constraint, or a limit of its
/// own such as that of an index row (SQLSTATE classes 22, 23 and 54). The same input would be refused again, from any
/// caller.
#[must_use]
pub fn is_refusal(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code().unwrap_or_default();
    !lacks_partition(error.as_ref()) && matches!(code.get(..2), Some("22" | "23" | "54"))
}

/// Whether a row's day has no partition yet.
#[must_use]
pub fn is_of_missing_day(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if lacks_partition(error.as_ref()))
}

/// A missing partition is reported as a CHECK without a name.
fn lacks_partition(error: &dyn DatabaseError) -> bool {
    error.code().as_deref() == Some("23514") && error.constraint().is_none()
}

/// Whether a statement was cancelled because it took too long (SQLSTATE `57014`).
#[must_use]
pub fn is_timeout(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error.code().as_deref() == Some("57014")
}

/// Whether the error is unrelated to the input: a deadlock, lack of resources, a lock, a requested shutdown (SQLSTATE
/// classes 40, 53, 55, 57 and 58).
#[must_use]
pub fn is_passing(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code().unwrap_or_default();
    matches!(code.get(..2), Some("40" | "53" | "55" | "57" | "58"))
}
