-- Hash filters (docs/api.md, "Hash filter"), built by chart-indexer. A filter contains every chart that was known at its
-- sequence of the change feed. The last two stay: a client that was led to one may still ask for it.
CREATE TABLE hash_filters (
    sequence    bigint PRIMARY KEY CHECK (sequence >= 0),
    hashes      bigint NOT NULL CHECK (hashes >= 0),
    built_at_ms bigint NOT NULL,
    bytes       bytea NOT NULL
);
-- The bytes cannot be compressed.
ALTER TABLE hash_filters ALTER COLUMN bytes SET STORAGE EXTERNAL;
