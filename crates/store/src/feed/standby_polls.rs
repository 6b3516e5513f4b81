//! Compares the polls of a standby with those of its primary: whether the standby may serve reads.

use std::collections::VecDeque;
use std::time::Instant;

use chart_index_domain::{CataloguePoll, Origin, ReadError};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::error::read_error;
use crate::feed::catalogue_poll::ServerPoll;

/// Number of polls of the primary that a standby is compared with: those of a minute.
const POLLS: usize = 120;

/// The last polls of the primary since its start.
#[derive(Debug, Default)]
pub(crate) struct PrimaryPolls(VecDeque<PrimaryPoll>);

/// What a poll of the primary found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrimaryPoll {
    pub(crate) began: Instant,
    origin: Origin,
    sequence: u64,
    system_identifier: i64,
    wal: i64,
}

/// Why a standby does not serve reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it was not polled yet")]
    NotPolled,
    #[error("it does not respond")]
    Silent,
    #[error("it is not a standby")]
    NoStandby,
    #[error("it has not what the primary has")]
    Diverged,
    #[error("it lags behind the primary")]
    Behind,
}

impl PrimaryPolls {
    pub(crate) fn push(&mut self, began: Instant, primary: &ServerPoll) {
        let poll = PrimaryPoll {
            began,
            origin: primary.poll.position.origin,
            sequence: primary.poll.position.sequence,
            system_identifier: primary.system_identifier,
            wal: primary.server.wal,
        };
        // What an earlier server had may be lost.
        if self.last().is_some_and(|last| last.origin != poll.origin) {
            self.0.clear();
        }
        if self.0.len() == POLLS {
            self.0.pop_front();
        }
        self.0.push_back(poll);
    }

    pub(crate) fn last(&self) -> Option<&PrimaryPoll> {
        self.0.back()
    }

    /// The last poll whose changes the standby has. Its position in the WAL covers what has no sequence, as the
    /// times of checks; a change that is committed without waiting for the disk may have a sequence before it
    /// is in the WAL of another server.
    pub(crate) fn reached_by(&self, standby: &ServerPoll) -> Option<PrimaryPoll> {
        let is_reached = |primary: &&PrimaryPoll| {
            primary.system_identifier == standby.system_identifier
                && primary.wal <= standby.server.wal
                && primary.sequence <= standby.poll.position.sequence
        };
        self.0.iter().rfind(is_reached).copied()
    }
}

impl PrimaryPoll {
    /// The poll of a standby that has reached this one, as a poll of the primary: with its origin.
    pub(crate) fn applied_to(self, mut poll: CataloguePoll) -> CataloguePoll {
        poll.position.origin = self.origin;
        poll
    }
}

/// Fails unless the server is a standby of the primary, which was polled after it.
///
/// A commit may be visible on a standby before it is on a primary that waits for a synchronous standby. Such a
/// standby counts as diverged until the primary shows the change: what is known must be visible on both.
pub(crate) fn check_standby(standby: &ServerPoll, primary: &ServerPoll) -> Result<(), Unusable> {
    if !standby.is_standby {
        return Err(Unusable::NoStandby);
    }
    let is_ahead = standby.server.wal > primary.server.wal
        || standby.poll.position.sequence > primary.poll.position.sequence;
    let is_diverged = standby.system_identifier != primary.system_identifier || is_ahead;
    if is_diverged { Err(Unusable::Diverged) } else { Ok(()) }
}

