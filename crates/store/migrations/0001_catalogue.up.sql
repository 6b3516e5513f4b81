CREATE EXTENSION IF NOT EXISTS pg_trgm;

-- What belongs to a note hash. The first file ingested decides it; only removed_at_ms ever changes, and no row
-- is ever deleted: the bytes behind an ETag stay what they were, even when the chart left its last chartset.
CREATE TABLE charts (
    hash          bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    keys          smallint NOT NULL CHECK (keys BETWEEN 4 AND 7),
    bpm_min       double precision NOT NULL,
    bpm_max       double precision NOT NULL CHECK (bpm_max < 'infinity'),
    bpm_main      double precision NOT NULL CHECK (bpm_main < 'infinity'),
    length_ms     bigint NOT NULL CHECK (length_ms BETWEEN 0 AND 4294967295),
    notes         bigint NOT NULL CHECK (notes BETWEEN 1 AND 4294967295),
    lns           bigint NOT NULL CHECK (lns BETWEEN 0 AND notes),
    density_avg   double precision NOT NULL CHECK (density_avg >= 0 AND density_avg < 'infinity'),
    density_peak  double precision NOT NULL CHECK (density_peak >= 0 AND density_peak < 'infinity'),
    rox_bytes     bigint NOT NULL CHECK (rox_bytes > 0),
    first_seen_ms bigint NOT NULL,
    removed_at_ms bigint,
    CHECK (bpm_min <= bpm_max)
);

-- Apart from the numbers, so that reading those never passes over the files.
CREATE TABLE rox_files (
    hash  bytea PRIMARY KEY REFERENCES charts,
    bytes bytea NOT NULL
);
-- The files are compressed already.
ALTER TABLE rox_files ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- A song folder. Everything from title to search_words follows from its charts that are not removed. Times are
-- whole milliseconds, as in the contract, so that every engine breaks ties alike.
CREATE TABLE chartsets (
    id                  text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
    path                text NOT NULL,
    exact_kind          text,
    exact_ref           text COLLATE "C",
    content_fingerprint bytea NOT NULL CHECK (octet_length(content_fingerprint) = 32),
    checked_at_ms       bigint NOT NULL,
    updated_at_ms       bigint NOT NULL,
    removed_at_ms       bigint,

    title               text NOT NULL,
    artist              text NOT NULL,
    creator             text NOT NULL,
    source_kind         text,
    source_ref          text COLLATE "C",
    keys                smallint[] NOT NULL CHECK (keys <@ '{4,5,6,7}'),
    bpm_min             double precision NOT NULL,
    bpm_max             double precision NOT NULL,
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

-- One index for each sort, in its natural direction. The other direction reads the same index backwards and
-- sorts the ids of equal values, which is cheap.
CREATE INDEX chartsets_by_updated ON chartsets (updated_at_ms DESC, id) WHERE shown;
CREATE INDEX chartsets_by_title ON chartsets (title_sort, id) WHERE shown;
CREATE INDEX chartsets_by_artist ON chartsets (artist_sort, id) WHERE shown;
CREATE INDEX chartsets_by_bpm ON chartsets (bpm_max DESC, id) WHERE shown;
CREATE INDEX chartsets_by_length ON chartsets (length_max_ms DESC, id) WHERE shown;
CREATE INDEX chartsets_by_density ON chartsets (density_max DESC, id) WHERE shown;
CREATE INDEX chartsets_by_keys ON chartsets USING gin (keys) WHERE shown;
CREATE INDEX chartsets_by_words ON chartsets USING gin (search_words) WHERE shown;
CREATE INDEX chartsets_by_creator ON chartsets USING gin (creator_search gin_trgm_ops) WHERE shown;

-- A chart as it stands in one song folder: what belongs to the file. Charts are never deleted and are stored in the
-- transaction that first names them, so chart_hash needs no foreign key; checking one locks, and so writes, the row
-- of the chart for every set that holds it. verify finds a membership without its chart.
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
    PRIMARY KEY (chartset_id, chart_hash),
    CHECK ((declared_kind IS NULL) = (declared_ref IS NULL)),
    CHECK (declared_kind IN ('alphaSet', 'betaPack') AND declared_ref ~ '^[1-9][0-9]{0,9}$')
);
CREATE INDEX chartset_charts_by_chart ON chartset_charts (chart_hash);

-- The outbox of the search engines: which chartsets changed, written in the transaction of the change. Numbers
-- are handed out before they become visible, so a reader goes up to the oldest transaction still running
-- (transaction_id < pg_snapshot_xmin(pg_current_snapshot())) and never passes over a row that commits late.
CREATE TABLE search_changes (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    chartset_id    text COLLATE "C" NOT NULL,
    changed_at_ms  bigint NOT NULL,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id()
);
