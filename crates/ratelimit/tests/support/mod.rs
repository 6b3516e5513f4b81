//! Real Redis servers for the tests: started on free ports, ended by their process id.

pub(crate) mod cluster;
pub(crate) mod history;
pub(crate) mod proxy;
pub(crate) mod server;
pub(crate) mod value;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use chart_index_ratelimit::redis_link::{LinkState, RedisLink, RedisLinkConfig};
use chart_index_ratelimit::{ClientAddress, Limiter, LimiterConfig, Limits};

/// The most that a request may wait for Redis, and what a busy machine with two cores may add to it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50 + 150);

/// An address of its own for each number.
pub(crate) fn address(number: u32) -> ClientAddress {
    Ipv4Addr::from_bits(number).into()
}

/// The IPv6 /64 with that number in the /48 with that number.
pub(crate) fn subnet(network: u16, number: u16) -> ClientAddress {
    Ipv6Addr::new(0x2001, 0xdb8, network, number, 0, 0, 0, 1).into()
}

/// A configuration with one limit for every group, and keys of its own.
pub(crate) fn config(limit: u32, window: Duration, key_prefix: &str) -> LimiterConfig {
    LimiterConfig {
        limits: Limits::all(NonZeroU32::new(limit).unwrap()),
        window: window.try_into().unwrap(),
        key_prefix: key_prefix.to_owned(),
        ..LimiterConfig::default()
    }
}

/// A replica: a limiter with a connection of its own, that is up.
pub(crate) async fn replica(config: &LimiterConfig, link: RedisLinkConfig) -> Limiter {
    let link = RedisLink::connect(link).unwrap();
    reached(&link, LinkState::Up).await;
    Limiter::new(config.clone(), link)
}

/// Waits until a link is in a state, and fails rather than wait for ever.
pub(crate) async fn reached(link: &RedisLink, state: LinkState) {
    let reached = tokio::time::timeout(Duration::from_secs(20), link.reached(state)).await;
    assert!(reached.is_ok(), "the link is {:?}, not {state:?}", link.state());
}

/// For tests whose subject is what Redis decides: a busy machine may make them slow, but not wrong.
pub(crate) fn patient(mut link: RedisLinkConfig) -> RedisLinkConfig {
    link.request_timeout = Duration::from_secs(20);
    link
}
