-- no-transaction
DROP INDEX CONCURRENTLY chartset_charts_by_creator;
