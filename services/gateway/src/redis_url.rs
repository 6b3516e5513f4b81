//! `REDIS_URL` and `REDIS_CLUSTER_URLS` on the command line.

use std::ffi::OsStr;

use chart_index_ratelimit::redis_link::{MalformedRedisUrl, RedisUrl};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

/// Parses a Redis URL. Clap's own parsers repeat a value that they refuse, and this one may hold a password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedisUrlParser;

impl TypedValueParser for RedisUrlParser {
    type Value = RedisUrl;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<RedisUrl, Error> {
        value.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let message = format!("invalid value: {MalformedRedisUrl}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}
