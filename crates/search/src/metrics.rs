//! The metrics of the Meilisearch client (docs/operations/metrics.md): requests by operation, and the nodes.

use chart_index_instrumentation::{DatabaseClient, Operation};
use hyper::Method;

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
            ("GET", ["documents", _]) | ("POST", ["fetch", "documents"]) => &self.read,
            ("POST" | "PUT", ["documents", _]) | ("POST", ["delete-batch", "documents"]) => &self.write,
            ("GET", [_, "tasks"]) => &self.read_task,
            _ => &self.manage,
        }
    }
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
            (Method::GET, "/indexes/chartsets_v1/documents", "read"),
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
