//! Planted faults: changes of the code that make the system wrong, each of which a history must find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use chart_index_tests::{PrivateMeilisearch, workspace_root};

use crate::checks::Check;
use crate::history::Options;
use crate::{checks, history, plan, report};

/// A text that occurs once in a file, and what replaces it.
#[derive(Debug)]
struct PlantedFault {
    name: &'static str,
    /// What must find it.
    check: Check,
    file: &'static str,
    original: &'static str,
    replacement: &'static str,
    needs_meilisearch: bool,
}

/// A fault must be found within this time, its build excluded.
const TIMEOUT: Duration = Duration::from_mins(10);

const fn fault(
    name: &'static str,
    check: Check,
    file: &'static str,
    original: &'static str,
    replacement: &'static str,
) -> PlantedFault {
    PlantedFault { name, check, file, original, replacement, needs_meilisearch: false }
}

const FAULTS: [PlantedFault; 32] = [
    fault(
        "charts that leave a chartset are no changes",
        Check::Mirror,
        "crates/store/migrations/0001_catalogue.up.sql",
        "INSERT INTO pending_changes (entity) VALUES (OLD.chart_hash);",
        "NULL;",
    ),
    fault(
        "polls do not learn of changes",
        Check::Freshness,
        "crates/store/src/feed/catalogue_poll.rs",
        "FROM catalogue_changes WHERE sequence > $1 ORDER BY",
        "FROM catalogue_changes WHERE sequence > $1 + 1000000 ORDER BY",
    ),
    fault(
        "entries of changed charts and chartsets are current",
        Check::Freshness,
        "crates/cache/src/recent_changes.rs",
        "} else if last.change > version.sequence() {",
        "} else if last.change > version.sequence() + (1 << 32) {",
    ),
    fault(
        "only one change of a transaction is numbered",
        Check::Freshness,
        "crates/store/migrations/0008_number_at_commit.up.sql",
        "FROM taken GROUP BY entity",
        "FROM taken GROUP BY entity LIMIT 1",
    ),
    fault(
        "the key of a page lacks its filter",
        Check::Freshness,
        "crates/cache/src/key.rs",
        "blake3::derive_key(\"chart-index 2026 list cache key v1\", normalised_query)",
        "blake3::derive_key(\"chart-index 2026 list cache key v1\", &normalised_query[..normalised_query.len().min(12)])",
    ),
    fault(
        "a limit of 241",
        Check::Limits,
        "crates/ratelimit/src/window_script.rs",
        "argument(limit.get().into());",
        "argument(i64::from(limit.get()) + 1);",
    ),
    fault(
        "the feed skips a sequence",
        Check::Mirror,
        "services/bulk/src/changes/feed_json.rs",
        "Self { items, next, has_more",
        "Self { items, next: next + 1, has_more",
    ),
    fault(
        "exports and the feed contain removed charts",
        Check::Exports,
        "crates/store/src/reads/chartset_records.rs",
        " AND chartset.shown AND chart.removed_at_ms IS NULL\"",
        " AND chartset.shown\"",
    ),
    fault(
        "ROX files of removed charts are served",
        Check::Removal,
        "crates/store/src/reads/lookups.rs",
        "FROM known_charts AS chart JOIN rox_files",
        "FROM charts AS chart JOIN rox_files",
    ),
    fault(
        "removals do not derive chartsets",
        Check::Freshness,
        "crates/store/src/writes/removal.rs",
        "lock_chartsets(&mut transaction, added.keys().chain(erased())).await?;",
        "lock_chartsets(&mut transaction, []).await?;",
    ),
    fault(
        "an ingest shows what was removed before it",
        Check::Removal,
        "crates/store/src/writes/put_chartset_sql.rs",
        "(SELECT removed_at_ms FROM removals WHERE entity = decode(given.id, 'hex'))",
        "NULL",
    ),
    fault(
        "charts are unknown during an outage",
        Check::Untouched,
        "services/lookup/src/charts.rs",
        "= state.store.chart(hash).await?;",
        "= state.store.chart(hash).await.unwrap_or_default();",
    ),
    fault(
        "a 503 has no Retry-After",
        Check::Errors,
        "crates/http/src/error.rs",
        "Self::Unavailable(_) => Some(HeaderValue::from_static(\"5\")),",
        "Self::Unavailable(_) => None,",
    ),
    fault(
        "an ingest keeps the old charts of a chartset",
        Check::Freshness,
        "crates/store/src/writes/put_chartset_sql.rs",
        "AND NOT written.added",
        "AND written.added",
    ),
    fault(
        "totals are cached for an hour",
        Check::Freshness,
        "crates/store/src/search/total_cache.rs",
        "Duration = Duration::from_secs(25);",
        "Duration = Duration::from_secs(3600);",
    ),
    fault(
        "a standby may lag behind",
        Check::Freshness,
        "crates/store/src/connection/standby.rs",
        "const MAX_LAG: Duration = Duration::from_secs(2);",
        "const MAX_LAG: Duration = Duration::from_secs(3600);",
    ),
    fault(
        "purges name no tag",
        Check::Removal,
        "services/indexer/src/purge/purger.rs",
        ".header(\"surrogate-key\", tags.join(\" \"))",
        ".header(\"surrogate-key\", tags.len().to_string())",
    ),
    fault(
        "404s have the tag of another chart",
        Check::Freshness,
        "services/lookup/src/handlers.rs",
        "(state.cache.cdn_headers(key), ApiError",
        "(state.cache.cdn_headers(&CacheKey::rox(NoteHash::from_bytes([0; 32]))), ApiError",
    ),
    fault(
        "removals leave objects",
        Check::Objects,
        "crates/store/src/writes/object_upkeep.rs",
        "let unneeded = unneeded(&mut transaction, &digests, &hashes).await?;",
        "let unneeded = unneeded(&mut transaction, &digests[..0], &hashes).await?;",
    ),
    fault(
        "objects that rows need are garbage",
        Check::Errors,
        "crates/store/src/writes/object_upkeep.rs",
        "WHERE object = digest AND bytes IS NULL AND",
        "WHERE object = digest AND bytes IS NOT NULL AND",
    ),
    fault(
        "responses without a chart or chartset have no tag",
        Check::Removal,
        "crates/http/src/cdn.rs",
        "    if has_tags\n",
        "    if has_tags && false\n",
    ),
    fault(
        "imports keep times that are ahead",
        Check::Ending,
        "services/indexer/src/import/chartset_lines.rs",
        "{ now_ms } else { time_ms }",
        "{ time_ms } else { time_ms }",
    ),
    fault(
        "mirrors keep what other changes have deleted",
        Check::Ending,
        "services/indexer/src/mirror/apply.rs",
        "self.delete(removed.iter(), false).await?;",
        "self.delete(removed.iter().take(0), false).await?;",
    ),
    fault(
        "previews share the cache entries of ROX files",
        Check::Immutability,
        "crates/cache/src/key.rs",
        "Self::new(Kind::Preview, *hash.as_bytes())",
        "Self::new(Kind::Rox, *hash.as_bytes())",
    ),
    fault(
        "details have removed charts",
        Check::Freshness,
        "crates/store/src/reads/lookups.rs",
        "chartset.id = $1 AND chartset.shown AND chart.removed_at_ms IS NULL",
        "chartset.id = $1 AND chartset.shown",
    ),
    fault(
        "restores do not derive chartsets",
        Check::Freshness,
        "crates/store/src/writes/removal.rs",
        "        derive_chartsets(&mut transaction, &sets, Some(now_ms)).await?;\n        transaction.commit().await?;\n        Ok(true)",
        "        derive_chartsets(&mut transaction, &sets[..0], Some(now_ms)).await?;\n        transaction.commit().await?;\n        Ok(true)",
    ),
    fault(
        "each replica counts for itself",
        Check::Limits,
        "crates/ratelimit/src/window_script.rs",
        "key.push_str(&self.key_prefix);",
        "key.push_str(&format!(\"{}{}\", self.key_prefix, std::process::id()));",
    ),
    fault(
        "a limit of 241 without Redis",
        Check::Limits,
        "crates/ratelimit/src/local_window.rs",
        "(Some(address), Scope::Address, limit)];",
        "(Some(address), Scope::Address, limit.saturating_add(1))];",
    ),
    fault(
        "hash filters have removed charts",
        Check::Exports,
        "crates/store/src/reads/hash_filters.rs",
        "SELECT hash FROM known_charts",
        "SELECT hash FROM charts",
    ),
    fault(
        "pages go on before their last chartset",
        Check::Walks,
        "crates/store/src/search/postgres_search.rs",
        "items.len().checked_sub(1)",
        "items.len().checked_sub(2)",
    ),
    fault(
        "removed chartsets redirect to their source",
        Check::Removal,
        "crates/store/src/reads/lookups.rs",
        "FROM chartsets WHERE id = $1 AND shown\")",
        "FROM chartsets WHERE id = $1\")",
    ),
    PlantedFault {
        needs_meilisearch: true,
        ..fault(
            "search nodes keep deleted chartsets",
            Check::Freshness,
            "services/indexer/src/search/pass.rs",
            "changed.iter().copied().filter(|id| !shown.contains(id)).collect();",
            "changed.iter().copied().filter(|id| !shown.contains(id)).take(0).collect();",
        )
    },
];

