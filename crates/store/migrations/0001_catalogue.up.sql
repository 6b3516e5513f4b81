-- The schema: charts, chartsets, removals, the table behind lists, ingest, the change feed, hash filters. Times
-- are milliseconds since the Unix epoch.

CREATE EXTENSION IF NOT EXISTS pg_trgm;

-- Charts ------------------------------------------------------------------------------------------------------

-- One row per note hash. The first file ingested with a hash determines the row, until `chart-indexer
-- replace-rox` replaces that file; otherwise only removed_at_ms and what `chart-indexer backfill` computes
-- change: density_curve, rating, patterns and analysis_version. Rows are not deleted when the chart has left
-- its last chartset, so the bytes behind an ETag do not change. Only `chart-indexer remove --erase` deletes
-- charts, with all rows that have their hash.
CREATE TABLE charts (
    hash          bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    -- The version in docs/formats/note-hash.md. `chart-indexer verify` reports those that it does not know.
    note_hash_version integer NOT NULL DEFAULT 1 CHECK (note_hash_version > 0),
    keys          smallint NOT NULL CHECK (keys BETWEEN 4 AND 7),
    -- docs/formats/rating.md, in hundredths; NULL if the chart has none. It is computed with the patterns, by
    -- this version of both; 0 if they are not computed yet.
    rating        smallint CHECK (rating BETWEEN 0 AND 1500),
    analysis_version smallint NOT NULL DEFAULT 0 CHECK (analysis_version >= 0),
    bpm_min       double precision NOT NULL,
    bpm_max       double precision NOT NULL CHECK (bpm_max < 'infinity'),
    bpm_main      double precision NOT NULL CHECK (bpm_main < 'infinity'),
    length_ms     bigint NOT NULL CHECK (length_ms BETWEEN 0 AND 4294967295),
    notes         bigint NOT NULL CHECK (notes BETWEEN 1 AND 4294967295),
    lns           bigint NOT NULL CHECK (lns BETWEEN 0 AND notes),
    density_avg   double precision NOT NULL CHECK (density_avg >= 0 AND density_avg < 'infinity'),
    density_peak  double precision NOT NULL CHECK (density_peak >= 0 AND density_peak < 'infinity'),
    rox_bytes     bigint NOT NULL CHECK (rox_bytes > 0),
    -- docs/formats/variant.md; NULL if the notes have none.
    variant       bytea CHECK (octet_length(variant) = 32),
    -- docs/formats/patterns.md: shares of rows and notes in percent, 1 byte each, and rows per second in
    -- hundredths, 2 bytes each.
    patterns      bytea CHECK (octet_length(patterns) = 15),
    first_seen_ms bigint NOT NULL,
    -- A copy: see removals.
    removed_at_ms bigint,
    -- NULL until computed: see chart_previews.
    density_curve bytea CHECK (octet_length(density_curve) = 48),
    CHECK (bpm_min <= bpm_max)
);

-- Similar charts are neighbours in this index: charts of the same rating by the shares of long notes and jacks,
-- bytes 9 and 0 to 2 of the patterns, without those of runs, bytes 5 to 8.
CREATE INDEX charts_by_similarity ON charts (keys, rating, (
    get_byte(patterns, 9) + get_byte(patterns, 0) + get_byte(patterns, 1) + get_byte(patterns, 2)
    - get_byte(patterns, 5) - get_byte(patterns, 6) - get_byte(patterns, 7) - get_byte(patterns, 8)
)) WHERE removed_at_ms IS NULL AND rating > 0;

-- Reads are by equality only, and an index of 4-byte hashes is half as large as one of variants.
CREATE INDEX charts_by_variant ON charts USING hash (variant);

