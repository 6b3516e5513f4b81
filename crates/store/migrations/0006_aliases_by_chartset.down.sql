-- no-transaction
DROP INDEX CONCURRENTLY chart_aliases_by_chartset;