/// Plants each fault whose name contains the text, and runs histories until one finds it. Returns whether all
/// were found.
pub(crate) fn run(options: &Options, filter: &str) -> bool {
    let folder = workspace_root().join("target/planted-faults");
    let source = copy_of_sources(&folder);
    let has_meilisearch = PrivateMeilisearch::program().is_some();
    let mut all_found = true;
    for fault in FAULTS.iter().filter(|fault| fault.name.contains(filter)) {
        if fault.needs_meilisearch && !has_meilisearch {
            println!("SKIPPED, needs Meilisearch: {}", fault.name);
            continue;
        }
        let file = source.join(fault.file);
        let original = fs::read_to_string(&file).expect("a file");
        assert_eq!(original.matches(fault.original).count(), 1, "{}: {}", fault.file, fault.original);
        fs::write(&file, original.replace(fault.original, fault.replacement)).expect("a file");
        let programs = build(&source, &folder);
        // Also if the build failed.
        fs::write(&file, original).expect("a file");
        let programs = programs.expect("the programs are built");
        let start = Instant::now();
        let found = find(&Options { programs: Some(programs), ..options.clone() }, fault.check);
        let elapsed = start.elapsed().as_secs();
        match &found {
            Some(found) => println!("FOUND after {elapsed} s: {}: {found}", fault.name),
            None => println!("NOT FOUND within {elapsed} s: {}", fault.name),
        }
        all_found &= found.is_some();
    }
    all_found
}

