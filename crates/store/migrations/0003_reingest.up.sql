-- What an ingest writes for chartsets that have not changed, apart from the wide rows of chartsets: a new version of
-- one of those is written to every index as well.

-- When an ingest last found a chartset unchanged. The time of its last check is the greater of this one, where there
-- is one, and chartsets.checked_at_ms. Half of each page stays free for the next versions of its rows.
CREATE TABLE chartset_checks (
    chartset_id   text COLLATE "C" PRIMARY KEY,
    checked_at_ms bigint NOT NULL
) WITH (fillfactor = 50);

-- What each folder or archive of a library was when it was last read, and what came of it, so that it is decoded again
-- only when it changed. Rows may be deleted at any time: then the folder is decoded again.
CREATE TABLE ingest_fingerprints (
    place    bytea PRIMARY KEY CHECK (octet_length(place) = 32),
    metadata bytea CHECK (octet_length(metadata) = 32),
    content  bytea NOT NULL CHECK (octet_length(content) = 32),
    outcome  text NOT NULL
);
