//! The optional servers: Redis, Meilisearch and the object store.

use chart_index_cli::Causes;
use chart_index_store::Store;

use super::check_clock;
use super::finding::{Finding, Subject};
use crate::arguments::ServeArguments;
use crate::composition::{redis_config, search_config};

const REDIS: Subject = Subject { name: "redis", document: "docs/operations/install.md#redis" };
const REDIS_CLOCK: Subject = Subject { name: "redis clock", document: "docs/operations/install.md#redis" };
const MEILISEARCH: Subject =
    Subject { name: "meilisearch", document: "docs/operations/install.md#meilisearch" };
pub(super) const OBJECTS: Subject = Subject { name: "object store", document: "docs/operations/objects.md" };

/// The first version of Redis that is supported.
const MIN_REDIS: u32 = 6;
/// The versions of Meilisearch that are supported.
const MEILISEARCH_VERSIONS: &str = "1.50.";

/// Checks each node of Redis that is named.
pub(super) async fn check_redis(arguments: &ServeArguments) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (address, node) in chart_index_redis::describe(&redis_config(arguments)).await {
        let node = match node {
            Ok(node) => node,
            Err(error) => {
                findings.push(REDIS.problem(format!("{address}: {error}")));
                continue;
            }
        };
        let major: u32 = node.version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        findings.push(if major < MIN_REDIS {
            REDIS.problem(format!("{address}: version {}, but {MIN_REDIS} or newer is needed", node.version))
        } else if node.max_memory_bytes == 0 {
            REDIS.warning(format!(
                "{address}: maxmemory is not set, so that cached responses may use all memory"
            ))
        } else if node.appends_to_file {
            REDIS.warning(format!("{address}: it has an append-only file, which brings old rate limits back"))
        } else {
            let (mib, policy) = (node.max_memory_bytes >> 20, &node.eviction_policy);
            REDIS.ok(format!("{address}: version {}, maxmemory {mib} MiB, {policy}", node.version))
        });
        findings.push(check_clock(REDIS_CLOCK, node.clock_ms));
    }
    findings
}

/// Checks each node of Meilisearch.
pub(super) async fn check_meilisearch(arguments: &ServeArguments, store: &Store) -> Vec<Finding> {
    let config = match search_config(arguments) {
        Ok(config) => config,
        Err(error) => return vec![MEILISEARCH.problem(format!("{error:#}"))],
    };
    let nodes = chart_index_search::describe(&config, &store.monitoring()).await;
    let findings = nodes.into_iter().map(|(url, node)| {
        let node = match node {
            Ok(node) => node,
            Err(error) => return MEILISEARCH.problem(format!("{url}: {}", Causes(&error))),
        };
        let version = node.version.as_deref();
        match (version, node.problem) {
            (_, Some(problem)) => {
                MEILISEARCH.problem(format!("{url}: {problem}: is `chart-indexer follow` running?"))
            }
            (Some(version), _) if !version.starts_with(MEILISEARCH_VERSIONS) => {
                MEILISEARCH.warning(format!("{url}: version {version} is not tested"))
            }
            _ if node.contains_filter == Some(false) => {
                MEILISEARCH.warning(format!("{url}: the experimental feature `containsFilter` is off"))
            }
            _ => MEILISEARCH.ok(format!("{url}: version {}", version.unwrap_or("unknown"))),
        }
    });
    findings.collect()
}

/// Checks that objects can be read, if there is an object store.
pub(super) async fn check_objects(store: &Store) -> Option<Finding> {
    Some(match store.objects()?.check().await {
        Ok(()) => OBJECTS.ok("objects can be read"),
        Err(error) => OBJECTS.problem(Causes(&error).to_string()),
    })
}
