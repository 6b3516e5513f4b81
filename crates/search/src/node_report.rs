//! What a node is and whether it can be searched, for checks of an installation.

use chart_index_domain::search::CatalogueChanges;
use futures_util::future::join_all;

use crate::search_node::SearchNode;
use crate::{Lag, NodeConfig, NodeUrl, SearchConfig, SearchError};

/// A node that responds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The version of Meilisearch, such as `1.50.2`; `None` where the API key may not read it.
    pub version: Option<String>,
    /// The changes that its index lacks; `None` without an index, or if they cannot be read.
    pub lag: Option<Lag>,
    /// Why it cannot be searched; `None` if it can.
    pub problem: Option<&'static str>,
    /// Whether the feature `containsFilter` is on; `None` where the API key may not read the features.
    pub contains_filter: Option<bool>,
}

/// Probes each node once, as an engine does. Returns what each is, or why it cannot be reached.
pub async fn describe(
    config: &SearchConfig,
    changes: &dyn CatalogueChanges,
) -> Vec<(NodeUrl, Result<NodeReport, SearchError>)> {
    let nodes =
        config.nodes.iter().map(async |node| (node.url.clone(), describe_node(node, config, changes).await));
    join_all(nodes).await
}

async fn describe_node(
    node: &NodeConfig,
    config: &SearchConfig,
    changes: &dyn CatalogueChanges,
) -> Result<NodeReport, SearchError> {
    let node = SearchNode::new(node, config)?;
    let probe = node.probe_result(changes, config.max_lag, None).await?;
    let (lag, problem, contains_filter) = (probe.lag, probe.problem(), probe.contains_filter);
    Ok(NodeReport { version: node.node().read_version().await?, lag, problem, contains_filter })
}
