//! Tells a database that is not there from one that refuses. [`super::readiness`] says once that it is not there,
//! and why; whoever else meets the outage logs it at `debug` alone, by [`trouble!`].

/// An error that may come of a database that is not there.
pub trait Outage {
    /// Whether it does.
    fn is_outage(&self) -> bool;
}

impl Outage for sqlx::Error {
    fn is_outage(&self) -> bool {
        match self {
            Self::Io(_) | Self::PoolTimedOut | Self::PoolClosed | Self::WorkerCrashed => true,
            // Connection exceptions (class 08), a server that ends, has crashed or is still starting, and a standby,
            // which only reads.
            Self::Database(error) => error.code().is_some_and(|code| {
                code.starts_with("08")
                    || matches!(code.as_ref(), "57P01" | "57P02" | "57P03" | "25006")
            }),
            _ => false,
        }
    }
}

/// Logs what the database couldn't do: `trouble!(warn, error, log_id = %id, "what failed")`. While the database is
/// not there the line is written at `debug`, whatever its level.
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
