//! The limiter against real Redis servers.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a helper of a test fails the test")]

#[path = "../support/mod.rs"]
mod support;

/// Never above the limit, never refused below it, whatever the schedule.
mod exactness;
/// What damaged values, changed clocks and changed limits do to the window.
mod repair;
/// The ring of a window with many admissions: every place of it, its growth, what a damaged header does.
mod ring;
/// How often Redis is asked.
mod round_trips;

/// Redis killed, frozen, flushed, full: what a request then waits, and how it all comes back.
mod outages;

/// A cluster of three nodes.
mod cluster;
/// The limit of an IPv6 /48 as a whole.
mod networks;
