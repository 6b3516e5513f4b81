DROP TABLE search_changes;
DROP TABLE chartset_charts;
DROP TABLE chartsets;
DROP TABLE rox_files;
DROP TABLE charts;
-- The extension pg_trgm stays: it may have been there before, and it holds no data.
