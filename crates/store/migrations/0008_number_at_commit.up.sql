-- Gives changes their numbers when their transaction commits (decision 0021). Rows of pending_changes are now
-- visible in their transaction only. Programs of the version before find none, and need pending_changes_from,
-- change_feed.pending_from and change_feed.system_identifier: they are dropped by a later version.

-- Moves the entries of all charts and chartsets that the transaction has changed to the next numbers. What is
-- not known and was never in the feed gets a tombstone: a mirror may have what a restore has lost here.
--
-- Only one transaction does so at a time, and the lock is released after it is visible, so a reader that has
-- seen a number never finds a lower one later. The lock is the last one that a transaction takes but for rows
-- that are written under it, so transactions that wait for it cannot deadlock. No client can hold it: nothing
-- but the commit follows.
CREATE FUNCTION number_changes() RETURNS trigger LANGUAGE plpgsql
-- The plans are of tables that may be empty when they are made.
SET enable_seqscan = off AS $$
DECLARE
    server bigint;
    feed change_feed;
    base bigint;
BEGIN
    -- The first row of the transaction numbers all of them.
    PERFORM FROM pending_changes WHERE ctid = NEW.ctid;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- The lock of the programs of the version before. The statements after it see what the transaction before
    -- this one has committed.
    PERFORM pg_advisory_xact_lock(7105212083226935402);
    server := change_feed_origin();
    SELECT * INTO feed FROM change_feed WHERE only_row;
    base := feed.last_sequence;
    IF feed.origin <> server THEN
        -- Above all numbers that this database has lost: a server takes fewer than a million in a second. It
        -- stays below 2^53 for 270 years. A clock that is behind must not make the gap too small.
        base := greatest(base + (1::bigint << 32),
                         ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) * 1024);
        INSERT INTO change_feed_gaps VALUES (feed.last_sequence, base + 1, feed.origin);
    END IF;
    WITH taken AS (
        DELETE FROM pending_changes WHERE transaction_id = pg_current_xact_id()
        RETURNING entity, changed_at_ms, is_removal
    ), changed AS (
        SELECT entity, max(changed_at_ms) AS changed_at_ms, bool_or(is_removal) AS is_removal
        FROM taken GROUP BY entity
    ), numbered AS (
        SELECT base + row_number() OVER (ORDER BY changed_at_ms, entity) AS sequence, changed.*,
               CASE octet_length(entity)
                   WHEN 32 THEN (
                       SELECT true FROM chartset_charts AS member
                       JOIN charts AS chart ON chart.hash = member.chart_hash
                       JOIN chartsets AS chartset ON chartset.id = member.chartset_id
                       WHERE member.chart_hash = entity AND chart.removed_at_ms IS NULL
                             AND chartset.removed_at_ms IS NULL
                       LIMIT 1)
                   ELSE (SELECT true FROM chartsets WHERE id = encode(entity, 'hex') AND shown)
               END IS NOT NULL AS is_known
        FROM changed
    ), written AS (
        INSERT INTO catalogue_changes AS entry (sequence, entity, changed_at_ms, change, last_removal)
        SELECT sequence, entity, changed_at_ms, CASE WHEN is_known THEN 'added' ELSE 'removed' END,
               CASE WHEN is_removal THEN sequence ELSE 0 END
        FROM numbered
        ON CONFLICT (entity) DO UPDATE SET
            sequence = excluded.sequence, changed_at_ms = excluded.changed_at_ms,
            change = CASE WHEN excluded.change = 'added' AND entry.change <> 'removed' THEN 'updated'
                          ELSE excluded.change END,
            last_removal = greatest(excluded.last_removal, entry.last_removal)
        RETURNING sequence, last_removal
    ), range AS (
        SELECT max(sequence) AS last, max(sequence) FILTER (WHERE last_removal = sequence) AS last_removal
        FROM written
    )
    UPDATE change_feed SET last_sequence = range.last, origin = server,
                           last_removal = greatest(change_feed.last_removal, range.last_removal)
    FROM range WHERE only_row;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER pending_changes_number AFTER INSERT ON pending_changes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION number_changes();

-- Those that no program has numbered get their numbers at the end of this migration.
WITH unnumbered AS (DELETE FROM pending_changes RETURNING entity, changed_at_ms, is_removal)
INSERT INTO pending_changes (entity, changed_at_ms, is_removal) SELECT * FROM unnumbered;
