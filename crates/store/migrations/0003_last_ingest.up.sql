-- When the last `chart-indexer ingest` began, and when one was last complete, for monitoring: by the clock of the
-- server, and NULL before the first one that was complete.
CREATE TABLE last_ingest (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    began_at_ms     bigint NOT NULL,
    completed_at_ms bigint
);
