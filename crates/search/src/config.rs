//! The addresses, API keys, timeouts and limits of the nodes.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use hyper::header::HeaderValue;
use url::Url;

use crate::FORMAT;

/// The URL of a Meilisearch server: `http` or `https`, with an optional port and path prefix.
///
/// It contains no credentials, so that it may be logged: parsing rejects a URL that does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NodeUrl {
    text: String,
    address: String,
}

impl NodeUrl {
    /// The URL without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `host:port`, which identifies the node in metrics and spans.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl FromStr for NodeUrl {
    type Err = MalformedNodeUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text.trim()).map_err(|_| MalformedNodeUrl)?;
        let is_valid = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let (Some(host), Some(port), true) = (url.host_str(), url.port_or_known_default(), is_valid) else {
            return Err(MalformedNodeUrl);
        };
        let address = format!("{host}:{port}");
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), address })
    }
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeUrl({self})")
    }
}

/// The text is not the URL of a Meilisearch server. The error does not contain the text, which may hold a
/// password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected http://host:port or https://host:port; the API key is a separate setting")]
pub struct MalformedNodeUrl;

/// The API key of a node. A secret: [`Debug`] does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// The value of the header `Authorization`.
    pub(crate) fn authorization(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl FromStr for ApiKey {
    type Err = MalformedApiKey;

    /// Surrounding white space, such as the line end of a file, is not part of the key.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", text.trim())).map_err(|_| MalformedApiKey)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The text cannot be an API key. The error does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it contains a character that is not allowed in a header")]
pub struct MalformedApiKey;

/// One node and the index on it.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The URL of the node.
    pub url: NodeUrl,
    /// The API key, where the server requires one.
    pub api_key: Option<ApiKey>,
    /// The first part of the uid of the index, which is `<index>_v<format>`. Its position is in
    /// `<index>_v<format>_state`; a rebuild fills `<index>_v<format>_rebuild` and its `_state`.
    pub index: String,
    /// The format of the index: [`FORMAT`], unless it is about an index of an earlier version.
    pub format: u32,
}

impl NodeConfig {
    /// A node with the index `chartsets` of this version.
    #[must_use]
    pub fn new(url: NodeUrl, api_key: Option<ApiKey>) -> Self {
        Self { url, api_key, index: "chartsets".to_owned(), format: FORMAT }
    }

    /// The uid of the index.
    #[must_use]
    pub fn index_uid(&self) -> String {
        format!("{}_v{}", self.index, self.format)
    }
}

/// How an engine searches its nodes.
#[derive(Debug, Clone)]
pub struct SearchConfig {
    /// The nodes, each with a full copy of the catalogue.
    pub nodes: Vec<NodeConfig>,
    /// Timeout of a search, including the wait for a permit.
    pub search_timeout: Duration,
    /// The maximum number of searches in flight per node.
    pub max_concurrent_searches: NonZeroUsize,
    /// The maximum age of the oldest change that a node has not applied. A node that lags more is not searched.
    pub max_lag: Duration,
    /// The interval at which every node is probed.
    pub probe_interval: Duration,
    /// A page at this offset or beyond is read from the end of its list where the end is nearer.
    pub reverse_from_offset: u64,
}

impl SearchConfig {
    /// The values for a server: searches time out after 2 seconds, 32 run concurrently per node, nodes may lag
    /// 30 seconds and are probed once a second.
    #[must_use]
    pub fn new(nodes: Vec<NodeConfig>) -> Self {
        Self {
            nodes,
            search_timeout: Duration::from_secs(2),
            max_concurrent_searches: const { NonZeroUsize::new(32).unwrap() },
            max_lag: Duration::from_secs(30),
            probe_interval: Duration::from_secs(1),
            reverse_from_offset: 3_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_urls_are_http_without_credentials() {
        for (valid, expected) in [
            ("http://localhost:7700", "http://localhost:7700"),
            (" https://search.example/ ", "https://search.example"),
            ("http://search.example:80/meili/", "http://search.example/meili"),
        ] {
            assert_eq!(valid.parse::<NodeUrl>().map(|url| url.to_string()).as_deref(), Ok(expected));
        }
        for invalid in [
            "",
            "localhost:7700",
            "ftp://a/",
            "http://user:hunter2@a/",
            "http://hunter2@a",
            "http://a/?k=hunter2",
        ] {
            let error = invalid.parse::<NodeUrl>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{invalid}");
        }
    }

    #[test]
    fn address_is_host_and_port() {
        for (url, address) in [
            ("http://search-1:7700/meili", "search-1:7700"),
            ("http://search-1", "search-1:80"),
            ("https://search.example/", "search.example:443"),
            ("http://[::1]:7700", "[::1]:7700"),
        ] {
            assert_eq!(url.parse::<NodeUrl>().unwrap().address(), address);
        }
    }

    #[test]
    fn debug_does_not_print_the_key() {
        let url = "http://localhost:7700".parse().unwrap();
        let config = NodeConfig::new(url, "hunter2".parse().ok());
        assert!(!format!("{:?}", SearchConfig::new(vec![config])).contains("hunter2"));
    }

    #[test]
    fn invalid_key_is_an_error_without_the_key() {
        let error = "hunter2\nhunter2".parse::<ApiKey>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
