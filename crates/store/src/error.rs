//! What can go wrong, and whether coming back later helps.

use std::error::Error;

use chart_index_domain::ReadError;

type Cause = Box<dyn Error + Send + Sync>;

/// A write or a check of the catalogue that failed. Nothing of it was kept: writes are transactions.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// PostgreSQL is away, starting, or too busy: the same call may succeed later.
    #[error("{operation}: not available")]
    Unavailable {
        /// What was being done, e.g. `put chartset`.
        operation: &'static str,
        /// Why.
        #[source]
        source: Cause,
    },
    /// PostgreSQL rejected the values of this call, or holds values for it that this binary never writes: the same
    /// call fails again, and calls with other values need not.
    #[error("{operation}: rejected")]
    Rejected {
        /// What was being done.
        operation: &'static str,
        /// Why.
        #[source]
        source: Cause,
    },
    /// PostgreSQL refused whatever the values are: no permission, no such table.
    #[error("{operation}: failed")]
    Failed {
        /// What was being done.
        operation: &'static str,
        /// Why.
        #[source]
        source: Cause,
    },
}

impl StoreError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Whether the values of this call are at fault, so that another call may succeed.
    #[must_use]
    pub const fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    pub(crate) fn new(operation: &'static str, error: sqlx::Error) -> Self {
        if is_unavailable(&error) {
            Self::Unavailable { operation, source: error.into() }
        } else if is_rejection(&error) {
            Self::Rejected { operation, source: error.into() }
        } else {
            Self::Failed { operation, source: error.into() }
        }
    }
}

/// The error of a read.
pub(crate) fn read_error(operation: &'static str, error: sqlx::Error) -> ReadError {
    if is_unavailable(&error) {
        ReadError::Unavailable { operation, source: error.into() }
    } else {
        ReadError::Failed { operation, source: error.into() }
    }
}

/// Something in a row that no row of this catalogue holds.
pub(crate) fn corrupt(error: impl Into<Cause>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}

/// Whether the connection is gone, as after a restart of the server, so that another one may serve.
pub(crate) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        // An administrator ended the connection; the server crashed; the session was idle too long.
        _ => matches!(sqlstate(error).as_deref(), Some("57P01" | "57P02" | "57P05")),
    }
}

/// Whether PostgreSQL was not reached: no connection, none in time, or one that was lost, also at its beginning.
pub(crate) fn is_connection_failure(error: &sqlx::Error) -> bool {
    use sqlx::Error::{Io, PoolTimedOut, Tls, WorkerCrashed};
    if matches!(error, Io(_) | Tls(_) | PoolTimedOut | WorkerCrashed) {
        return true;
    }
    let Some(code) = sqlstate(error) else { return false };
    // Connection exceptions; too many connections; shutdown, crash, start-up, idle session.
    code.starts_with("08") || code == "53300" || code.starts_with("57P")
}

/// Whether the same transaction may pass when it is run again: it lost against another one.
pub(crate) fn is_lost_race(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error).as_deref(), Some("40001" | "40P01"))
}

/// Whether a lock did not come free within `lock_timeout`.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    sqlstate(error).as_deref() == Some("55P03")
}

/// Whether a table is missing: the migrations have not run.
pub(crate) fn is_undefined_table(error: &sqlx::Error) -> bool {
    sqlstate(error).as_deref() == Some("42P01")
}

fn is_unavailable(error: &sqlx::Error) -> bool {
    use sqlx::Error::{Io, PoolClosed, PoolTimedOut, Tls, WorkerCrashed};
    if matches!(error, Io(_) | Tls(_) | PoolClosed | PoolTimedOut | WorkerCrashed) {
        return true;
    }
    let Some(code) = sqlstate(error) else { return false };
    // Classes: connection exceptions, lost races, out of memory, disk or connections, and the operator's
    // interventions, which are the end of a statement that took too long, shutdown and start-up.
    ["08", "40", "53", "57"].iter().any(|class| code.starts_with(class)) || is_lock_timeout(error)
}

/// Classes: values that a type cannot hold, violated constraints, and limits of PostgreSQL, such as the size of a row.
fn is_rejection(error: &sqlx::Error) -> bool {
    use sqlx::Error::{ColumnDecode, Decode, Encode};
    if matches!(error, ColumnDecode { .. } | Decode(_) | Encode(_)) {
        return true;
    }
    sqlstate(error).is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.starts_with(class)))
}

fn sqlstate(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}
