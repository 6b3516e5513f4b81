//! How far an index lags behind the catalogue.

use std::time::Duration;

use chart_index_domain::search::{CatalogueChanges, UnappliedChanges};
use chart_index_domain::{Position, ReadError};

/// The changes that an index lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// The position of the index.
    pub position: Position,
    /// The changes after the position.
    pub unapplied: UnappliedChanges,
}

impl Lag {
    /// Reads the changes after the position of an index. `before` is what was read last.
    ///
    /// While an index does not advance, its oldest change cannot become newer. But a chartset that changes
    /// again has a newer time in the feed, so the earlier time remains.
    ///
    /// # Errors
    /// Those of [`CatalogueChanges::unapplied`].
    pub async fn read(
        changes: &dyn CatalogueChanges,
        position: Position,
        before: Option<Self>,
    ) -> Result<Self, ReadError> {
        let mut unapplied = changes.unapplied(position).await?;
        let before = before.filter(|before| {
            before.unapplied.origin == unapplied.origin
                && before.position.origin == position.origin
                && before.position.sequence >= position.sequence
        });
        if let (Some(oldest_ms), Some(before)) = (&mut unapplied.oldest_ms, before) {
            *oldest_ms = before.unapplied.oldest_ms.map_or(*oldest_ms, |earlier| earlier.min(*oldest_ms));
        }
        Ok(Self { position, unapplied })
    }

    /// The age of the oldest change when the changes were read; zero without one. Clocks of machines differ, so
    /// it is the age by the clock of the server that was asked.
    #[must_use]
    pub fn age(&self) -> Duration {
        let UnappliedChanges { oldest_ms, asked_ms, .. } = self.unapplied;
        let age_ms = oldest_ms.map_or(0, |oldest_ms| asked_ms.saturating_sub(oldest_ms));
        Duration::from_millis(u64::try_from(age_ms).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use chart_index_domain::Origin;

    use super::*;

    /// A feed of one server in which the oldest change has this time.
    struct OldestAt(Option<i64>, Origin);

    #[async_trait]
    impl CatalogueChanges for OldestAt {
        async fn unapplied(&self, _: Position) -> Result<UnappliedChanges, ReadError> {
            Ok(UnappliedChanges { origin: self.1, oldest_ms: self.0, asked_ms: 3_000, count: 1 })
        }
    }

    #[tokio::test]
    async fn oldest_change_becomes_newer_only_if_the_index_advances() {
        let position = |origin, sequence| Position { origin: Origin(origin), sequence };
        let at = async |oldest_ms, server, position, before| {
            let changes = OldestAt(oldest_ms, Origin(server));
            Lag::read(&changes, position, before).await.unwrap()
        };
        let before = at(Some(1_000), 1, position(1, 7), None).await;
        for (oldest_ms, server, position, expected) in [
            (Some(2_000), 1, position(1, 7), Some(1_000)),
            (Some(2_000), 1, position(1, 6), Some(1_000)),
            (Some(500), 1, position(1, 7), Some(500)),
            (None, 1, position(1, 7), None),
            (Some(2_000), 1, position(1, 8), Some(2_000)),
            (Some(2_000), 1, position(2, 7), Some(2_000)),
            (Some(2_000), 2, position(1, 7), Some(2_000)),
        ] {
            let lag = at(oldest_ms, server, position, Some(before)).await;
            assert_eq!(lag.unapplied.oldest_ms, expected, "{oldest_ms:?} of server {server} at {position:?}");
            let age_ms = expected.map_or(0, |expected| 3_000 - expected).unsigned_abs();
            assert_eq!(lag.age(), Duration::from_millis(age_ms), "by the clock of the server");
        }
    }
}
