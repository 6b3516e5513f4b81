-- A random value for each change. An index records a digest of those of the last changes that it holds: transaction ids
-- and numbers may be given to other changes after the database went back to an earlier state.
ALTER TABLE search_changes
    ADD COLUMN token bigint NOT NULL DEFAULT hashtextextended(gen_random_uuid()::text, 0);
