//! Errors, classified by whether a retry may succeed.

use std::error::Error;

use chart_index_domain::ReadError;
use chart_index_instrumentation::ErrorType;
use chart_index_objects::ObjectError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::time_limit::is_no_response;

type Cause = Box<dyn Error + Send + Sync>;

/// A write or a check that failed.
///
/// After [`Unavailable`](Self::Unavailable) the transaction may have been committed: the connection may have
/// been lost during its `COMMIT`. After the other errors nothing changed, except that
/// [`Store::migrate`](crate::Store::migrate) commits each migration on its own.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// PostgreSQL is unavailable, starting or overloaded, or the object store is. A retry may succeed.
    #[error("{operation}: unavailable")]
    Unavailable {
        /// What failed, such as `put chartset`.
        operation: &'static str,
        /// The error of PostgreSQL or of the connection.
        #[source]
        source: Cause,
    },
    /// PostgreSQL rejected the values of this call, or contains values that this program never writes. A retry
    /// fails, but calls with other values may succeed.
    #[error("{operation}: rejected by the database")]
    Rejected {
        /// What failed.
        operation: &'static str,
        /// The error of PostgreSQL or of the connection.
        #[source]
        source: Cause,
    },
    /// PostgreSQL fails for all values, for example because a permission or a table is missing.
    #[error("{operation}: database error")]
    Failed {
        /// What failed.
        operation: &'static str,
        /// The error of PostgreSQL or of the connection.
        #[source]
        source: Cause,
    },
}

impl StoreError {
    /// Whether a retry may succeed.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Whether the values of this call were rejected, so that calls with other values may succeed.
    #[must_use]
    pub const fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    /// Whether a retry of the transaction may succeed, which conflicted with another one.
    pub(crate) fn is_transaction_conflict(&self) -> bool {
        let (Self::Unavailable { source, .. } | Self::Rejected { source, .. } | Self::Failed { source, .. }) =
            self;
        source.downcast_ref().is_some_and(is_transaction_conflict)
    }

    pub(crate) fn new(operation: &'static str, error: sqlx::Error) -> Self {
        if is_unavailable(&error) {
            Self::Unavailable { operation, source: cause(error) }
        } else if is_rejection(&error) {
            Self::Rejected { operation, source: cause(error) }
        } else {
            Self::Failed { operation, source: cause(error) }
        }
    }
}

/// Converts the error of a read.
pub(crate) fn read_error(operation: &'static str, error: sqlx::Error) -> ReadError {
    if is_unavailable(&error) {
        ReadError::Unavailable { operation, source: cause(error) }
    } else {
        ReadError::Failed { operation, source: cause(error) }
    }
}

/// Creates the error for a read or a write of an object, in a transaction or beside it. sqlx itself uses this
/// variant for another kind of pool only.
pub(crate) fn object_error(error: ObjectError) -> sqlx::Error {
    sqlx::Error::AnyDriverError(error.into())
}

/// The error itself, or that of the object store.
fn cause(error: sqlx::Error) -> Cause {
    match error {
        sqlx::Error::AnyDriverError(error) => error,
        error => error.into(),
    }
}

/// Creates the error for a stored value that this program never writes.
pub(crate) fn corrupt(error: impl Into<Cause>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}

/// Whether the connection was lost, for example by a restart of the server, so that a retry on another may
/// succeed.
pub(crate) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => !is_not_connected(error),
        // admin_shutdown, crash_shutdown, idle_session_timeout.
        _ => matches!(sqlstate(error).as_deref(), Some("57P01" | "57P02" | "57P05")),
    }
}

/// There was no connection in time, since PostgreSQL cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("no connection in time: {0}")]
pub(crate) struct NotConnected(pub(crate) String);

impl From<NotConnected> for sqlx::Error {
    fn from(error: NotConnected) -> Self {
        Self::Io(std::io::Error::other(error))
    }
}

/// Whether the error is [`NotConnected`].
pub(crate) fn is_not_connected(error: &sqlx::Error) -> bool {
    let sqlx::Error::Io(error) = error else { return false };
    error.get_ref().and_then(|inner| inner.downcast_ref::<NotConnected>()).is_some()
}

