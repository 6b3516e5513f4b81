DROP FUNCTION similar_charts, pattern_order, shown_hashes, chart_occurrences;
DROP VIEW indexed_chartsets, checked_chartsets, known_charts;
