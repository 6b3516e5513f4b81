//! The cache against real Redis servers.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[path = "../support/mod.rs"]
mod support;

/// Reads of many responses at once.
mod batches;
/// Changes of the catalogue, and entries from before them.
mod changes;
/// A Redis Cluster of three nodes.
mod cluster;
/// Single-flight fills, their limits and timeouts.
mod fills;
/// Responses that would fill the memory of Redis.
mod memory;
/// Redis killed, frozen, restarted or flushed, while the store works or fails.
mod outages;
/// The number of commands and round trips.
mod round_trips;
/// Large numbers of unknown hashes.
mod unknown;
/// Values in Redis that are not valid records.
mod values;