/// Whether PostgreSQL was not reached: no connection, none in time, a refused login, or a lost connection.
pub(crate) fn is_connection_failure(error: &sqlx::Error) -> bool {
    use sqlx::Error::{Io, PoolTimedOut, Tls, WorkerCrashed};
    matches!(error, Io(_) | Tls(_) | PoolTimedOut | WorkerCrashed)
        || is_session_end(error)
        // Connection exceptions.
        || sqlstate(error).is_some_and(|code| code.starts_with("08"))
}

/// Whether PostgreSQL ended the session, for example because of a shutdown, or refused to begin one: while it
/// starts, without a free connection, and where the role, its password, its permissions, or the database is
/// wrong or missing.
fn is_session_end(error: &sqlx::Error) -> bool {
    postgres_error(error)
        .is_some_and(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// Whether PostgreSQL is starting, or has no free connection yet: another attempt to connect may succeed.
pub(crate) fn is_starting_up(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        // too_many_connections, cannot_connect_now.
        _ => matches!(sqlstate(error).as_deref(), Some("53300" | "57P03")),
    }
}

/// Whether a prepared statement of the connection is invalid: PostgreSQL does not know it, for example after
/// `DISCARD ALL`, or cannot run it because a migration has changed the type of a column of its result. The
/// statement did not run. sqlx does not prepare it again, so a retry succeeds only on a new connection.
pub(crate) fn is_plan_error(error: &sqlx::Error) -> bool {
    let Some(error) = postgres_error(error) else { return false };
    // invalid_sql_statement_name; feature_not_supported, which has other causes as well, from the function that
    // reports "cached plan must not change result type". Messages are translated.
    match error.code() {
        "26000" => true,
        "0A000" => error.routine() == Some("RevalidateCachedQuery"),
        _ => false,
    }
}

/// How an operation failed, for its metrics.
pub(crate) fn error_type(error: &sqlx::Error) -> ErrorType {
    // query_canceled: `statement_timeout`.
    if is_no_response(error) || is_lock_timeout(error) || sqlstate(error).as_deref() == Some("57014") {
        ErrorType::Timeout
    } else if is_unavailable(error) {
        ErrorType::Unavailable
    } else {
        ErrorType::Error
    }
}

/// How a read failed, for its metrics.
pub(crate) fn read_error_type(error: &ReadError) -> ErrorType {
    let (ReadError::Unavailable { source, .. }
    | ReadError::Unsupported { source, .. }
    | ReadError::Failed { source, .. }) = error;
    // The other error is that of the circuit breaker.
    source.downcast_ref().map_or(ErrorType::Unavailable, error_type)
}

/// Whether the transaction conflicted with another one (serialization failure or deadlock), so that a retry may
/// succeed.
pub(crate) fn is_transaction_conflict(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error).as_deref(), Some("40001" | "40P01"))
}

/// Whether a lock was not available within `lock_timeout`.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    sqlstate(error).as_deref() == Some("55P03")
}

/// Whether a table is missing because the migrations have not run.
pub(crate) fn is_undefined_table(error: &sqlx::Error) -> bool {
    sqlstate(error).as_deref() == Some("42P01")
}

fn is_unavailable(error: &sqlx::Error) -> bool {
    use sqlx::Error::{Io, PoolClosed, PoolTimedOut, Tls, WorkerCrashed};
    if matches!(error, Io(_) | Tls(_) | PoolClosed | PoolTimedOut | WorkerCrashed) {
        return true;
    }
    if let sqlx::Error::AnyDriverError(error) = error {
        return error.downcast_ref().is_some_and(ObjectError::is_unavailable);
    }
    if is_session_end(error) {
        return true;
    }
    let Some(code) = sqlstate(error) else { return false };
    // Classes: connection exceptions, transaction conflicts, insufficient resources, and operator intervention,
    // which includes statement_timeout.
    ["08", "40", "53", "57"].iter().any(|class| code.starts_with(class))
        || is_lock_timeout(error)
        || is_plan_error(error)
}

/// Whether the values were rejected. Classes: values out of range of their type, violated constraints, and
/// limits of PostgreSQL, such as the size of a row.
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

fn postgres_error(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}
