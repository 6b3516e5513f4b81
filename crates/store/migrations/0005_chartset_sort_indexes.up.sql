-- Lists filter and sort by shown_chartsets; only their words are still looked up in chartsets. A version that reads
-- chartsets alone gives the same lists without these indexes, but slowly: replace it soon after this migration.
DROP INDEX chartsets_by_updated;
DROP INDEX chartsets_by_title;
DROP INDEX chartsets_by_artist;
DROP INDEX chartsets_by_bpm;
DROP INDEX chartsets_by_length;
DROP INDEX chartsets_by_density;
DROP INDEX chartsets_by_keys;
DROP INDEX chartsets_by_creator;
