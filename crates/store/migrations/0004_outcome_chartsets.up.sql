-- The ids of the chartsets that the outcome of an input names (ingest_fingerprints), for an index of them. Other
-- text in quotes cannot be mistaken for one: JSON escapes its quotes.
CREATE FUNCTION outcome_chartsets(outcome text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ARRAY(SELECT match[1] FROM regexp_matches(outcome, '"id":"([0-9a-f]{16})"', 'g') AS match);
