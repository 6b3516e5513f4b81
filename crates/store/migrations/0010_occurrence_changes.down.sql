CREATE OR REPLACE FUNCTION record_chartset_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_removal boolean := TG_OP = 'UPDATE' AND OLD.removed_at_ms IS NULL AND NEW.removed_at_ms IS NOT NULL;
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO pending_changes (entity) VALUES (decode(OLD.id, 'hex'));
        RETURN NULL;
    END IF;
    INSERT INTO pending_changes (entity, is_removal) VALUES (decode(NEW.id, 'hex'), is_removal);
    -- The sources of its charts change, or whether they are known.
    IF TG_OP = 'UPDATE' AND (OLD.exact_kind, OLD.exact_ref, OLD.removed_at_ms IS NULL)
                            IS DISTINCT FROM (NEW.exact_kind, NEW.exact_ref, NEW.removed_at_ms IS NULL) THEN
        INSERT INTO pending_changes (entity, is_removal)
            SELECT chart_hash, is_removal FROM chartset_charts WHERE chartset_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;
