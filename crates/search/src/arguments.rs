//! The command-line arguments and environment variables that name the Meilisearch nodes.

use std::collections::HashSet;

use chart_index_cli::{CommaSeparated, SecretParser};
use clap::Args;

use crate::{ApiKey, NodeConfig, NodeUrl};

/// The Meilisearch nodes of a program and their API keys.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "the fields name the flags and the arguments that conflict")]
pub struct MeilisearchArguments {
    /// URLs of the Meilisearch nodes, separated by commas; each node holds the whole index
    #[arg(
        long,
        env = "MEILISEARCH_URL",
        hide_env_values = true,
        value_name = "URL,…",
        value_delimiter = ',',
        value_parser = SecretParser::<NodeUrl>::new(),
    )]
    meilisearch_url: Vec<NodeUrl>,

    /// API key of all nodes, or one key per node, separated by commas, in the order of the URLs
    #[arg(
        long,
        env = "MEILISEARCH_API_KEY",
        hide_env_values = true,
        value_name = "KEY,…",
        value_delimiter = ',',
        value_parser = SecretParser::<ApiKey>::new(),
    )]
    meilisearch_api_key: Vec<ApiKey>,

    /// File with the value of `MEILISEARCH_API_KEY`
    #[arg(
        long,
        env = "MEILISEARCH_API_KEY_FILE",
        value_name = "FILE",
        conflicts_with = "meilisearch_api_key",
        value_parser = SecretParser::<CommaSeparated<ApiKey>>::in_file()
    )]
    meilisearch_api_key_file: Option<CommaSeparated<ApiKey>>,
}

/// The configured nodes and keys contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InconsistentNodes {
    /// A node is configured twice.
    #[error("MEILISEARCH_URL contains {0} twice")]
    Twice(NodeUrl),
    /// There are several keys, but not one for each node.
    #[error("MEILISEARCH_API_KEY has {keys} keys for {nodes} nodes: give one for all, or one for each")]
    Keys {
        /// How many keys are configured.
        keys: usize,
        /// How many nodes are configured.
        nodes: usize,
    },
}

impl MeilisearchArguments {
    /// Every node with its key; empty where Meilisearch is not used.
    ///
    /// # Errors
    /// When a node is configured twice, or when there are several keys but not one for each node.
    pub fn nodes(&self) -> Result<Vec<NodeConfig>, InconsistentNodes> {
        let keys = self.meilisearch_api_key_file.as_ref().map_or(&self.meilisearch_api_key, |keys| &keys.0);
        let nodes = &self.meilisearch_url;
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
    fn keys_are_for_all_nodes_or_each() {
        let two = "--meilisearch-url=http://a:1,http://b:2";
        assert_eq!(nodes(&[]), Ok(0));
        assert_eq!(nodes(&[two]), Ok(2));
        assert_eq!(nodes(&[two, "--meilisearch-api-key=one"]), Ok(2));
        assert_eq!(nodes(&[two, "--meilisearch-api-key=one,two"]), Ok(2));
        assert!(nodes(&[two, "--meilisearch-api-key=one,two,three"]).is_err());
        assert!(nodes(&["--meilisearch-url=http://a:1,http://a:1/"]).is_err());
    }

    #[test]
    fn file_holds_the_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys").display().to_string();
        std::fs::write(&path, "one,two\n").unwrap();
        let keys = ["--meilisearch-api-key-file", &path];
        let parse = |urls| {
            let arguments = [&["program", "--meilisearch-url", urls], keys.as_slice()].concat();
            Program::try_parse_from(arguments).unwrap().meilisearch.nodes()
        };
        let keys_of_nodes: Vec<_> =
            parse("http://a,http://b").unwrap().into_iter().map(|n| n.api_key).collect();
        assert_eq!(keys_of_nodes, ["one", "two"].map(|key| Some(key.parse().unwrap())));
        assert_eq!(parse("http://a").unwrap_err(), InconsistentNodes::Keys { keys: 2, nodes: 1 });
        assert!(nodes(&[&keys[..], &["--meilisearch-api-key=one"]].concat()).is_err());
    }

    #[test]
    fn errors_contain_no_secret() {
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
