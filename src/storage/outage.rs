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
            // Connection exceptions (class 08), a server that is shutting down, has crashed or is starting up, one that
            // has no connection left, and a standby or another read-only database.
            Self::Database(error) => error.code().is_some_and(|code| {
                code.starts_with("08")
                    || matches!(
                        code.as_ref(),
                        "57P01" | "57P02" | "57P03" | "53300" | "25006"
                    )
            }),
            _ => false,
        }
    }
}

/// Logs a failed database operation: `trouble!(warn, error, log_id = %id, "what failed")`. During an outage the line
/// is logged at `debug`, whatever its level.
macro_rules! trouble {
    ($level:ident, $error:ident, $($line:tt)+) => {{
        use $crate::storage::outage::Outage as _;

        if $error.is_outage() {
            tracing::debug!(error = %$error, $($line)+);
        } else {
            tracing::$level!(error = %$error, $($line)+);
        }
    }};
}

pub(crate) use trouble;

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
    }
}
