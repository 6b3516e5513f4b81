-- catalogue.sqlite: docs/formats/catalogue.md describes it.
PRAGMA application_id = 0x43494341;
PRAGMA user_version = 2;

CREATE TABLE chartsets (
    number            INTEGER PRIMARY KEY,
    id                TEXT NOT NULL,
    title             TEXT NOT NULL,
    artist            TEXT NOT NULL,
    creator           TEXT NOT NULL,
    romanised         TEXT NOT NULL,
    tags              TEXT NOT NULL,
    source_kind       TEXT,
    source_ref        INTEGER,
    source_confidence TEXT,
    updated_at_ms     INTEGER NOT NULL
);

CREATE TABLE charts (
    chartset                INTEGER NOT NULL REFERENCES chartsets,
    hash                    BLOB NOT NULL,
    title                   TEXT,
    artist                  TEXT,
    creator                 TEXT,
    difficulty              TEXT NOT NULL,
    keys                    INTEGER NOT NULL,
    bpm_min                 REAL NOT NULL,
    bpm_max                 REAL NOT NULL,
    bpm_main                REAL NOT NULL,
    length_ms               INTEGER NOT NULL,
    notes                   INTEGER NOT NULL,
    lns                     INTEGER NOT NULL,
    density_peak            REAL NOT NULL,
    rox_bytes               INTEGER NOT NULL,
    alpha_beatmap_id        INTEGER,
    declared_kind           TEXT,
    declared_ref            INTEGER,
    variant                 BLOB,
    rating_hundredths       INTEGER,
    jack                    INTEGER,
    chordjack               INTEGER,
    longjack                INTEGER,
    trill                   INTEGER,
    jumptrill               INTEGER,
    stream                  INTEGER,
    jumpstream              INTEGER,
    handstream              INTEGER,
    chordstream             INTEGER,
    ln_notes                INTEGER,
    ln_time                 INTEGER,
    rows_median_hundredths  INTEGER,
    rows_p90_hundredths     INTEGER,
    PRIMARY KEY (chartset, hash)
) WITHOUT ROWID;

CREATE INDEX charts_by_hash ON charts (hash);

-- UNION ALL, so that SQLite searches both by the index of hashes.
CREATE VIEW sources AS
SELECT hash, source_kind AS kind, source_ref AS ref, 'exact' AS confidence
FROM charts JOIN chartsets ON number = chartset WHERE source_confidence = 'exact'
UNION ALL
SELECT hash, declared_kind, declared_ref, 'declared' FROM charts
WHERE declared_kind IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM charts AS same JOIN chartsets ON number = same.chartset
    WHERE same.hash = charts.hash AND source_confidence = 'exact'
        AND source_kind = charts.declared_kind AND source_ref = charts.declared_ref
);

-- Without its content: the texts of chartsets as they are and folded.
CREATE VIRTUAL TABLE chartset_words USING fts5 (
    title, artist, creator, romanised, tags,
    content = '', tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
);
