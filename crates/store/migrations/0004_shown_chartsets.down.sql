DROP TRIGGER chartsets_write_shown ON chartsets;
DROP FUNCTION write_shown_chartset();
DROP TABLE shown_chartsets;
DROP FUNCTION key_count_bits(smallint[]);
