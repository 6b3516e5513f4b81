DROP FUNCTION similar_charts, pattern_order, shown_hashes, chart_occurrences;
DROP VIEW indexed_chartsets, checked_chartsets, known_charts;

CREATE OR REPLACE FUNCTION change_feed_origin() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(format('%s %s %s', system_identifier, extract(epoch FROM pg_postmaster_start_time()),
                                   'catalogue_changes'::regclass::oid), 0)
    FROM pg_control_system()
$$;
CREATE OR REPLACE FUNCTION change_feed_lineage() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(format('%s %s %s', system_identifier, database.oid, 'catalogue_changes'::regclass::oid), 0)
    FROM pg_control_system(), pg_database AS database WHERE database.datname = current_database()
$$;
DROP VIEW server_state;
