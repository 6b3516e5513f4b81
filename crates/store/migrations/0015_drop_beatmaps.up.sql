-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS chartset_charts_by_beatmap;
