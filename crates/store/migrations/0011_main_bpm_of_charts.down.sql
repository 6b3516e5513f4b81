CREATE OR REPLACE FUNCTION write_shown(chartset text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM shown_charts WHERE chartset_id = chartset;
    DELETE FROM shown_chartsets WHERE id = chartset
        AND NOT EXISTS (SELECT FROM chartsets WHERE id = chartset AND shown);
    WITH listed AS MATERIALIZED (
        SELECT chart.*, CASE WHEN analysis_version = listed_version THEN rating END AS listed_rating,
               CASE WHEN analysis_version = listed_version THEN substring(patterns FROM 1 FOR 9) END AS row_shares
        FROM chartset_charts AS member JOIN charts AS chart ON chart.hash = member.chart_hash
             CROSS JOIN chart_analysis
        WHERE member.chartset_id = chartset AND chart.removed_at_ms IS NULL
            AND EXISTS (SELECT FROM chartsets WHERE id = chartset AND shown)
    ), written AS (
        INSERT INTO shown_charts
        SELECT bpm_min, bpm_max, length_ms, density_peak, notes, keys, (200 * lns + notes) / (2 * notes),
               listed_rating, chartset, row_shares
        FROM listed
    )
    INSERT INTO shown_chartsets
    SELECT updated_at_ms, bpm_min, bpm_max, coalesce(bpm_main, 0), length_min_ms, length_max_ms, density_max,
           coalesce(notes, 0), coalesce(rating_min, 0), coalesce(rating_max, 0),
           key_count_bits(keys), source_kind, creator_search, id, title_sort, artist_sort
    FROM chartsets CROSS JOIN (
        SELECT max(bpm_main), max(notes), min(listed_rating), max(listed_rating) FROM listed
    ) AS charts (bpm_main, notes, rating_min, rating_max)
    WHERE id = chartset AND shown
    ON CONFLICT (id) DO UPDATE SET
        updated_at_ms = excluded.updated_at_ms, bpm_min = excluded.bpm_min, bpm_max = excluded.bpm_max,
        bpm_main_max = excluded.bpm_main_max, length_min_ms = excluded.length_min_ms,
        length_max_ms = excluded.length_max_ms, density_max = excluded.density_max,
        notes_max = excluded.notes_max, rating_min = excluded.rating_min, rating_max = excluded.rating_max,
        key_counts = excluded.key_counts, title_sort = excluded.title_sort, artist_sort = excluded.artist_sort,
        creator_search = excluded.creator_search, source_kind = excluded.source_kind;
END
$$;

ALTER TABLE shown_charts DROP COLUMN bpm_main;
