-- What lists filter and sort by, apart from the wide rows of chartsets: counts and deep pages read every row that
-- matches, and a row here is a fifth of one there. An ingest that finds a folder unchanged writes to chartsets only, so
-- that the pages of this table stay all-visible and its indexes can answer without it.

-- One row for each chartset that is shown, written by triggers on chartsets alone. The columns of fixed length come
-- first, which makes reading them cheaper.
CREATE TABLE shown_chartsets (
    updated_at_ms  bigint NOT NULL,
    bpm_min        double precision NOT NULL,
    bpm_max        double precision NOT NULL,
    length_min_ms  bigint NOT NULL,
    length_max_ms  bigint NOT NULL,
    density_max    double precision NOT NULL,
    -- Bit n is set where the chartset has a chart of n keys: one of 15 values, so that the planner knows each of them.
    key_counts     smallint NOT NULL,
    source_kind    text COLLATE "C",
    creator_search text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    title_sort     text COLLATE "C" NOT NULL,
    artist_sort    text COLLATE "C" NOT NULL
);

-- Nothing writes to chartsets until the transaction ends, so none is missed between the copy and the triggers.
LOCK TABLE chartsets IN SHARE ROW EXCLUSIVE MODE;

CREATE FUNCTION key_count_bits(keys smallint[]) RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(sum(1 << key_count), 0)::smallint FROM unnest(keys) AS key_count
$$;

INSERT INTO shown_chartsets
SELECT updated_at_ms, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max, key_count_bits(keys),
       source_kind, creator_search, id, title_sort, artist_sort
FROM chartsets WHERE shown;

ALTER TABLE shown_chartsets ADD PRIMARY KEY (id);

-- Indexes answer without the table only where a vacuum has found all rows of a page visible. The table is small enough
-- to be vacuumed after a twentieth of it has changed.
ALTER TABLE shown_chartsets SET (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

-- One index for each sort. Read backwards it gives the other direction, with the ids of equal values to be sorted. It holds
-- what the filters compare: a row that is passed over on the way to a deep page is not looked up in the table, which
-- would take ten times as long. Names of creators are too long for an index of this kind.
CREATE INDEX shown_chartsets_by_updated ON shown_chartsets (updated_at_ms DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_title ON shown_chartsets (title_sort, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_artist ON shown_chartsets (artist_sort, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_bpm ON shown_chartsets (bpm_max DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_length ON shown_chartsets (length_max_ms DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, density_max);
CREATE INDEX shown_chartsets_by_density ON shown_chartsets (density_max DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms);
CREATE INDEX shown_chartsets_by_creator ON shown_chartsets USING gin (creator_search gin_trgm_ops);

CREATE FUNCTION write_shown_chartset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NOT NEW.shown THEN
        DELETE FROM shown_chartsets WHERE id = OLD.id;
        RETURN NULL;
    END IF;
    INSERT INTO shown_chartsets
    VALUES (NEW.updated_at_ms, NEW.bpm_min, NEW.bpm_max, NEW.length_min_ms, NEW.length_max_ms, NEW.density_max,
            key_count_bits(NEW.keys), NEW.source_kind, NEW.creator_search, NEW.id, NEW.title_sort, NEW.artist_sort)
    ON CONFLICT (id) DO UPDATE SET
        updated_at_ms = excluded.updated_at_ms, bpm_min = excluded.bpm_min, bpm_max = excluded.bpm_max,
        length_min_ms = excluded.length_min_ms, length_max_ms = excluded.length_max_ms,
        density_max = excluded.density_max, key_counts = excluded.key_counts, title_sort = excluded.title_sort,
        artist_sort = excluded.artist_sort, creator_search = excluded.creator_search,
        source_kind = excluded.source_kind;
    RETURN NULL;
END
$$;

-- Not for a change of the last check or of the path, which an ingest of an unchanged folder makes. shown is generated
-- from the last two.
CREATE TRIGGER chartsets_write_shown
    AFTER INSERT OR DELETE OR UPDATE OF
        updated_at_ms, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max, keys, title_sort, artist_sort,
        creator_search, source_kind, removed_at_ms, chart_count
    ON chartsets FOR EACH ROW EXECUTE FUNCTION write_shown_chartset();

-- Until autovacuum comes to it, the planner would know nothing of the table.
ANALYZE shown_chartsets;
