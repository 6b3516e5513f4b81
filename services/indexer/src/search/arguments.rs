//! Which nodes, and the keys to them.

use std::collections::HashSet;
use std::ffi::OsStr;

use anyhow::{Context, Result, ensure};
use chart_index_search::{ApiKey, IndexWriter, MalformedNodeUrl, NodeConfig, NodeUrl};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error};

#[derive(Debug, Args)]
pub(crate) struct MeilisearchArguments {
    /// The Meilisearch nodes, separated by commas: each holds the whole index
    #[arg(
        long,
        env = "MEILISEARCH_URL",
        hide_env_values = true,
        value_name = "URL,…",
        value_delimiter = ',',
        value_parser = NodeUrlParser,
    )]
    meilisearch_url: Vec<NodeUrl>,
    /// The key of all nodes, or one for each, in their order
    #[arg(
        long,
        env = "MEILISEARCH_API_KEY",
        hide_env_values = true,
        value_name = "KEY,…",
        value_delimiter = ',',
        value_parser = ApiKeyParser,
    )]
    meilisearch_api_key: Vec<ApiKey>,
}

impl MeilisearchArguments {
    /// A writer to each node.
    ///
    /// # Errors
    /// No node is named, or one twice, or there are some keys but not one for each.
    pub(crate) fn writers(&self) -> Result<Vec<IndexWriter>> {
        let (nodes, keys) = (&self.meilisearch_url, &self.meilisearch_api_key);
        ensure!(!nodes.is_empty(), "no Meilisearch node: set MEILISEARCH_URL or --meilisearch-url");
        let mut seen = HashSet::new();
        for node in nodes {
            ensure!(seen.insert(node), "the node {node} is named twice");
        }
        ensure!(
            matches!(keys.len(), 0 | 1) || keys.len() == nodes.len(),
            "{} keys for {} nodes: MEILISEARCH_API_KEY is one for all, or one for each",
            keys.len(),
            nodes.len(),
        );
        let key = |index: usize| keys.get(index).or_else(|| keys.first().filter(|_| keys.len() == 1));
        nodes
            .iter()
            .enumerate()
            .map(|(index, node)| {
                let config = NodeConfig::new(node.clone(), key(index).cloned());
                IndexWriter::new(&config).with_context(|| node.to_string())
            })
            .collect()
    }
}

/// Clap's own parsers repeat a value that they refuse, and this one may hold a password.
#[derive(Debug, Clone, Copy)]
struct NodeUrlParser;

impl TypedValueParser for NodeUrlParser {
    type Value = NodeUrl;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<NodeUrl, Error> {
        value.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let message = format!("invalid value for MEILISEARCH_URL: {MalformedNodeUrl}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct ApiKeyParser;

impl TypedValueParser for ApiKeyParser {
    type Value = ApiKey;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<ApiKey, Error> {
        value.to_str().map(|key| ApiKey::from(key.trim().to_owned())).ok_or_else(|| {
            let message = "invalid value for MEILISEARCH_API_KEY: a key is UTF-8\n";
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
    }

    fn writers(arguments: &[&str]) -> Result<Vec<IndexWriter>> {
        Program::try_parse_from([&["program"], arguments].concat())?.meilisearch.writers()
    }

    #[test]
    fn every_node_has_a_key_or_none_has() {
        let two = "--meilisearch-url=http://a:1,http://b:2";
        assert_eq!(writers(&[two]).unwrap().len(), 2);
        assert_eq!(writers(&[two, "--meilisearch-api-key=one"]).unwrap().len(), 2);
        assert_eq!(writers(&[two, "--meilisearch-api-key=one,two"]).unwrap().len(), 2);
        assert!(writers(&[two, "--meilisearch-api-key=one,two,three"]).is_err());
        assert!(writers(&[]).is_err());
        assert!(writers(&["--meilisearch-url=http://a:1,http://a:1/"]).is_err());
    }

    #[test]
    fn no_error_repeats_a_key() {
        let keys = "--meilisearch-api-key=hunter2,hunter2,hunter2";
        for nodes in [
            "--meilisearch-url=http://a,http://b",
            "--meilisearch-url=http://x:hunter2@a",
            "--meilisearch-url=a",
        ] {
            let error = writers(&[nodes, keys]).unwrap_err();
            assert!(!format!("{error:#} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
