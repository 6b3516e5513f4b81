-- no-transaction
-- For the erasure of chartsets, like ingest_fingerprints_by_chartset.
CREATE INDEX CONCURRENTLY chart_aliases_by_chartset ON chart_aliases (chartset_id);
