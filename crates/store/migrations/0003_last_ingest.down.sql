DROP TABLE last_ingest;
