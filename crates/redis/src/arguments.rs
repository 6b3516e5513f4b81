//! The settings `REDIS_URL` and `REDIS_CLUSTER_URLS`.

use std::ffi::OsStr;

use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error};

use crate::{InvalidRedisUrl, RedisEndpoint, RedisUrl};

/// The Redis that a program uses.
#[derive(Debug, Clone, Args)]
pub struct RedisArguments {
    /// Redis shared by all replicas: `redis://[user:password@]host:port[/database]`, or `rediss://` for TLS
    #[arg(long, env = "REDIS_URL", hide_env_values = true, global = true, value_name = "URL")]
    redis_url: Option<RedisUrl>,

    /// Some nodes of a Redis Cluster, separated by commas, instead of `REDIS_URL`
    #[arg(
        long,
        env = "REDIS_CLUSTER_URLS",
        hide_env_values = true,
        global = true,
        value_name = "URLS",
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
    type Parser = RedisUrlParser;

    fn value_parser() -> Self::Parser {
        RedisUrlParser
    }
}

/// Parses a Redis URL. Errors do not repeat the value, as those of Clap's parsers do: it may hold a password.
#[derive(Debug, Clone, Copy)]
pub struct RedisUrlParser;

impl TypedValueParser for RedisUrlParser {
    type Value = RedisUrl;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<RedisUrl, Error> {
        value.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let message = format!("invalid value: {InvalidRedisUrl}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}
