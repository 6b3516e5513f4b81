//! What is on this machine: listeners, limits, folders, and settings that nobody has set.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::SystemTime;

use chart_index_cli::{format_age, format_duration};
use chart_index_http::ApiError;
use chart_index_objects::ObjectStoreUrl;
use chart_index_store::Store;
use chart_index_telemetry::memory_limit;

use super::finding::{Finding, Findings, Subject};
use crate::arguments::{CheckArguments, ServeArguments, Service};
use crate::composition::{bind, server_config};

const LISTENERS: Subject =
    Subject { name: "listeners", document: "docs/operations/configure.md#settings-of-chart-index" };
const OPEN_FILES: Subject = Subject { name: "open files", document: "docs/operations/install.md#open-files" };
const MEMORY: Subject = Subject { name: "memory", document: "docs/operations/capacity.md#memory" };
const PROXIES: Subject = Subject { name: "proxies", document: "docs/operations/install.md#processes" };
const SITE: Subject =
    Subject { name: "site", document: "docs/operations/configure.md#settings-of-chart-index" };
const DUMPS: Subject = Subject { name: "dumps", document: "docs/operations/recovery.md#back-up-postgresql" };
const EXPORTS: Subject = Subject { name: "exports", document: "docs/operations/exports.md#serving-exports" };
const FREE_SPACE: Subject = Subject { name: "free space", document: "docs/runbook.md#chartindexvolumefull" };

/// A daily dump may take this long before it counts as missing, as for the alert `ChartIndexBackupAge`.
const MAX_DUMP_AGE_HOURS: u64 = 30;
/// The same share as for the alert `ChartIndexVolumeFull`.
const MIN_FREE_PERCENT: u64 = 20;
/// Two addresses for documentation (RFC 5737), of which no network of proxies has both.
const FOREIGN: [[u8; 4]; 2] = [[192, 0, 2, 1], [203, 0, 113, 1]];

/// Checks everything that needs no server.
pub(super) async fn check(arguments: &CheckArguments) -> Findings {
    let serve = &arguments.serve;
    let mut findings = Findings::default();
    findings.push(check_listeners(serve).await);
    findings.push(check_open_files(serve));
    findings.push(check_memory(serve));
    findings.extend(check_site(serve));
    if FOREIGN.iter().all(|address| serve.rate_limits.trusted_proxies.contains((*address).into())) {
        let text = "TRUSTED_PROXIES has every address: clients choose the address that is counted for them";
        findings.push(PROXIES.warning(text));
    }
    if let Some(folder) = &arguments.dumps_dir {
        findings.push(check_dumps(folder));
    }
    let objects = serve.objects.url().and_then(ObjectStoreUrl::folder);
    for folder in arguments.dumps_dir.iter().chain(&serve.exports.exports_dir).chain(&objects) {
        // A folder that cannot be read is a finding of its own.
        findings.extend(check_free_space(folder).ok());
    }
    findings
}

async fn check_listeners(arguments: &ServeArguments) -> Finding {
    let (public, private) = (arguments.listen, arguments.admin.admin_listen);
    if public == private && public.port() != 0 {
        return LISTENERS.problem(format!("LISTEN and ADMIN_LISTEN are both {public}"));
    }
    let mut bound = Vec::new();
    for (variable, address) in [("LISTEN", public), ("ADMIN_LISTEN", private)] {
        match bind(variable, address).await {
            Ok(listener) => bound.push(listener),
            Err(error) => {
                let cause = error.downcast_ref::<io::Error>().map(io::Error::kind);
                // By the other one: all addresses of a machine include each of them.
                let is_ours = bound
                    .iter()
                    .any(|other| other.local_addr().is_ok_and(|other| other.port() == address.port()));
                return if cause == Some(ErrorKind::AddrInUse) && !is_ours {
                    LISTENERS.warning(format!("{variable}: {address} is in use, by this service if it runs"))
                } else {
                    LISTENERS.problem(format!("{error:#}"))
                };
            }
        }
    }
    LISTENERS.ok(format!("{public} and {private} are free"))
}