-- A table of its own, so that reading the numbers of charts does not read the pages of their files.
CREATE TABLE rox_files (
    hash               bytea PRIMARY KEY REFERENCES charts,
    -- NULL if the file is an object.
    bytes              bytea,
    -- The BLAKE3 digest of a file that has replaced another one, also one that was erased. Its ETag is then
    -- not the hash, and the change feed names the digest.
    replacement_digest bytea CHECK (octet_length(replacement_digest) = 32),
    -- The name of the file in the object store, which is its BLAKE3 digest (decision 0092). A row that has
    -- the bytes as well does not need the object, which is about to be deleted.
    object             bytea CHECK (octet_length(object) = 32),
    CHECK (bytes IS NOT NULL OR object IS NOT NULL)
);
-- Not compressed by PostgreSQL: the files are compressed already.
ALTER TABLE rox_files ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- For pages of the change feed.
CREATE INDEX rox_files_replaced ON rox_files (hash) WHERE replacement_digest IS NOT NULL;
-- Finds the objects that no row needs. Reads are by equality only.
CREATE INDEX rox_files_by_object ON rox_files USING hash (object) WHERE object IS NOT NULL;

-- A table of its own for the same reason. A preview and a density curve are computed from the ROX file, and may
-- be missing: `chart-indexer backfill` computes them. There is no foreign key, since a chart is deleted
-- together with its preview; `chart-indexer verify` reports previews without a chart.
CREATE TABLE chart_previews (
    hash   bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    -- NULL if it is an object, as in rox_files.
    json   bytea,
    object bytea CHECK (octet_length(object) = 32),
    CHECK (json IS NOT NULL OR object IS NOT NULL)
);
CREATE INDEX chart_previews_by_object ON chart_previews USING hash (object) WHERE object IS NOT NULL;
-- pglz takes twenty times as long, which is most of the time of an insert. A server may be built without LZ4.
DO $$ BEGIN
    ALTER TABLE chart_previews ALTER COLUMN json SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;

-- Chartsets ---------------------------------------------------------------------------------------------------

-- One row per song folder. The columns from title to search_words are derived from its charts that are not
-- removed.
CREATE TABLE chartsets (
    id                  text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
    path                text NOT NULL,
    exact_kind          text,
    exact_ref           text COLLATE "C",
    content_fingerprint bytea NOT NULL CHECK (octet_length(content_fingerprint) = 32),
    -- The last check may be later: see chartset_checks.
    checked_at_ms       bigint NOT NULL,
    updated_at_ms       bigint NOT NULL,
    -- A copy: see removals.
    removed_at_ms       bigint,

    title               text NOT NULL,
    artist              text NOT NULL,
    creator             text NOT NULL,
    source_kind         text,
    source_ref          text COLLATE "C",
    keys                smallint[] NOT NULL CHECK (keys <@ '{4,5,6,7}'),
    bpm_min             double precision NOT NULL,
    bpm_max             double precision NOT NULL,
    -- Lengths and times are integers, as in the API, so that all search engines break ties in the same way.
    length_min_ms       bigint NOT NULL,
    length_max_ms       bigint NOT NULL,
    density_max         double precision NOT NULL,
    chart_count         integer NOT NULL CHECK (chart_count >= 0),
    tags                text[] NOT NULL,
    romanised_names     text[] NOT NULL,

    title_sort          text COLLATE "C" NOT NULL,
    artist_sort         text COLLATE "C" NOT NULL,
    creator_search      text COLLATE "C" NOT NULL,
    search_words        tsvector NOT NULL,

    shown               boolean NOT NULL GENERATED ALWAYS AS (removed_at_ms IS NULL AND chart_count > 0) STORED,

    CHECK ((exact_kind IS NULL) = (exact_ref IS NULL)),
    CHECK (exact_kind IN ('alphaSet', 'betaPack') AND exact_ref ~ '^[1-9][0-9]{0,9}$'),
    CHECK ((source_kind IS NULL) = (source_ref IS NULL)),
    CHECK (source_kind IN ('alphaSet', 'betaPack') AND source_ref ~ '^[1-9][0-9]{0,9}$'),
    CHECK ((chart_count = 0) = (keys = '{}')),
    CHECK (bpm_min <= bpm_max AND length_min_ms <= length_max_ms)
);

-- For the text of a search; all other filters and the sorts of lists use shown_chartsets.
CREATE INDEX chartsets_by_words ON chartsets USING gin (search_words) WHERE shown;
-- For lists of a set.
CREATE INDEX chartsets_of_sets ON chartsets (source_ref) WHERE shown AND source_kind = 'alphaSet';
-- For lists and the page of a pack.
CREATE INDEX chartsets_of_packs ON chartsets (source_ref, title_sort, id) WHERE shown AND source_kind = 'betaPack';

