-- Lookups can list the chartsets of a chart with their titles and their public sources, which may change by other
-- charts of the chartset. The change feed then lists the chart as well.

CREATE OR REPLACE FUNCTION record_chartset_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_removal boolean := TG_OP = 'UPDATE' AND OLD.removed_at_ms IS NULL AND NEW.removed_at_ms IS NOT NULL;
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO pending_changes (entity) VALUES (decode(OLD.id, 'hex'));
        RETURN NULL;
    END IF;
    INSERT INTO pending_changes (entity, is_removal) VALUES (decode(NEW.id, 'hex'), is_removal);
    -- What lookups of its charts have of it changes, or whether they are known.
    IF TG_OP = 'UPDATE' AND (
        (OLD.exact_kind, OLD.exact_ref, OLD.removed_at_ms IS NULL)
            IS DISTINCT FROM (NEW.exact_kind, NEW.exact_ref, NEW.removed_at_ms IS NULL)
        OR NEW.removed_at_ms IS NULL
            AND (OLD.source_kind, OLD.source_ref, OLD.title)
                IS DISTINCT FROM (NEW.source_kind, NEW.source_ref, NEW.title)
    ) THEN
        -- The title may be that of a chart that was removed.
        is_removal := is_removal OR EXISTS (
            SELECT FROM pending_changes
            WHERE transaction_id = pg_current_xact_id() AND entity = decode(NEW.id, 'hex')
                  AND pending_changes.is_removal);
        INSERT INTO pending_changes (entity, is_removal)
            SELECT chart_hash, is_removal FROM chartset_charts WHERE chartset_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;
