-- How the search engines follow the outbox search_changes.

-- A reader goes through the outbox by transaction, and always takes whole transactions.
CREATE INDEX search_changes_by_transaction ON search_changes (transaction_id);

-- What the numbers in the outbox mean. Transaction ids are those of one cluster: after a restore into another one
-- those of the dump say nothing, which shows by the identifier. Each time the outbox begins anew for that reason it
-- gets the next number, so that no position of before is ever taken for one of after. Rows of transactions below
-- pruned_below are gone.
CREATE TABLE search_outbox (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    cluster      bigint NOT NULL,
    beginning    integer NOT NULL DEFAULT 0 CHECK (beginning BETWEEN 0 AND 32767),
    pruned_below xid8 NOT NULL DEFAULT '0'
);
INSERT INTO search_outbox (cluster) SELECT system_identifier FROM pg_control_system();

-- Tells those who follow that there is something new. PostgreSQL lets only one transaction at a time commit a
-- notification, disk and all; with this lock at most one of those that run at the same time has one, and the others
-- commit as they always did. Who is told finds them still running, or their rows.
CREATE FUNCTION notify_search_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_xact_lock(7105212083226935401) THEN
        NOTIFY search_changes;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER search_changes_notify AFTER INSERT ON search_changes
    FOR EACH STATEMENT EXECUTE FUNCTION notify_search_changes();
