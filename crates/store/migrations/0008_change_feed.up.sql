-- The change feed (docs/api.md, "Changes"): the latest change of each chart and chartset, in the order of a number without
-- gaps that readers could mistake for lost changes.

-- Charts and chartsets that may have changed and have no number for it yet, written by triggers in the transaction of the
-- change, so that versions that do not know of the feed are covered. Rows are only inserted and deleted: transactions that
-- change the same chart do not wait for each other here.
CREATE TABLE pending_changes (
    -- A note hash, or the 8 bytes of a chartset id.
    entity        bytea NOT NULL CHECK (octet_length(entity) IN (8, 32)),
    changed_at_ms bigint NOT NULL DEFAULT (extract(epoch FROM now()) * 1000)::bigint
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Numbers are assigned after the commit of a change, by one transaction at a time: a reader that has seen a number will not
-- find a lower one later. An entity moves to a new number with each change.
CREATE TABLE catalogue_changes (
    sequence      bigint PRIMARY KEY,
    changed_at_ms bigint NOT NULL,
    change        text NOT NULL CHECK (change IN ('added', 'updated', 'removed')),
    entity        bytea NOT NULL UNIQUE CHECK (octet_length(entity) IN (8, 32))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Where the numbers were assigned: the cluster, the start of its server and the table. They differ after a failover, a
-- restore from any kind of backup, and a restart, after each of which numbers may have been lost. Numbers then continue after
-- a gap, so that a reader that has seen lost ones has a number in the gap and is told.
CREATE FUNCTION change_feed_origin() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT format('%s %s %s', system_identifier, extract(epoch FROM pg_postmaster_start_time()),
                  'catalogue_changes'::regclass::oid)
    FROM pg_control_system()
$$;
CREATE TABLE change_feed (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last_sequence bigint NOT NULL CHECK (last_sequence BETWEEN 0 AND 9007199254740991),
    origin        text NOT NULL
);
INSERT INTO change_feed (last_sequence, origin) VALUES (0, change_feed_origin());

-- The gaps: no number between these two was ever assigned here.
CREATE TABLE change_feed_gaps (
    last_before bigint PRIMARY KEY,
    first_after bigint NOT NULL CHECK (first_after > last_before + 1)
);

-- In the order of an ingest, so that there is no deadlock with one. Nothing writes to them until the transaction ends, so
-- no change is missed between the copy and the triggers.
LOCK TABLE charts, chartsets, chartset_charts IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO pending_changes (entity, changed_at_ms)
SELECT hash, first_seen_ms FROM charts WHERE removed_at_ms IS NULL
UNION ALL
SELECT decode(id, 'hex'), updated_at_ms FROM chartsets WHERE shown;

CREATE FUNCTION record_chart_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_changes (entity) VALUES (NEW.hash);
    RETURN NULL;
END
$$;
-- A new chart becomes known with its membership.
CREATE TRIGGER charts_record_change AFTER UPDATE ON charts FOR EACH ROW
    WHEN (OLD.removed_at_ms IS DISTINCT FROM NEW.removed_at_ms) EXECUTE FUNCTION record_chart_change();

CREATE FUNCTION record_member_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO pending_changes (entity) VALUES (OLD.chart_hash);
    ELSE
        INSERT INTO pending_changes (entity) VALUES (NEW.chart_hash);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER chartset_charts_record_member AFTER INSERT OR DELETE ON chartset_charts FOR EACH ROW
    EXECUTE FUNCTION record_member_change();
CREATE TRIGGER chartset_charts_record_change AFTER UPDATE ON chartset_charts FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION record_member_change();

CREATE FUNCTION record_chartset_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO pending_changes (entity) VALUES (decode(OLD.id, 'hex'));
        RETURN NULL;
    END IF;
    INSERT INTO pending_changes (entity) VALUES (decode(NEW.id, 'hex'));
    -- Its charts have other sources, or are no longer known, or are known again.
    IF TG_OP = 'UPDATE' AND (OLD.exact_kind, OLD.exact_ref, OLD.removed_at_ms IS NULL)
                            IS DISTINCT FROM (NEW.exact_kind, NEW.exact_ref, NEW.removed_at_ms IS NULL) THEN
        INSERT INTO pending_changes (entity) SELECT chart_hash FROM chartset_charts WHERE chartset_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;
-- Every change sets updated_at_ms; a check of an unchanged folder sets checked_at_ms and path only.
CREATE TRIGGER chartsets_record_change
    AFTER INSERT OR DELETE OR UPDATE OF updated_at_ms, removed_at_ms, exact_kind, exact_ref
    ON chartsets FOR EACH ROW EXECUTE FUNCTION record_chartset_change();