-- One row per chart in a chartset, with the metadata of its file in that folder. There is no foreign key to
-- charts: to check one, PostgreSQL locks the row of the chart, which is a write for each chartset that contains
-- the chart. The transaction that first refers to a chart stores it, and a chart is deleted together with these
-- rows while no ingest runs; `chart-indexer verify` reports rows without a chart.
CREATE TABLE chartset_charts (
    chartset_id      text COLLATE "C" NOT NULL REFERENCES chartsets,
    chart_hash       bytea NOT NULL,
    title            text NOT NULL,
    artist           text NOT NULL,
    title_romanised  text,
    artist_romanised text,
    creator          text NOT NULL,
    difficulty       text NOT NULL,
    tags             text[] NOT NULL,
    declared_kind    text,
    declared_ref     text COLLATE "C",
    alpha_beatmap_id bigint CHECK (alpha_beatmap_id >= 0),
    -- Lookups return the sources of the first occurrences by this rank: exact before declared before none, then
    -- by kind.
    source_rank      smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (chartset_id, chart_hash),
    CHECK ((declared_kind IS NULL) = (declared_ref IS NULL)),
    CHECK (declared_kind IN ('alphaSet', 'betaPack') AND declared_ref ~ '^[1-9][0-9]{0,9}$')
);

-- In the order in which lookups read them: hostile files make thousands of chartsets share a chart.
CREATE INDEX chartset_charts_by_chart ON chartset_charts (chart_hash, source_rank, chartset_id);

-- For lookups by this id.
CREATE INDEX chartset_charts_by_beatmap ON chartset_charts (alpha_beatmap_id) WHERE alpha_beatmap_id IS NOT NULL;

-- What else a chart in a chartset is known by, from its files there: their MD5 digests (16 bytes), and its
-- variants with the heads of rolls (32 bytes). Rows stay when the files change, so that clients which have the
-- earlier files find the chart. There is no foreign key, as in chartset_charts.
CREATE TABLE chart_aliases (
    chart_hash  bytea NOT NULL CHECK (octet_length(chart_hash) = 32),
    chartset_id text COLLATE "C" NOT NULL,
    alias       bytea NOT NULL CHECK (octet_length(alias) IN (16, 32)),
    PRIMARY KEY (chart_hash, chartset_id, alias)
);
CREATE INDEX chart_aliases_by_alias ON chart_aliases USING hash (alias);

-- The version of the folding that title_sort, artist_sort, creator_search and search_words of all chartsets
-- have (decision 0077). Programs with another version refuse to use the catalogue; `chart-indexer migrate`
-- folds it again.
CREATE TABLE text_folding (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  integer NOT NULL
);
INSERT INTO text_folding (version) VALUES (0);

-- Removals ----------------------------------------------------------------------------------------------------

-- The charts and chartsets that an operator has removed, whether or not they are stored: a list may be applied
-- to an empty index, before anything is ingested. Hence no foreign key. `removed_at_ms` of charts and chartsets
-- are copies, so that reads need no join: the trigger below sets those of stored rows, and the statements that
-- insert rows set theirs. An advisory lock keeps both from missing each other.
CREATE TABLE removals (
    -- A note hash, or the 8 bytes of a chartset id.
    entity        bytea PRIMARY KEY CHECK (octet_length(entity) IN (8, 32)),
    removed_at_ms bigint NOT NULL,
    -- What the operator has noted. It is in no response.
    reason        text,
    -- Whether its data was deleted. Ingests do not store it again.
    erased        boolean NOT NULL DEFAULT false
);

-- The charts that were erased, with the BLAKE3 digest of the first ROX file; NULL if that was replaced. Another
-- file that is added later counts as a replacement.
CREATE TABLE erased_files (
    hash   bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    digest bytea CHECK (octet_length(digest) = 32)
);

-- Lists -------------------------------------------------------------------------------------------------------

