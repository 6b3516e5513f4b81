//! Differences between an index and PostgreSQL, as `verify --search` reports them.

use std::fmt;

use chart_index_domain::ChartsetId;

/// A chartset that differs between an index and PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The chartset that differs.
    pub id: ChartsetId,
    /// What is different.
    pub kind: DifferenceKind,
}

/// How a chartset differs between an index and PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// It is missing from the index.
    Missing,
    /// Its document has other content than PostgreSQL.
    ContentDiffers,
    /// It is in the index, although it is not shown.
    NotShown,
    /// It is missing from the index because its document is larger than the node accepts.
    TooLarge {
        /// The size of the document in bytes.
        bytes: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        match self.kind {
            DifferenceKind::Missing => write!(f, "chartset {id}: missing from the index"),
            DifferenceKind::ContentDiffers => write!(f, "chartset {id}: content differs from PostgreSQL"),
            DifferenceKind::NotShown => write!(f, "chartset {id}: in the index but not shown"),
            DifferenceKind::TooLarge { bytes } => {
                write!(
                    f,
                    "chartset {id}: missing from the index, its document of {bytes} bytes is too large for the node"
                )
            }
        }
    }
}
