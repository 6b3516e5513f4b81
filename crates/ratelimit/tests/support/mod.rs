//! Limiters, addresses and configurations for tests.

pub(crate) mod history;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::ops::Deref;
use std::time::Duration;

use chart_index_ratelimit::{ClientAddress, Limiter, LimiterConfig, Limits};
use chart_index_redis::testing::wait_for_state;
use chart_index_redis::{ConnectionState, RedisConfig, RedisConnection};

/// How long a request may wait for Redis, plus a margin for a busy machine.
pub(crate) const MAX_WAIT: Duration = Duration::from_millis(50 + 150);

pub(crate) fn address(number: u32) -> ClientAddress {
    Ipv4Addr::from_bits(number).into()
}

/// The IPv6 /64 with this number in the /48 with this number.
pub(crate) fn subnet(network: u16, number: u16) -> ClientAddress {
    Ipv6Addr::new(0x2001, 0xdb8, network, number, 0, 0, 0, 1).into()
}

/// The hash tags of the buckets, in the order of their slots.
const HASH_TAGS: [&str; 24] = [
    "sg", "bq", "ps", "ei", "wk", "ye", "md", "ss", "aq", "tk", "fi", "hg", "mg", "ci", "qk", "dq", "vs",
    "hd", "sd", "rk", "oh", "us", "gq", "yf",
];

/// The key of the window of an IPv4 address in the group `lookup`.
pub(crate) fn key(client: u32) -> String {
    tagged_key(client.into(), &format!("{client:08x}"))
}

/// The key with these digits in the bucket of a client, an IPv4 address or an IPv6 /48.
pub(crate) fn tagged_key(client: u64, digits: &str) -> String {
    let hash = client.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    format!("rl3:l:{{{}}}{digits}", HASH_TAGS[((hash * 24) >> 32) as usize])
}

/// A configuration with one limit for all groups.
pub(crate) fn config(limit: u32, window: Duration, key_prefix: &str) -> LimiterConfig {
    LimiterConfig {
        limits: Limits::all(NonZeroU32::new(limit).unwrap()),
        window,
        key_prefix: key_prefix.to_owned(),
        ..LimiterConfig::default()
    }
}

/// A limiter and its connection.
pub(crate) struct Replica {
    limiter: Limiter,
    pub(crate) connection: RedisConnection,
}

impl Replica {
    /// Starts to connect.
    pub(crate) fn starting(config: &LimiterConfig, redis: &RedisConfig) -> Self {
        let connection = RedisConnection::connect("main", redis).unwrap();
        Self { limiter: Limiter::new(config.clone(), connection.clone()), connection }
    }
}

impl Deref for Replica {
    type Target = Limiter;

    fn deref(&self) -> &Limiter {
        &self.limiter
    }
}

/// A replica whose connection is open.
pub(crate) async fn replica(config: &LimiterConfig, redis: RedisConfig) -> Replica {
    let replica = Replica::starting(config, &redis);
    wait_for_state(&replica.connection, ConnectionState::Connected).await;
    replica
}
