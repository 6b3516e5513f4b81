//! The metrics of the Meilisearch client (docs/operations/metrics.md): requests by operation, and the nodes.

use std::time::Duration;

use chart_index_instrumentation::{DatabaseClient, Operation, meter};
use hyper::Method;
use opentelemetry::KeyValue;

use crate::NodeUrl;

/// The requests to a node by what they do. Their names are a closed set, whatever the uid of the index is.
#[derive(Debug)]
pub(crate) struct NodeOperations {
    search: Operation,
    /// Reads the state of an index or the features of the node, the requests of a probe.
    probe: Operation,
    read: Operation,
    /// Adds, replaces or deletes documents, in a task.
    write: Operation,
    read_task: Operation,
    /// Everything else: creates, sets up, counts, swaps and deletes indexes, and deletes tasks.
    manage: Operation,
}

impl Default for NodeOperations {
    fn default() -> Self {
        let client = DatabaseClient::new("meilisearch");
        Self {
            search: client.operation("search"),
            probe: client.operation("probe"),
            read: client.operation("read"),
            write: client.operation("write"),
            read_task: client.operation("read task"),
            manage: client.operation("manage"),
        }
    }
}

impl NodeOperations {
    pub(crate) fn of(&self, method: &Method, path: &str) -> &Operation {
        let mut segments = path.rsplit('/');
        let last = [segments.next(), segments.next()].map(Option::unwrap_or_default);
        match (method.as_str(), last) {
            ("POST", ["multi-search", _]) => &self.search,
            ("GET", ["experimental-features", _] | [_, "documents"]) => &self.probe,
            ("POST", ["fetch", "documents"]) => &self.read,
            ("POST" | "PUT", ["documents", _]) | ("POST", ["delete-batch", "documents"]) => &self.write,
            ("GET", [_, "tasks"]) => &self.read_task,
            _ => &self.manage,
        }
    }
}

/// The state of a node at a scrape.
#[derive(Debug)]
pub(crate) struct NodeObservation {
    pub(crate) label: KeyValue,
    pub(crate) is_usable: bool,
    /// The age of the oldest change that the index lacks; `None` while it is not known.
    pub(crate) lag: Option<Duration>,
    /// The number of changes that the index lacks; `None` while it is not known.
    pub(crate) pending_changes: Option<u64>,
}

/// The label of a node: its host and port, without a path.
pub(crate) fn node_label(url: &NodeUrl) -> KeyValue {
    KeyValue::new("chart_index.search.node", url.address().to_owned())
}

/// Reports the nodes that `nodes` returns.
pub(crate) fn observe_nodes(nodes: impl Fn() -> Vec<NodeObservation> + Clone + Send + Sync + 'static) {
    let usable = nodes.clone();
    meter()
        .u64_observable_gauge("chart_index.search.node.usable")
        .with_description("Whether the node can be searched")
        .with_callback(move |observer| {
            for node in usable() {
                observer.observe(node.is_usable.into(), &[node.label]);
            }
        })
        .build();
    let lagging = nodes.clone();
    meter()
        .f64_observable_gauge("chart_index.search.node.lag")
        .with_unit("s")
        .with_description("Age of the oldest change that the index of the node lacks; 0 without one")
        .with_callback(move |observer| {
            for (node, lag) in lagging().into_iter().filter_map(|node| Some((node.label, node.lag?))) {
                observer.observe(lag.as_secs_f64(), &[node]);
            }
        })
        .build();
    meter()
        .u64_observable_gauge("chart_index.search.node.pending_changes")
        .with_unit("{change}")
        .with_description("Changes that the index of the node lacks, counted up to 10,000")
        .with_callback(move |observer| {
            let known = nodes().into_iter().filter_map(|node| Some((node.label, node.pending_changes?)));
            for (node, changes) in known {
                observer.observe(changes, &[node]);
            }
        })
        .build();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_named_by_what_it_does() {
        let operations = NodeOperations::default();
        let name = |method: Method, path: &str| operations.of(&method, path).name();
        for (method, path, expected) in [
            (Method::POST, "/multi-search", "search"),
            (Method::POST, "/meili/multi-search", "search"),
            (Method::GET, "/experimental-features", "probe"),
            (Method::GET, "/indexes/chartsets_v1_state/documents/state", "probe"),
            (Method::POST, "/indexes/chartsets_v1/documents/fetch", "read"),
            (Method::PUT, "/indexes/chartsets_v1/documents", "write"),
            (Method::POST, "/indexes/chartsets_v1/documents", "write"),
            (Method::POST, "/indexes/chartsets_v1/documents/delete-batch", "write"),
            (Method::GET, "/tasks/7", "read task"),
            (Method::GET, "/indexes/chartsets_v1/stats", "manage"),
            (Method::PATCH, "/indexes/chartsets_v1/settings", "manage"),
            (Method::PATCH, "/experimental-features", "manage"),
            (Method::POST, "/swap-indexes", "manage"),
            (Method::DELETE, "/tasks", "manage"),
            (Method::POST, "/indexes", "manage"),
        ] {
            assert_eq!(name(method, path), expected, "{path}");
        }
    }
}
