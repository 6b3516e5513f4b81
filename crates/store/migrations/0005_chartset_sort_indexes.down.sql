CREATE INDEX chartsets_by_updated ON chartsets (updated_at_ms DESC, id) WHERE shown;
CREATE INDEX chartsets_by_title ON chartsets (title_sort, id) WHERE shown;
CREATE INDEX chartsets_by_artist ON chartsets (artist_sort, id) WHERE shown;
CREATE INDEX chartsets_by_bpm ON chartsets (bpm_max DESC, id) WHERE shown;
CREATE INDEX chartsets_by_length ON chartsets (length_max_ms DESC, id) WHERE shown;
CREATE INDEX chartsets_by_density ON chartsets (density_max DESC, id) WHERE shown;
CREATE INDEX chartsets_by_keys ON chartsets USING gin (keys) WHERE shown;
CREATE INDEX chartsets_by_creator ON chartsets USING gin (creator_search gin_trgm_ops) WHERE shown;
