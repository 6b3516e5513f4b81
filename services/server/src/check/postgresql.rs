//! PostgreSQL: the server, the database, the schema, the standby, and when the catalogue was last ingested.

use std::error::Error;

use chart_index_cli::{Causes, format_age};
use chart_index_store::{ServerReport, Store};

use super::check_clock;
use super::finding::{Finding, Subject};
use crate::arguments::ServeArguments;

const SERVER: Subject = Subject { name: "postgresql", document: "docs/operations/install.md#postgresql" };
const CLOCK: Subject =
    Subject { name: "postgresql clock", document: "docs/operations/install.md#postgresql" };
const CONNECTIONS: Subject =
    Subject { name: "postgresql connections", document: "docs/operations/capacity.md#connections" };
const LOCALE: Subject = Subject { name: "locale", document: "docs/operations/install.md#postgresql" };
const SCHEMA: Subject = Subject { name: "schema", document: "docs/operations/upgrade.md#migrations" };
const STANDBY: Subject = Subject { name: "standby", document: "docs/operations/failure-modes.md#standby" };
const INGEST: Subject = Subject { name: "ingest", document: "docs/runbook.md#chartindexingestincomplete" };

/// The first version that is supported.
const MIN_VERSION: u32 = 15;
/// Connections of a replica besides those for requests.
const OTHER_CONNECTIONS: u32 = 2;
/// A standby that lacks more of the WAL than one of its segments lags.
const MAX_STANDBY_LAG_BYTES: u64 = 16 << 20;

/// Checks the server, and what is on it if it responds.
pub(super) async fn check(arguments: &ServeArguments, store: &Store) -> Vec<Finding> {
    let report = match store.server_report().await {
        Ok(report) => report,
        Err(error) => {
            let cause = store.connection_failure().unwrap_or_else(|| Causes(&error).to_string());
            return vec![SERVER.problem(cause)];
        }
    };
    let mut findings = vec![
        check_server(&report),
        check_clock(CLOCK, report.clock_ms),
        check_connections(arguments, &report),
        check_locale(store, &report).await,
    ];
    match store.check_schema().await {
        Ok(()) => {
            findings.push(SCHEMA.ok("as this version needs it"));
            findings.extend(check_standby(store).await);
            findings.push(check_ingest(store).await);
        }
        Err(error) => {
            // The cause says what to do.
            let cause = Causes(error.source().unwrap_or(&error)).to_string();
            findings.push(SCHEMA.problem(cause));
        }
    }
    findings
}

fn check_server(report: &ServerReport) -> Finding {
    let ServerReport { version, major_version, encoding, commits_are_durable, .. } = report;
    if *major_version < MIN_VERSION {
        return SERVER.problem(format!("version {version}, but {MIN_VERSION} or newer is needed"));
    }
    if encoding != "UTF8" {
        return SERVER.problem(format!("the encoding of the database is {encoding}, not UTF8"));
    }
    if !commits_are_durable {
        return SERVER.warning("synchronous_commit is off: a crash loses changes that others may have");
    }
    SERVER.ok(format!("version {version}, {} MiB", report.database_bytes >> 20))
}

fn check_connections(arguments: &ServeArguments, report: &ServerReport) -> Finding {
    let needed = arguments.store.database_max_connections.get().saturating_add(OTHER_CONNECTIONS);
    let text = format!("{needed} of {} for this replica", report.max_connections);
    if needed > report.max_connections { CONNECTIONS.problem(text) } else { CONNECTIONS.ok(text) }
}

async fn check_locale(store: &Store, report: &ServerReport) -> Finding {
    match store.has_letters().await {
        Ok(true) => LOCALE.ok(&report.locale),
        Ok(false) => LOCALE.warning(format!(
            "{} has no letters outside of ASCII: searches for creators in other scripts read every row",
            report.locale
        )),
        Err(error) => LOCALE.problem(Causes(&error).to_string()),
    }
}

async fn check_standby(store: &Store) -> Option<Finding> {
    let lag = match store.standby_lag().await.transpose()? {
        Ok(lag) => lag,
        Err(error) => return Some(STANDBY.problem(Causes(&error).to_string())),
    };
    let text = format!("it lacks {lag} bytes of the WAL");
    Some(if lag > MAX_STANDBY_LAG_BYTES { STANDBY.warning(text) } else { STANDBY.ok(text) })
}

async fn check_ingest(store: &Store) -> Finding {
    let last = match store.last_ingest().await {
        Ok(Some(last)) => last,
        Ok(None) => {
            return match store.mirror_state().await {
                Ok(Some(mirror)) => INGEST.ok(format!("none: a mirror of {}", mirror.upstream)),
                Ok(None) => INGEST.warning("none yet"),
                Err(error) => INGEST.problem(Causes(&error).to_string()),
            };
        }
        Err(error) => return INGEST.problem(Causes(&error).to_string()),
    };
    match last.completed_at_ms.filter(|completed_at_ms| *completed_at_ms >= last.began_at_ms) {
        Some(completed_at_ms) => INGEST.ok(format!("complete {}", format_age(completed_at_ms))),
        None => {
            INGEST.warning(format!("the last one began {} and is not complete", format_age(last.began_at_ms)))
        }
    }
}
