//! Queries that are left to PostgreSQL.

/// A query that Meilisearch cannot run exactly. The PostgreSQL engine can; the nodes are healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedQuery {
    /// The text has more than ten words.
    #[error("Meilisearch searches for at most ten words")]
    TooManyWords,
    /// The part of a creator's name has more than 117 bytes.
    #[error("part of a creator's name too long for Meilisearch")]
    CreatorTooLong,
    /// The query sorts by relevance with the worst match first.
    #[error("Meilisearch cannot sort by ascending relevance")]
    AscendingRelevance,
    /// The page begins after a cursor. That would take another format of the index and a second search for the
    /// total, and Meilisearch cannot compare relevance at all.
    #[error("Meilisearch cannot continue a list after a cursor")]
    Cursor,
    /// One chart has to meet several conditions: documents do not say which numbers are of the same chart.
    #[error("Meilisearch cannot apply several conditions to one chart")]
    SeveralChartConditions,
    /// A bound of the main BPM is above those that documents tell apart.
    #[error("BPM too high for Meilisearch")]
    BpmTooHigh,
    /// The query names a set or a pack, which documents do not have.
    #[error("Meilisearch does not know the ids of sets and packs")]
    PublishedIn,
    /// Words have to match in the title or in the artist alone.
    #[error("Meilisearch cannot search for words of a query in different names")]
    NameWords,
    /// The query has part of a creator's name, and no usable node has the feature `containsFilter` on.
    #[error("no node has the experimental feature containsFilter on")]
    ContainsFilterOff,
}
