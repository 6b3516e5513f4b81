//! The limiter against real Redis servers.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a helper of a test fails the test")]

#[path = "../support/mod.rs"]
mod support;

/// A Redis Cluster of three nodes.
mod cluster;
/// Never above the limit, never refused below it, whatever the schedule.
mod exactness;
/// Limits of IPv6 /48 networks.
mod networks;
/// Redis killed, frozen, flushed or full.
mod outages;
/// Corrupt values, changed clocks and changed limits.
mod repair;
/// The number of commands and round trips.
mod round_trips;
