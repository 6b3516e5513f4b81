UPDATE chartsets AS chartset SET checked_at_ms = checks.checked_at_ms
FROM chartset_checks AS checks
WHERE checks.chartset_id = chartset.id AND checks.checked_at_ms > chartset.checked_at_ms;
DROP TABLE ingest_fingerprints;
DROP TABLE chartset_checks;
