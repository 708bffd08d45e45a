//! Distinguishes a database that is unavailable from one that refuses. [`super::readiness`] reports an outage and its
//! cause once; all other code that meets it logs at `debug` only, through [`trouble!`].

/// An error that may be due to an unavailable database.
pub trait Outage {
    /// Whether it is due to one.
    fn is_outage(&self) -> bool;
}

impl Outage for sqlx::Error {
    fn is_outage(&self) -> bool {
        match self {
            Self::Io(_) | Self::PoolTimedOut | Self::PoolClosed | Self::WorkerCrashed => true,
            Self::Database(error) => error.code().is_some_and(|code| is_of_outage(&code)),
            _ => false,
        }
    }
}

/// Whether a SQLSTATE means that the database as a whole can't be used: connection exceptions (class 08); a role that
/// can't log in, such as after its password was changed (class 28); a missing database (`3D000`); a server that is
/// shutting down, has crashed or is starting up, one that has no connection left for this role, and a standby or
/// another read-only database.
fn is_of_outage(code: &str) -> bool {
    let class = code.get(..2);
    matches!(class, Some("08" | "28"))
        || matches!(
            code,
            "3D000" | "57P01" | "57P02" | "57P03" | "57P04" | "53300" | "25006"
        )
}

/// Logs a failed database operation: `trouble!(warn, error, log_id = %id, "what failed")`. During an outage the line
/// is logged at `debug`, whatever its level.
#[macro_export]
macro_rules! trouble {
    ($level:ident, $error:ident, $($line:tt)+) => {{
        use $crate::database::outage::Outage as _;

        if $error.is_outage() {
            tracing::debug!(error = %$error, $($line)+);
        } else {
            tracing::$level!(error = %$error, $($line)+);
        }
    }};
}

pub use crate::trouble;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_database_says_is_no_outage() {
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        for (error, is_outage) in [
            (sqlx::Error::Io(broken), true),
            (sqlx::Error::PoolTimedOut, true),
            (sqlx::Error::PoolClosed, true),
            (sqlx::Error::RowNotFound, false),
            (sqlx::Error::Protocol("nonsense".to_owned()), false),
        ] {
            assert_eq!(error.is_outage(), is_outage, "{error}");
        }
        for (code, is_outage) in [
            ("08006", true),
            ("28P01", true),
            ("28000", true),
            ("53300", true),
            ("3D000", true),
            ("57P03", true),
            ("57014", false),
            ("53100", false),
            ("23505", false),
            ("42501", false),
            ("", false),
        ] {
            assert_eq!(is_of_outage(code), is_outage, "{code}");
        }
    }
}