/// Runs histories until one violates this check. Returns a description of it.
fn find(options: &Options, check: Check) -> Option<String> {
    let start = Instant::now();
    for seed in options.seed.. {
        let options = Options { seed, ..options.clone() };
        let steps = plan::generate(seed, options.length, PrivateMeilisearch::program().is_some());
        let violations = checks::check(&history::run(&options, &steps));
        if let Some(first) = violations.iter().find(|violation| violation.check == check) {
            let violated = report::violated(&violations);
            return Some(format!("seed {seed}, {violated:?}, such as {}", first.text));
        }
        if start.elapsed() > TIMEOUT {
            return None;
        }
    }
    None
}

/// A copy of the files of the repository, in which faults can be planted.
fn copy_of_sources(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    fs::create_dir_all(&source).expect("a folder");
    let script =
        "git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents --update -t \"$0\"";
    let status = Command::new("sh").args(["-c", script]).arg(&source).current_dir(workspace_root()).status();
    assert!(status.is_ok_and(|status| status.success()), "the sources are copied");
    // An earlier run may have been killed with a planted fault, which is newer than the original.
    for PlantedFault { file, .. } in &FAULTS {
        let (original, copy) = (workspace_root().join(file), source.join(file));
        if fs::read(&original).expect("a file") != fs::read(&copy).expect("a file") {
            fs::copy(&original, &copy).expect("a copy");
        }
    }
    source
}

/// Builds the programs. Returns their folder; `None` if that fails.
fn build(source: &Path, folder: &Path) -> Option<PathBuf> {
    let target = folder.join("target");
    let packages = ["-p", "chart-index-server", "-p", "chart-index-indexer"];
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--locked", "--bins"])
        .args(packages)
        .current_dir(source)
        .env("CARGO_TARGET_DIR", &target)
        .status();
    status.is_ok_and(|status| status.success()).then(|| target.join("debug"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a fault could not be planted, which only the long form of the test would notice.
    #[test]
    fn faults_change_what_is_in_the_code_once() {
        for PlantedFault { name, file, original, .. } in &FAULTS {
            let code = fs::read_to_string(workspace_root().join(file)).expect("a file");
            assert_eq!(code.matches(original).count(), 1, "{name}: {file}");
        }
    }
}
