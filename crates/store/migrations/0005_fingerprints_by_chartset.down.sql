-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS ingest_fingerprints_by_chartset;
