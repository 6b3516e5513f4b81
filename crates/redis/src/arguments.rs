//! The settings `REDIS_URL` and `REDIS_CLUSTER_URLS`.

use chart_index_cli::SecretParser;
use clap::Args;
use clap::builder::ValueParserFactory;

use crate::{RedisEndpoint, RedisUrl};

/// The Redis that a program uses.
#[derive(Debug, Clone, Args)]
pub struct RedisArguments {
    /// Redis shared by all `chart-index` replicas, optional (without it, rate limits are per replica):
    /// `redis://[user:password@]host:port[/database]`, or `rediss://` for TLS
    #[arg(long, env = "REDIS_URL", hide_env_values = true, global = true, value_name = "URL")]
    redis_url: Option<RedisUrl>,

    /// Seed nodes of a Redis Cluster, separated by commas, instead of `REDIS_URL`
    #[arg(
        long,
        env = "REDIS_CLUSTER_URLS",
        hide_env_values = true,
        global = true,
        value_name = "URL,…",
        value_delimiter = ',',
        conflicts_with = "redis_url"
    )]
    redis_cluster_urls: Vec<RedisUrl>,
}

impl RedisArguments {
    /// The server or cluster to connect to.
    #[must_use]
    pub fn endpoint(&self) -> RedisEndpoint {
        match (&self.redis_url, self.redis_cluster_urls.as_slice()) {
            (Some(url), _) => RedisEndpoint::Single(url.clone()),
            (None, []) => RedisEndpoint::None,
            (None, urls) => RedisEndpoint::Cluster(urls.to_vec()),
        }
    }
}

impl ValueParserFactory for RedisUrl {
    type Parser = SecretParser<Self>;

    fn value_parser() -> Self::Parser {
        SecretParser::new()
    }
}