fn check_open_files(arguments: &ServeArguments) -> Finding {
    let threads = arguments.worker_threads.map_or_else(thread::available_parallelism, Ok);
    let (server, _) = server_config(arguments, threads.map_or(1, usize::from));
    let (possible, wanted) = (server.max_connections, arguments.server.max_connections);
    let text = format!("MAX_CONNECTIONS is {wanted}, and the open file limit permits {possible}");
    if possible < wanted { OPEN_FILES.warning(text) } else { OPEN_FILES.ok(format!("{wanted} connections")) }
}

fn check_memory(arguments: &ServeArguments) -> Finding {
    const MIB: u64 = 1 << 20;
    let cache = arguments.cache.cache_bytes.get();
    let Some(limit) = memory_limit() else { return MEMORY.warning("the memory limit is unknown") };
    // By the formula of the document.
    let needed = cache.saturating_mul(8) / 5 + 56 * MIB;
    let text = format!("CACHE_BYTES needs {} MiB, the limit is {} MiB", needed / MIB, limit / MIB);
    if needed > limit { MEMORY.problem(text) } else { MEMORY.ok(text) }
}

/// What only an operator can say of a site.
fn check_site(arguments: &ServeArguments) -> Option<Finding> {
    if !arguments.services.contains(&Service::Pages) {
        return None;
    }
    let pages = &arguments.source_pages;
    let missing = [
        ("PUBLIC_URL", arguments.pages.public_url.is_none()),
        ("CONTACT", arguments.pages.operator.contact.is_none()),
        ("ALPHA_SOURCE_PAGE", pages.alpha_source_page.is_example()),
        ("BETA_SOURCE_PAGE", pages.beta_source_page.is_example()),
    ];
    let missing: Vec<_> =
        missing.into_iter().filter_map(|(name, is_missing)| is_missing.then_some(name)).collect();
    Some(if missing.is_empty() {
        SITE.ok("its addresses are set")
    } else {
        SITE.warning(format!("not set: {}", missing.join(", ")))
    })
}

fn check_dumps(folder: &Path) -> Finding {
    let newest = match newest_dump(folder) {
        Ok(Some(newest)) => newest,
        Ok(None) => return DUMPS.problem(format!("no dump that is not empty in {}", folder.display())),
        Err(error) => return DUMPS.problem(format!("DUMPS_DIR: {}: {error}", folder.display())),
    };
    let age = newest.elapsed().unwrap_or_default();
    let text = format!("the last dump was written {} ago", format_duration(age));
    if age.as_secs() > MAX_DUMP_AGE_HOURS * 60 * 60 { DUMPS.problem(text) } else { DUMPS.ok(text) }
}

fn newest_dump(folder: &Path) -> io::Result<Option<SystemTime>> {
    let mut newest = None;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if entry.path().extension().is_some_and(|extension| extension == "dump") && metadata.len() > 0 {
            newest = newest.max(Some(metadata.modified()?));
        }
    }
    Ok(newest)
}

fn check_free_space(folder: &Path) -> io::Result<Finding> {
    let volume = rustix::fs::statvfs(folder)?;
    let percent = volume.f_bavail.saturating_mul(100) / volume.f_blocks.max(1);
    let text = format!("{percent} % of the volume of {}", folder.display());
    Ok(if percent < MIN_FREE_PERCENT { FREE_SPACE.warning(text) } else { FREE_SPACE.ok(text) })
}

/// Checks the newest export, if exports are served.
pub(super) async fn check_exports(arguments: &ServeArguments, store: &Store) -> Option<Finding> {
    let folder =
        arguments.exports.exports_dir.as_ref().filter(|_| arguments.services.contains(&Service::Bulk))?;
    if let Err(error) = fs::read_dir(folder) {
        return Some(EXPORTS.problem(format!("EXPORTS_DIR: {}: {error}", folder.display())));
    }
    let newest = match arguments.exports.find_newest(store).await {
        Ok(newest) => newest,
        Err(ApiError::NotFound(_)) => {
            return Some(EXPORTS.warning(format!("no export in {}", folder.display())));
        }
        Err(error) => {
            let causes = error.causes().map(|causes| causes.to_string()).unwrap_or_default();
            return Some(EXPORTS.problem(causes));
        }
    };
    let written = format!("the newest was written {}", format_age(newest.manifest.exported_at_ms));
    Some(match newest.is_withdrawn {
        Ok(true) => EXPORTS.warning(format!("{written}, and is withdrawn since a removal")),
        // PostgreSQL has findings of its own.
        Ok(false) | Err(_) => EXPORTS.ok(written),
    })
}
