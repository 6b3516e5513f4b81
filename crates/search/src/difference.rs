//! How an index differs from PostgreSQL.

use std::fmt;

use chart_index_domain::ChartsetId;

/// A set that an index does not hold as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The set.
    pub id: ChartsetId,
    /// What is wrong.
    pub kind: DifferenceKind,
}

/// What is wrong with a set in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// The index does not hold it.
    Missing,
    /// The index holds something else of it.
    OtherContent,
    /// The index holds it, and it is not shown.
    NotShown,
    /// The index does not hold it, because its document is larger than the node accepts.
    TooLarge {
        /// The size of the document.
        bytes: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        match self.kind {
            DifferenceKind::Missing => write!(f, "chartset {id}: not in the index"),
            DifferenceKind::OtherContent => write!(f, "chartset {id}: another content in the index"),
            DifferenceKind::NotShown => write!(f, "chartset {id}: in the index and not shown"),
            DifferenceKind::TooLarge { bytes } => {
                write!(
                    f,
                    "chartset {id}: not in the index, its document of {bytes} bytes is too large for the node"
                )
            }
        }
    }
}
