//! `MEILISEARCH_URL` and `MEILISEARCH_API_KEY` on the command lines of the programs.

use std::collections::HashSet;
use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error};

use crate::{ApiKey, MalformedNodeUrl, NodeConfig, NodeUrl};

/// Which Meilisearch nodes a program uses, and the keys to them.
#[derive(Debug, Clone, Args)]
pub struct MeilisearchArguments {
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

/// The nodes and keys that are named do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InconsistentNodes {
    /// A node is named twice.
    #[error("MEILISEARCH_URL names the node {0} twice")]
    Twice(NodeUrl),
    /// There are several keys, and not one for each node.
    #[error("{keys} keys for {nodes} nodes: MEILISEARCH_API_KEY is one for all, or one for each")]
    Keys {
        /// How many keys there are.
        keys: usize,
        /// How many nodes there are.
        nodes: usize,
    },
}

impl MeilisearchArguments {
    /// Every node with its key; none where Meilisearch is not used.
    ///
    /// # Errors
    /// A node is named twice, or there are some keys but not one for each.
    pub fn nodes(&self) -> Result<Vec<NodeConfig>, InconsistentNodes> {
        let (nodes, keys) = (&self.meilisearch_url, &self.meilisearch_api_key);
        let mut seen = HashSet::new();
        if let Some(twice) = nodes.iter().find(|node| !seen.insert(*node)) {
            return Err(InconsistentNodes::Twice(twice.clone()));
        }
        if !matches!(keys.len(), 0 | 1) && keys.len() != nodes.len() {
            return Err(InconsistentNodes::Keys { keys: keys.len(), nodes: nodes.len() });
        }
        let key = |index: usize| keys.get(index).or_else(|| keys.first().filter(|_| keys.len() == 1));
        let nodes = nodes.iter().enumerate();
        Ok(nodes.map(|(index, node)| NodeConfig::new(node.clone(), key(index).cloned())).collect())
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

    fn nodes(arguments: &[&str]) -> Result<usize, String> {
        let program = Program::try_parse_from([&["program"], arguments].concat());
        let nodes = program.map_err(|error| format!("{error} {error:?}"))?.meilisearch.nodes();
        nodes.map(|nodes| nodes.len()).map_err(|error| format!("{error} {error:?}"))
    }

    #[test]
    fn every_node_has_a_key_or_none_has() {
        let two = "--meilisearch-url=http://a:1,http://b:2";
        assert_eq!(nodes(&[]), Ok(0));
        assert_eq!(nodes(&[two]), Ok(2));
        assert_eq!(nodes(&[two, "--meilisearch-api-key=one"]), Ok(2));
        assert_eq!(nodes(&[two, "--meilisearch-api-key=one,two"]), Ok(2));
        assert!(nodes(&[two, "--meilisearch-api-key=one,two,three"]).is_err());
        assert!(nodes(&["--meilisearch-url=http://a:1,http://a:1/"]).is_err());
    }

    #[test]
    fn no_error_repeats_a_key() {
        let keys = "--meilisearch-api-key=hunter2,hunter2,hunter2";
        for urls in [
            "--meilisearch-url=http://a,http://b",
            "--meilisearch-url=http://x:hunter2@a",
            "--meilisearch-url=a",
        ] {
            let error = nodes(&[urls, keys]).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