impl Store {
    /// Compares the standby with the primary once, and returns how many bytes of the WAL it lacks; `None`
    /// without a standby.
    ///
    /// # Errors
    /// Also if it is no standby of the primary.
    pub async fn standby_lag(&self) -> Result<Option<u64>, ReadError> {
        // No changes.
        const AFTER: u64 = u64::MAX;
        let operation = "poll the standby";
        let Some((standby, primary)) = self.standby().zip(self.primary_of_standby()) else { return Ok(None) };
        let poll =
            standby.monitoring().read(ReadLength::Short, |connection| ServerPoll::read(connection, AFTER));
        let standby = poll.await.map_err(|error| read_error(operation, error))?;
        let primary = primary.poll_server(AFTER).await?;
        check_standby(&standby, &primary)
            .map_err(|unusable| ReadError::Unavailable { operation, source: unusable.into() })?;
        Ok(Some(primary.server.wal.abs_diff(standby.server.wal)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chart_index_domain::{Lineage, Position};

    use super::*;
    use crate::connection::server_identity::ServerPosition;

    fn poll(origin: u64, sequence: u64, wal: i64, is_standby: bool) -> ServerPoll {
        let position = Position { origin: Origin(origin), sequence };
        let poll = CataloguePoll {
            lineage: Lineage::from_bytes([1; 8]),
            position,
            last_removal: 0,
            changes: vec![],
            complete_after: 0,
        };
        ServerPoll { poll, system_identifier: 1, is_standby, server: ServerPosition { server: 9, wal } }
    }

    fn primary(sequence: u64, wal: i64) -> ServerPoll {
        poll(1, sequence, wal, false)
    }

    fn standby(sequence: u64, wal: i64) -> ServerPoll {
        poll(2, sequence, wal, true)
    }

    /// Polls of the primary with these sequences and positions, a second apart, and their times.
    fn polls(found: &[(u64, i64)]) -> (PrimaryPolls, Vec<Instant>) {
        let start = Instant::now();
        let times: Vec<_> =
            (0..).map(|second| start + Duration::from_secs(second)).take(found.len()).collect();
        let mut polls = PrimaryPolls::default();
        for ((sequence, wal), began) in found.iter().zip(&times) {
            polls.push(*began, &primary(*sequence, *wal));
        }
        (polls, times)
    }

    #[test]
    fn standby_has_reached_the_last_poll_that_it_contains() {
        let (polls, times) = polls(&[(10, 100), (10, 110), (12, 120)]);
        let reached = |sequence, wal| polls.reached_by(&standby(sequence, wal)).map(|poll| poll.began);
        assert_eq!(reached(12, 120), Some(times[2]));
        assert_eq!(reached(12, 119), Some(times[1]));
        assert_eq!(reached(11, 120), Some(times[1]), "the last sequence is missing");
        assert_eq!(reached(10, 100), Some(times[0]), "what has no sequence is missing");
        assert_eq!([reached(10, 99), reached(9, 200)], [None, None]);
        let other = ServerPoll { system_identifier: 2, ..standby(12, 120) };
        assert_eq!(polls.reached_by(&other), None);
    }

    #[test]
    fn only_polls_of_the_last_start_count() {
        let (mut polls, times) = polls(&[(10, 100)]);
        polls.push(times[0], &poll(3, 10, 110, false));
        assert_eq!(polls.reached_by(&standby(10, 109)), None);
        let reached = polls.reached_by(&standby(10, 110)).unwrap();
        let applied = reached.applied_to(standby(10, 110).poll);
        assert_eq!(applied.position, Position { origin: Origin(3), sequence: 10 });
    }

    #[test]
    fn only_a_standby_of_the_primary_is_usable() {
        let primary = primary(10, 100);
        let check = |standby: &ServerPoll| check_standby(standby, &primary);
        assert_eq!(check(&standby(10, 100)), Ok(()));
        assert_eq!(check(&standby(9, 90)), Ok(()));
        assert_eq!(check(&poll(2, 10, 100, false)), Err(Unusable::NoStandby));
        assert_eq!(check(&standby(11, 100)), Err(Unusable::Diverged), "visible there only");
        assert_eq!(check(&standby(10, 101)), Err(Unusable::Diverged));
        let other = ServerPoll { system_identifier: 2, ..standby(10, 100) };
        assert_eq!(check(&other), Err(Unusable::Diverged));
    }
}
