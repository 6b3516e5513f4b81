-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS chart_aliases_by_chartset;
