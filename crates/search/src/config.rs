//! Where the nodes are, and how patient to be with them.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

/// The address of one Meilisearch server: `http://host:port`, or `https`, possibly with a path before its routes.
///
/// It holds no credentials, so it may be shown: what it is made from must not hold any either.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NodeUrl(String);

impl NodeUrl {
    /// The address without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeUrl {
    type Err = MalformedNodeUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text.trim()).map_err(|_| MalformedNodeUrl)?;
        let plain = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if plain { Ok(Self(url.as_str().trim_end_matches('/').to_owned())) } else { Err(MalformedNodeUrl) }
    }
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeUrl({self})")
    }
}

/// The text is not the address of a Meilisearch server. It is not repeated here: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a Meilisearch URL is http://host:port or https://host:port; the key is given apart from it")]
pub struct MalformedNodeUrl;

/// The key that a node asks for. A secret: [`Debug`] does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// One node and the index on it.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The server.
    pub url: NodeUrl,
    /// Its key, where it asks for one.
    pub api_key: Option<ApiKey>,
    /// The uid of the index. Its state is kept in `<index>_state`, a rebuild fills `<index>_rebuild` and
    /// `<index>_rebuild_state`.
    pub index: String,
    /// How long one attempt to connect may take.
    pub connect_timeout: Duration,
    /// How long one request that writes may take.
    pub write_timeout: Duration,
    /// How long a task is awaited that such a request began.
    pub task_timeout: Duration,
}

impl NodeConfig {
    /// The uid of the index when nothing else is said.
    pub const DEFAULT_INDEX: &str = "chartsets";

    /// A node with the default index: 500 ms to connect, 2 minutes for a request that writes, an hour for
    /// its task.
    #[must_use]
    pub fn new(url: NodeUrl, api_key: Option<ApiKey>) -> Self {
        Self {
            url,
            api_key,
            index: Self::DEFAULT_INDEX.to_owned(),
            connect_timeout: Duration::from_millis(500),
            write_timeout: Duration::from_mins(2),
            task_timeout: Duration::from_hours(1),
        }
    }
}

/// How an engine reads from its nodes.
#[derive(Debug, Clone)]
pub struct SearchConfig {
    /// The nodes, each with a whole copy of the catalogue.
    pub nodes: Vec<NodeConfig>,
    /// How long one search may take in all, waiting for its turn included.
    pub deadline: Duration,
    /// The most searches that are under way at one node.
    pub concurrency: NonZeroUsize,
    /// How long ago the oldest change that a node does not hold may have been made.
    pub max_lag: Duration,
    /// How often the state of every node is asked for.
    pub interval: Duration,
    /// From which position on a page is approached from the end of its list where that is nearer.
    pub deep_from: u64,
}

impl SearchConfig {
    /// The values for a server that answers requests: 2 seconds a search, 32 at a time, 30 seconds of lag, the state
    /// once a second.
    #[must_use]
    pub fn new(nodes: Vec<NodeConfig>) -> Self {
        Self {
            nodes,
            deadline: Duration::from_secs(2),
            concurrency: const { NonZeroUsize::new(32).unwrap() },
            max_lag: Duration::from_secs(30),
            interval: Duration::from_secs(1),
            deep_from: 3_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_web_servers_without_credentials_parse() {
        for (good, shown) in [
            ("http://localhost:7700", "http://localhost:7700"),
            (" https://search.example/ ", "https://search.example"),
            ("http://search.example:80/meili/", "http://search.example/meili"),
        ] {
            assert_eq!(good.parse::<NodeUrl>().map(|url| url.to_string()).as_deref(), Ok(shown));
        }
        for bad in [
            "",
            "localhost:7700",
            "ftp://a/",
            "http://user:hunter2@a/",
            "http://hunter2@a",
            "http://a/?k=hunter2",
        ] {
            let error = bad.parse::<NodeUrl>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{bad}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let url = "http://localhost:7700".parse().unwrap();
        let config = NodeConfig::new(url, Some("hunter2".to_owned().into()));
        assert!(!format!("{:?}", SearchConfig::new(vec![config])).contains("hunter2"));
    }
}
