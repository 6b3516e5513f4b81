-- The changes of the other index that a mirror has refused, for example since a ROX file was missing or could not
-- be read there. They are tried again until they are stored, or have changed.
CREATE TABLE mirror_refusals (
    -- The hash of the chart, or the id of the chartset.
    entity bytea PRIMARY KEY CHECK (octet_length(entity) IN (8, 32)),
    -- The change, and the sequence after which the page with it begins.
    sequence       bigint NOT NULL,
    after_sequence bigint NOT NULL,
    -- How often it was tried again, and when it is tried next, in Unix epoch milliseconds.
    tries       integer NOT NULL DEFAULT 0,
    retry_at_ms bigint NOT NULL
);
