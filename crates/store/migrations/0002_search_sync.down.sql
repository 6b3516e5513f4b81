DROP TRIGGER search_changes_notify ON search_changes;
DROP FUNCTION notify_search_changes();
DROP TABLE search_outbox;
DROP INDEX search_changes_by_transaction;
