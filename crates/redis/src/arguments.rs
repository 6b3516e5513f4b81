//! The settings `REDIS_URL` and `REDIS_CLUSTER_URLS`, and the files with their values.

use chart_index_cli::{CommaSeparated, SecretParser};
use clap::Args;
use clap::builder::ValueParserFactory;

use crate::{RedisEndpoint, RedisUrl};

/// The Redis that a program uses.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "the fields name the flags and the arguments that conflict")]
pub struct RedisArguments {
    /// Redis shared by all `chart-index` replicas, optional (without it, rate limits are per replica):
    /// `redis://[user:password@]host:port[/database]`, or `rediss://` for TLS
    #[arg(long, env = "REDIS_URL", hide_env_values = true, global = true, value_name = "URL")]
    redis_url: Option<RedisUrl>,

    /// File with the value of `REDIS_URL`
    #[arg(
        long,
        env = "REDIS_URL_FILE",
        global = true,
        value_name = "FILE",
        conflicts_with = "redis_url",
        value_parser = SecretParser::<RedisUrl>::in_file()
    )]
    redis_url_file: Option<RedisUrl>,

    /// Seed nodes of a Redis Cluster, separated by commas, instead of `REDIS_URL`
    #[arg(
        long,
        env = "REDIS_CLUSTER_URLS",
        hide_env_values = true,
        global = true,
        value_name = "URL,…",
        value_delimiter = ',',
        conflicts_with_all = ["redis_url", "redis_url_file"]
    )]
    redis_cluster_urls: Vec<RedisUrl>,

    /// File with the value of `REDIS_CLUSTER_URLS`
    #[arg(
        long,
        env = "REDIS_CLUSTER_URLS_FILE",
        global = true,
        value_name = "FILE",
        conflicts_with_all = ["redis_url", "redis_url_file", "redis_cluster_urls"],
        value_parser = SecretParser::<CommaSeparated<RedisUrl>>::in_file()
    )]
    redis_cluster_urls_file: Option<CommaSeparated<RedisUrl>>,
}

impl RedisArguments {
    /// The server or cluster to connect to.
    #[must_use]
    pub fn endpoint(&self) -> RedisEndpoint {
        let url = self.redis_url.as_ref().or(self.redis_url_file.as_ref());
        let urls = self.redis_cluster_urls_file.as_ref().map_or(&self.redis_cluster_urls, |urls| &urls.0);
        match (url, urls.as_slice()) {
            (Some(url), _) => RedisEndpoint::Single(url.clone()),
            (None, []) => RedisEndpoint::None,
            (None, urls) => RedisEndpoint::Cluster(urls.to_vec()),
        }
    }

    /// Checks what cannot be seen from a single URL.
    ///
    /// # Errors
    /// The URLs of a cluster contradict each other, for example in their passwords.
    pub fn check(&self) -> Result<(), InconsistentUrls> {
        let RedisEndpoint::Cluster(urls) = self.endpoint() else { return Ok(()) };
        let is_node = |url: &RedisUrl| !url.host().is_empty() && url.credentials() == urls[0].credentials();
        if urls.iter().all(is_node) { Ok(()) } else { Err(InconsistentUrls) }
    }
}

/// The URLs in `REDIS_CLUSTER_URLS` are not those of nodes of one cluster.
#[derive(Debug, thiserror::Error)]
#[error("REDIS_CLUSTER_URLS is invalid: the nodes of a cluster have a host and the same credentials")]
pub struct InconsistentUrls;

impl ValueParserFactory for RedisUrl {
    type Parser = SecretParser<Self>;

    fn value_parser() -> Self::Parser {
        SecretParser::new()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        redis: RedisArguments,
    }

    fn endpoint(arguments: &[&str]) -> Result<RedisEndpoint, clap::Error> {
        Program::try_parse_from([&["program"], arguments].concat()).map(|program| program.redis.endpoint())
    }

    #[test]
    fn files_hold_the_urls() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redis").display().to_string();
        std::fs::write(&path, "redis://:hunter2@a:1\n").unwrap();
        let single = endpoint(&["--redis-url-file", &path]).unwrap();
        assert_eq!(format!("{single:?}"), "Single(RedisUrl(a:1))");
        std::fs::write(&path, "redis://a:1,redis://b:2\n").unwrap();
        let cluster = endpoint(&["--redis-cluster-urls-file", &path]).unwrap();
        assert_eq!(format!("{cluster:?}"), "Cluster([RedisUrl(a:1), RedisUrl(b:2)])");
    }

    #[test]
    fn settings_exclude_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redis").display().to_string();
        std::fs::write(&path, "redis://a:1").unwrap();
        let settings = [
            ["--redis-url", "redis://a:1"],
            ["--redis-url-file", &path],
            ["--redis-cluster-urls", "redis://a:1"],
            ["--redis-cluster-urls-file", &path],
        ];
        for (index, one) in settings.iter().enumerate() {
            for other in &settings[index + 1..] {
                let error = endpoint(&[*one, *other].concat()).unwrap_err();
                assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{one:?} {other:?}");
            }
        }
    }
}
