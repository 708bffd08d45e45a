//! Transactions on connections of the pool. They begin only here.
//!
//! sqlx (0.9) counts a transaction only once the server has answered BEGIN. A caller that is dropped before, as a
//! handler is when its client hangs up, would return a connection to the pool with an open transaction: later writes on
//! it could be rolled back, and later reads would be stale.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sqlx::postgres::PgPool;
use sqlx::{Postgres, SqlStr, Transaction};
use tokio::runtime::Handle;

type Begun = Result<Transaction<'static, Postgres>, sqlx::Error>;

/// Begins a transaction, which is rolled back unless it is committed.
///
/// # Errors
///
/// The pool's or the database's error.
pub async fn begin(pool: &PgPool) -> Begun {
    begin_by(pool, None).await
}

/// Begins a transaction by this statement.
pub(crate) async fn begin_with(pool: &PgPool, statement: SqlStr) -> Begun {
    begin_by(pool, Some(statement)).await
}

async fn begin_by(pool: &PgPool, statement: Option<SqlStr>) -> Begun {
    let connection = pool.acquire().await?;
    Beginning(Some(Transaction::begin(connection, statement))).await
}

/// A BEGIN in progress. If it is dropped, it is still completed, and then rolled back.
struct Beginning(Option<Pin<Box<dyn Future<Output = Begun> + Send>>>);

impl Future for Beginning {
    type Output = Begun;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Begun> {
        let Some(beginning) = &mut self.0 else {
            return Poll::Pending;
        };
        let begun = ready!(beginning.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(begun)
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        let Some(beginning) = self.0.take() else {
            return;
        };
        if let Ok(runtime) = Handle::try_current() {
            // As the pool does when a connection is returned; the pool is closed only after it.
            drop(runtime.spawn(async move { drop(beginning.await) }));
        }
    }
}