-- One row per shown chartset, with the columns that lists filter and sort by. Only the trigger below writes it.
-- Counts and deep pages read every matching row, and a row here has a fifth of the size of one in chartsets. An
-- ingest of an unchanged folder does not write to this table, so its pages stay all-visible and allow
-- index-only scans. Columns of fixed length come first, which makes them cheaper to read.
CREATE TABLE shown_chartsets (
    updated_at_ms  bigint NOT NULL,
    bpm_min        double precision NOT NULL,
    bpm_max        double precision NOT NULL,
    -- The highest main BPM of its charts.
    bpm_main_max   double precision NOT NULL,
    length_min_ms  bigint NOT NULL,
    length_max_ms  bigint NOT NULL,
    density_max    double precision NOT NULL,
    notes_max      bigint NOT NULL,
    -- Those of its charts, in hundredths; 0 if none has a rating.
    rating_min     smallint NOT NULL,
    rating_max     smallint NOT NULL,
    -- Bit n is set if the chartset has a chart with n keys. There are 15 values, few enough for the statistics
    -- of the planner to contain all of them.
    key_counts     smallint NOT NULL,
    source_kind    text COLLATE "C",
    creator_search text COLLATE "C" NOT NULL,
    id             text COLLATE "C" PRIMARY KEY,
    title_sort     text COLLATE "C" NOT NULL,
    artist_sort    text COLLATE "C" NOT NULL
) WITH (
    -- Index-only scans need a recent vacuum. The table is small enough for one whenever a twentieth of it has
    -- changed.
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

-- One index per sort. A backward scan gives the opposite direction; then only ids of equal values have to be
-- sorted. The included columns are those of the filters: without them each row that is skipped before a deep
-- page would be fetched from the table, which takes ten times as long. creator_search is too long to be
-- included.
CREATE INDEX shown_chartsets_by_updated ON shown_chartsets (updated_at_ms DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_title ON shown_chartsets (title_sort, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_artist ON shown_chartsets (artist_sort, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_bpm ON shown_chartsets (bpm_max DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_main_bpm ON shown_chartsets (bpm_main_max DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max);
CREATE INDEX shown_chartsets_by_length ON shown_chartsets (length_max_ms DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, density_max);
CREATE INDEX shown_chartsets_by_density ON shown_chartsets (density_max DESC, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms);
-- Densities are few whole numbers, so PostgreSQL expects to sort many ids of equal ones, and reads all matches
-- of a text instead.
CREATE INDEX shown_chartsets_by_density_ascending ON shown_chartsets (density_max, id)
    INCLUDE (key_counts, source_kind, bpm_min, bpm_max, length_min_ms, length_max_ms);
-- Filters of these lists are mostly of charts, so an index with all columns would have its size for nothing.
CREATE INDEX shown_chartsets_by_rating ON shown_chartsets (rating_max DESC, id) INCLUDE (key_counts);
CREATE INDEX shown_chartsets_by_notes ON shown_chartsets (notes_max DESC, id) INCLUDE (key_counts);
CREATE INDEX shown_chartsets_by_creator ON shown_chartsets USING gin (creator_search gin_trgm_ops);

CREATE FUNCTION key_count_bits(keys smallint[]) RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(sum(1 << key_count), 0)::smallint FROM unnest(keys) AS key_count
$$;

-- The version of rating and patterns that lists filter and sort by. While `chart-indexer backfill` computes
-- those of another version, charts that have it already are not in lists by rating and patterns.
CREATE TABLE chart_analysis (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    listed_version smallint NOT NULL
);
INSERT INTO chart_analysis (listed_version) VALUES (1);

-- One row per chart of a shown chartset that is not removed, with the columns that lists filter charts by. Only
-- the function below writes it.
CREATE TABLE shown_charts (
    bpm_min      double precision NOT NULL,
    bpm_max      double precision NOT NULL,
    length_ms    bigint NOT NULL,
    density_peak double precision NOT NULL,
    notes        bigint NOT NULL,
    keys         smallint NOT NULL,
    -- In percent, rounded half up.
    ln_share     smallint NOT NULL,
    rating       smallint,
    chartset_id  text COLLATE "C" NOT NULL,
    -- In percent, 1 byte for each class of rows.
    row_shares   bytea
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX shown_charts_of_chartset ON shown_charts (chartset_id);
-- For totals of lists.
CREATE INDEX shown_charts_by_rating ON shown_charts (keys, rating);

-- Writes what lists filter and sort by of a chartset. Not of several at once: PostgreSQL would expect more rows
-- than there are, and an ingest into a new database would scan whole tables until they are analyzed
-- (benchmarks/results/2026-11-26-chart-filters.md).
CREATE FUNCTION write_shown(chartset text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM shown_charts WHERE chartset_id = chartset;
    DELETE FROM shown_chartsets WHERE id = chartset
        AND NOT EXISTS (SELECT FROM chartsets WHERE id = chartset AND shown);
    WITH listed AS MATERIALIZED (
        SELECT chart.*, CASE WHEN analysis_version = listed_version THEN rating END AS listed_rating,
               CASE WHEN analysis_version = listed_version THEN substring(patterns FROM 1 FOR 9) END AS row_shares
        FROM chartset_charts AS member JOIN charts AS chart ON chart.hash = member.chart_hash
             CROSS JOIN chart_analysis
        WHERE member.chartset_id = chartset AND chart.removed_at_ms IS NULL
            AND EXISTS (SELECT FROM chartsets WHERE id = chartset AND shown)
    ), written AS (
        INSERT INTO shown_charts
        SELECT bpm_min, bpm_max, length_ms, density_peak, notes, keys, (200 * lns + notes) / (2 * notes),
               listed_rating, chartset, row_shares
        FROM listed
    )
    INSERT INTO shown_chartsets
    SELECT updated_at_ms, bpm_min, bpm_max, coalesce(bpm_main, 0), length_min_ms, length_max_ms, density_max,
           coalesce(notes, 0), coalesce(rating_min, 0), coalesce(rating_max, 0),
           key_count_bits(keys), source_kind, creator_search, id, title_sort, artist_sort
    FROM chartsets CROSS JOIN (
        SELECT max(bpm_main), max(notes), min(listed_rating), max(listed_rating) FROM listed
    ) AS charts (bpm_main, notes, rating_min, rating_max)
    WHERE id = chartset AND shown
    ON CONFLICT (id) DO UPDATE SET
        updated_at_ms = excluded.updated_at_ms, bpm_min = excluded.bpm_min, bpm_max = excluded.bpm_max,
        bpm_main_max = excluded.bpm_main_max, length_min_ms = excluded.length_min_ms,
        length_max_ms = excluded.length_max_ms, density_max = excluded.density_max,
        notes_max = excluded.notes_max, rating_min = excluded.rating_min, rating_max = excluded.rating_max,
        key_counts = excluded.key_counts, title_sort = excluded.title_sort, artist_sort = excluded.artist_sort,
        creator_search = excluded.creator_search, source_kind = excluded.source_kind;
END
$$;

CREATE FUNCTION write_shown_chartset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_shown(coalesce(NEW.id, OLD.id));
    RETURN NULL;
END
$$;

-- Ratings and patterns that `chart-indexer backfill` has computed.
CREATE FUNCTION write_shown_analysis() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_shown(chartset_id) FROM (
        SELECT DISTINCT member.chartset_id
        FROM before JOIN after USING (hash) JOIN chartset_charts AS member ON member.chart_hash = hash
        WHERE after.analysis_version = (SELECT listed_version FROM chart_analysis)
              AND (before.rating, before.patterns, before.analysis_version)
                  IS DISTINCT FROM (after.rating, after.patterns, after.analysis_version)) AS changed;
    RETURN NULL;
END
$$;

-- Not for updates of checked_at_ms or path, which an ingest of an unchanged folder makes. A trigger cannot name
-- the generated column shown; it depends on the last two columns.
CREATE TRIGGER chartsets_write_shown
    AFTER INSERT OR DELETE OR UPDATE OF
        updated_at_ms, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max, keys, title_sort, artist_sort,
        creator_search, source_kind, removed_at_ms, chart_count
    ON chartsets FOR EACH ROW EXECUTE FUNCTION write_shown_chartset();

-- Once for each chartset of the charts of a statement: for each chart it would be most of the time of a
-- backfill.
CREATE TRIGGER charts_write_shown
    AFTER UPDATE ON charts REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION write_shown_analysis();

-- Percentiles -------------------------------------------------------------------------------------------------

-- One row per number of keys and measure that at least 100 charts of shown chartsets have, so that the page of
-- a chart can say how many of them are easier. `chart-indexer` writes them after an ingest and once a day: they
-- move too slowly to be computed with each change.
CREATE TABLE chart_percentiles (
    keys           smallint NOT NULL,
    measure        text NOT NULL CHECK (measure IN ('rating', 'density_peak')),
    -- For 1 % to 99 %, the least value which that share of the charts is below. There are fewer if many charts
    -- have the greatest value.
    lower_bounds   double precision[] NOT NULL,
    computed_at_ms bigint NOT NULL,
    PRIMARY KEY (keys, measure)
);

-- Ingest ------------------------------------------------------------------------------------------------------

-- When an ingest last found a chartset unchanged; the last check is the greater of this time and
-- chartsets.checked_at_ms. A table of its own, because a new version of a wide row in chartsets would be
-- written to every index as well. The fill factor leaves room for the next version of each row on its page.
CREATE TABLE chartset_checks (
    chartset_id   text COLLATE "C" PRIMARY KEY,
    checked_at_ms bigint NOT NULL
) WITH (fillfactor = 50);

-- The state of each input, a folder or an archive of a library, when it was last read, and the outcome, so that
-- only changed inputs are decoded again. Rows may be deleted at any time: their inputs are decoded by the next
-- ingest.
CREATE TABLE ingest_fingerprints (
    -- Digest of its path.
    input_key       bytea PRIMARY KEY CHECK (octet_length(input_key) = 32),
    -- Digest of the names, sizes and times of its files; NULL if these are not reliable.
    metadata_digest bytea CHECK (octet_length(metadata_digest) = 32),
    content_digest  bytea NOT NULL CHECK (octet_length(content_digest) = 32),
    outcome         text NOT NULL
);

-- Change feed (docs/api.md, "Changes") ------------------------------------------------------------------------

-- Charts and chartsets that may have changed and have no sequence in the feed yet, written by the triggers
-- below in the transaction of the change. Rows are only inserted and deleted, so transactions that change the
-- same chart do not wait for each other here.
CREATE TABLE pending_changes (
    -- A note hash, or the 8 bytes of a chartset id.
    entity         bytea NOT NULL CHECK (octet_length(entity) IN (8, 32)),
    changed_at_ms  bigint NOT NULL DEFAULT (extract(epoch FROM now()) * 1000)::bigint,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- Whether an operator has removed the entity, or a chart or chartset that responses about it show.
    is_removal     boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Reads begin at change_feed.pending_from, above the deleted rows that are not vacuumed yet.
CREATE INDEX pending_changes_by_transaction ON pending_changes (transaction_id);

-- The feed: the latest change of each chart and chartset; its row moves to a new sequence with each change.
-- Sequences are assigned after the commit of a change, by one transaction at a time, so a reader that has seen
-- a sequence never finds a lower one later.
CREATE TABLE catalogue_changes (
    sequence      bigint PRIMARY KEY,
    changed_at_ms bigint NOT NULL,
    change        text NOT NULL CHECK (change IN ('added', 'updated', 'removed')),
    entity        bytea NOT NULL UNIQUE CHECK (octet_length(entity) IN (8, 32)),
    -- The sequence of the last of its changes with pending_changes.is_removal; 0 if there was none.
    last_removal  bigint NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Search indexes follow chartsets only.
CREATE INDEX catalogue_changes_of_chartsets ON catalogue_changes (sequence) WHERE octet_length(entity) = 8;

-- Identifies the server that assigns sequences: a digest of the cluster, the start of its server, and the
-- table. It changes with a failover, a restore from any kind of backup, and a restart. Each of them may have
-- lost sequences that readers have seen, so the feed continues after a gap: a reader with a lost sequence is in
-- the gap, and gets an error.
CREATE FUNCTION change_feed_origin() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(format('%s %s %s', system_identifier, extract(epoch FROM pg_postmaster_start_time()),
                                   'catalogue_changes'::regclass::oid), 0)
    FROM pg_control_system()
$$;

-- The last sequence, and the origin that assigned it. The limit is the largest integer that is exact in JSON.
CREATE TABLE change_feed (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last_sequence bigint NOT NULL CHECK (last_sequence BETWEEN 0 AND 9007199254740991),
    origin        bigint NOT NULL,
    -- No pending change has a lower transaction id, as long as the cluster is this one: transaction ids of
    -- another one, to which a dump is restored, may be lower. A standby belongs to the cluster of its primary.
    pending_from  xid8 NOT NULL DEFAULT '0',
    system_identifier bigint NOT NULL DEFAULT 0,
    -- The last sequence of a change with pending_changes.is_removal; 0 if there was none.
    last_removal  bigint NOT NULL DEFAULT 0
);
INSERT INTO change_feed (last_sequence, origin) VALUES (0, change_feed_origin());

-- No sequence between these two was assigned here. The origin assigned those up to the first one.
CREATE TABLE change_feed_gaps (
    last_before bigint PRIMARY KEY,
    first_after bigint NOT NULL CHECK (first_after > last_before + 1),
    origin      bigint NOT NULL
);

-- The transaction id at which reads of pending_changes begin. Lists and their totals read it as well, and would
-- be read by one process otherwise.
CREATE FUNCTION pending_changes_from() RETURNS xid8 LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN feed.system_identifier = server.system_identifier THEN feed.pending_from ELSE '0' END
    FROM change_feed AS feed, pg_control_system() AS server
$$;

-- The origin that assigned a sequence of the feed, and the sequences above it up to the next gap.
CREATE FUNCTION change_feed_origin_of(at_sequence bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT origin FROM change_feed_gaps WHERE last_before >= at_sequence ORDER BY last_before LIMIT 1), origin
    ) FROM change_feed
$$;

-- Whether the change with this sequence was lost: it is above the last one, or in a gap.
CREATE FUNCTION is_lost_sequence(lost_sequence bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT last_sequence < lost_sequence OR EXISTS (
        SELECT FROM change_feed_gaps WHERE last_before < lost_sequence AND first_after > lost_sequence
    ) FROM change_feed
$$;

CREATE FUNCTION record_chart_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_changes (entity, is_removal) VALUES (NEW.hash, NEW.removed_at_ms IS NOT NULL);
    IF NEW.removed_at_ms IS NOT NULL THEN
        INSERT INTO pending_changes (entity, is_removal)
            SELECT decode(chartset_id, 'hex'), true FROM chartset_charts WHERE chart_hash = NEW.hash;
    END IF;
    RETURN NULL;
END
$$;

-- Not for new charts, which become known when a chartset contains them.
CREATE TRIGGER charts_record_change AFTER UPDATE ON charts FOR EACH ROW
    WHEN (OLD.removed_at_ms IS DISTINCT FROM NEW.removed_at_ms) EXECUTE FUNCTION record_chart_change();

-- A removal is in the change feed even if nothing is stored: a mirror may have what a restore has lost here.
CREATE FUNCTION copy_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE charts SET removed_at_ms = NULL WHERE hash = OLD.entity;
        UPDATE chartsets SET removed_at_ms = NULL WHERE id = encode(OLD.entity, 'hex');
        RETURN NULL;
    END IF;
    UPDATE charts SET removed_at_ms = NEW.removed_at_ms WHERE hash = NEW.entity;
    IF NOT FOUND THEN
        UPDATE chartsets SET removed_at_ms = NEW.removed_at_ms WHERE id = encode(NEW.entity, 'hex');
    END IF;
    IF NOT FOUND THEN
        INSERT INTO pending_changes (entity, is_removal) VALUES (NEW.entity, true);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER removals_copy AFTER INSERT OR DELETE ON removals FOR EACH ROW EXECUTE FUNCTION copy_removal();

CREATE FUNCTION record_new_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_changes (entity) SELECT chart_hash FROM inserted;
    RETURN NULL;
END
$$;

CREATE FUNCTION record_member_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_changes (entity) VALUES (OLD.chart_hash);
    RETURN NULL;
END
$$;

CREATE TRIGGER chartset_charts_record_new AFTER INSERT ON chartset_charts REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION record_new_members();
CREATE TRIGGER chartset_charts_record_old AFTER DELETE ON chartset_charts FOR EACH ROW
    EXECUTE FUNCTION record_member_change();
CREATE TRIGGER chartset_charts_record_change AFTER UPDATE ON chartset_charts FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION record_member_change();

CREATE FUNCTION record_new_chartsets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_changes (entity) SELECT decode(id, 'hex') FROM inserted;
    RETURN NULL;
END
$$;

CREATE TRIGGER chartsets_record_new AFTER INSERT ON chartsets REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION record_new_chartsets();

CREATE FUNCTION record_chartset_change() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- Every change sets updated_at_ms. An ingest of an unchanged folder sets only checked_at_ms and path.
CREATE TRIGGER chartsets_record_change
    AFTER DELETE OR UPDATE OF updated_at_ms, removed_at_ms, exact_kind, exact_ref
    ON chartsets FOR EACH ROW EXECUTE FUNCTION record_chartset_change();

-- An ingest of a chartset whose charts are the same may find other files.
CREATE FUNCTION record_new_aliases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_changes (entity)
        SELECT DISTINCT decode(chartset_id, 'hex') FROM inserted
        WHERE NOT EXISTS (
            SELECT FROM pending_changes
            WHERE transaction_id = pg_current_xact_id() AND entity = decode(chartset_id, 'hex'));
    RETURN NULL;
END
$$;

CREATE TRIGGER chart_aliases_record_new AFTER INSERT ON chart_aliases REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION record_new_aliases();

-- Mirrors (docs/operations/mirrors.md) ------------------------------------------------------------------------

-- The index that this one mirrors, if it is a mirror.
CREATE TABLE mirror (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- Its base address.
    upstream text NOT NULL,
    -- The last sequence of its change feed that is applied; NULL until an export is imported or the feed is
    -- followed from 0.
    sequence bigint CHECK (sequence >= 0),
    -- How often the mirror has started again, since changes were lost there.
    restarts integer NOT NULL DEFAULT 0,
    -- Whether it has not reached the end of the feed since it started (again).
    is_starting boolean NOT NULL DEFAULT true
);

-- The chartsets that were stored when the mirror started (again), and were neither in the export nor in the
-- feed since. Those that are left at the end of the feed are gone there, and are deleted.
CREATE TABLE mirror_unconfirmed (
    chartset_id text COLLATE "C" PRIMARY KEY
);

-- The digests of ROX files that have replaced others, of charts that were not stored when the feed named them.
-- A replica of the other index may still have the earlier file.
CREATE TABLE mirror_replacements (
    hash   bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    digest bytea NOT NULL CHECK (octet_length(digest) = 32)
);

-- CDN (docs/operations/cdn.md)
-- ---------------------------------------------------------------------------------

-- The position in the change feed up to which a CDN is purged, as in change_feed.
CREATE TABLE cdn_purges (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    sequence bigint NOT NULL,
    origin   bigint NOT NULL
);

-- Hash filters (docs/api.md, "Hash filter") -------------------------------------------------------------------

-- A filter contains every chart that was known at its sequence of the change feed. `chart-indexer` builds them
-- and retains the last two, since a client may request the previous one just after it was referred to it.
CREATE TABLE hash_filters (
    sequence    bigint PRIMARY KEY CHECK (sequence >= 0),
    -- The number of hashes in the filter.
    hashes      bigint NOT NULL CHECK (hashes >= 0),
    built_at_ms bigint NOT NULL,
    bytes       bytea NOT NULL
);
-- Not compressed by PostgreSQL: the bytes are random.
ALTER TABLE hash_filters ALTER COLUMN bytes SET STORAGE EXTERNAL;
