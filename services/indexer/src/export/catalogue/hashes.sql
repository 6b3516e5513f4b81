-- hashes.sqlite: docs/formats/catalogue.md describes it.
PRAGMA application_id = 0x43494853;
PRAGMA user_version = 1;

CREATE TABLE chartsets (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL,
    source_kind TEXT,
    source_ref  INTEGER
);

CREATE TABLE charts (
    hash     INTEGER PRIMARY KEY,
    chartset INTEGER NOT NULL REFERENCES chartsets
);

-- Every chartset of every chart. The chartset with the least preference is kept.
CREATE TEMP TABLE occurrences (hash INTEGER NOT NULL, preference INTEGER NOT NULL);
