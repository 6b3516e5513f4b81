-- no-transaction
DROP INDEX CONCURRENTLY ingest_fingerprints_by_chartset;
