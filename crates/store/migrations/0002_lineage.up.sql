-- Identifies the database in which changes are numbered: a digest of the cluster, the database and the table. A
-- restart, a failover and a recovery to a point in time keep it. A new database has another one, and so has one
-- to which a dump was restored: whatever has numbers from another one cannot be compared by them.
CREATE FUNCTION change_feed_lineage() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(format('%s %s %s', system_identifier, database.oid, 'catalogue_changes'::regclass::oid), 0)
    FROM pg_control_system(), pg_database AS database WHERE database.datname = current_database()
$$;

-- The lineage of the sequence; NULL until a page of the feed or an export was read that names it.
ALTER TABLE mirror ADD COLUMN lineage bigint;
