DROP VIEW indexed_chartsets;
CREATE VIEW indexed_chartsets AS
SELECT id, updated_at_ms, title, artist, creator, source_kind, source_ref, keys, bpm_min, bpm_max,
       length_min_ms, length_max_ms, density_max, chart_count, tags, romanised_names,
       (SELECT bpm_main_max FROM shown_chartsets AS listed WHERE listed.id = chartset.id) AS bpm_main_max,
       charts.*
FROM chartsets AS chartset CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(chart.keys), '{}') AS key_counts,
           coalesce(array_agg(chart.bpm_min), '{}') AS lowest_bpms,
           coalesce(array_agg(chart.bpm_max), '{}') AS highest_bpms,
           coalesce(array_agg(chart.length_ms), '{}') AS lengths_ms,
           coalesce(array_agg(chart.density_peak), '{}') AS densities,
           coalesce(array_agg(chart.ln_share), '{}') AS ln_shares,
           coalesce(array_agg(chart.notes), '{}') AS note_counts,
           coalesce(array_agg(chart.rating), '{}') AS ratings,
           coalesce(array_agg(chart.row_shares), '{}') AS row_shares
    FROM shown_charts AS chart WHERE chart.chartset_id = chartset.id
) AS charts
WHERE shown;
