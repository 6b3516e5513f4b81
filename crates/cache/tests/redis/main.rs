//! The cache against real Redis servers.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[path = "../support/mod.rs"]
mod support;

/// A cluster of three nodes.
mod cluster;
/// One fill per key and replica, whoever waits or leaves.
mod fills;
/// What a change does to both tiers, and to the fills that began before it.
mod invalidation;
/// Redis killed, frozen, restarted, flushed; the store failing.
mod outages;
/// How often Redis is asked.
mod round_trips;
/// Unknown hashes in great numbers.
mod unknown;
/// What is found in Redis that does not belong there.
mod values;
