-- no-transaction
-- Erasing a chartset deletes what names it, under a lock for which ingests and removals wait. Without the list of
-- pending entries, which each of thousands of look-ups would read.
CREATE INDEX CONCURRENTLY ingest_fingerprints_by_chartset
    ON ingest_fingerprints USING gin (outcome_chartsets(outcome)) WITH (fastupdate = off);
