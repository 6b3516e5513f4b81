-- Views and functions that the statements of the programs read. PostgreSQL plans their text as part of each
-- statement.

-- The charts that are known (ARCHITECTURE.md, "Terms").
CREATE VIEW known_charts AS
SELECT hash, rox_bytes, first_seen_ms FROM charts AS chart
WHERE removed_at_ms IS NULL AND EXISTS (
    SELECT FROM chartset_charts AS member JOIN chartsets AS chartset ON chartset.id = member.chartset_id
    WHERE member.chart_hash = chart.hash AND chartset.removed_at_ms IS NULL
);

-- Chartsets with their last check. An ingest that finds one unchanged writes only to chartset_checks.
CREATE VIEW checked_chartsets AS
SELECT id, exact_kind, exact_ref, content_fingerprint, updated_at_ms, removed_at_ms, shown, greatest(
           checked_at_ms,
           (SELECT checks.checked_at_ms FROM chartset_checks AS checks WHERE checks.chartset_id = chartset.id)
       ) AS checked_at_ms
FROM chartsets AS chartset;

-- The server, the position in the log of changes (WAL) that it has flushed or, as a standby, replayed, and what
-- identifies it in the feed: see change_feed_origin and change_feed_lineage. A later read sees every transaction
-- that was committed before the position, except on a primary those with `synchronous_commit = off` of the last
-- fraction of a second.
--
-- One call of pg_control_system takes longer than all else that a poll without changes does.
CREATE VIEW server_state AS
SELECT control.system_identifier, pg_is_in_recovery() AS is_standby,
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
        - '0/0')::bigint AS wal,
       hashtextextended(format('%s %s %s', control.system_identifier, extract(epoch FROM pg_postmaster_start_time()),
                               'catalogue_changes'::text::regclass::oid), 0) AS origin,
       hashtextextended(format('%s %s %s', control.system_identifier, database.oid,
                               'catalogue_changes'::text::regclass::oid), 0) AS lineage
FROM pg_control_system() AS control, pg_database AS database WHERE database.datname = current_database();

CREATE OR REPLACE FUNCTION change_feed_origin() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT origin FROM server_state);

CREATE OR REPLACE FUNCTION change_feed_lineage() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT lineage FROM server_state);

-- The first 32 occurrences of a chart in chartsets that are not removed: more than any real chart has (decision
-- 0076). The index chartset_charts_by_chart returns them in their order, so further ones are not read.
--
-- In a catalogue of a few thousand charts PostgreSQL may sort them instead. With `=` instead of BETWEEN it
-- expects the few rows that most charts have, and may read and sort all of them in a large one as well.
CREATE FUNCTION chart_occurrences(hash bytea) RETURNS TABLE (
    chartset_id text, title text, artist text, title_romanised text, artist_romanised text, creator text,
    difficulty text, tags text[], declared_kind text, declared_ref text, alpha_beatmap_id bigint,
    exact_kind text, exact_ref text, checked_at_ms bigint
) LANGUAGE sql STABLE PARALLEL SAFE BEGIN ATOMIC
    SELECT member.chartset_id, member.title, member.artist, member.title_romanised, member.artist_romanised,
           member.creator, member.difficulty, member.tags, member.declared_kind, member.declared_ref,
           member.alpha_beatmap_id, chartset.exact_kind, chartset.exact_ref, chartset.checked_at_ms
    FROM chartset_charts AS member JOIN checked_chartsets AS chartset ON chartset.id = member.chartset_id
    WHERE member.chart_hash BETWEEN chart_occurrences.hash AND chart_occurrences.hash
          AND chartset.removed_at_ms IS NULL
    ORDER BY member.chart_hash, member.source_rank, member.chartset_id LIMIT 32;
END;

-- The ordered hashes of the charts of a chartset that are not removed, in one row.
CREATE FUNCTION shown_hashes(chartset text) RETURNS TABLE (hashes bytea[])
LANGUAGE sql STABLE PARALLEL SAFE BEGIN ATOMIC
    SELECT array_agg(hash ORDER BY hash) FROM chartset_charts JOIN charts ON hash = chart_hash
    WHERE chartset_id = chartset AND removed_at_ms IS NULL;
END;

-- The shown chartsets with what search indexes contain of them. Each array has an element per chart.
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

-- What orders charts of the same rating in the index charts_by_similarity.
CREATE FUNCTION pattern_order(patterns bytea) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN get_byte(patterns, 9) + get_byte(patterns, 0) + get_byte(patterns, 1) + get_byte(patterns, 2)
           - get_byte(patterns, 5) - get_byte(patterns, 6) - get_byte(patterns, 7) - get_byte(patterns, 8);

-- Up to 12 charts that play like another one, the nearest first, each in another chartset. Variants of it are left
-- out: they have the same notes at another tempo.
--
-- Of a million charts, the 250 neighbours in each direction of the index have the same rating in hundredths; of
-- fewer, a similar one. They are ordered again by a distance that compares the shares of all classes of rows and
-- of long notes, bytes 0 to 9 of the patterns: a ratio of 1 % between ratings counts as much as 1 % of the rows.
CREATE FUNCTION similar_charts(chart_hash bytea) RETURNS TABLE (
    chartset_id text, hash bytea, distance double precision
) LANGUAGE sql STABLE PARALLEL SAFE BEGIN ATOMIC
    SELECT * FROM (
        SELECT DISTINCT ON (home.chartset_id) home.chartset_id, nearest.hash, nearest.distance
        FROM (
            SELECT candidate.hash, candidate.distance
            FROM (
                SELECT chart.keys, chart.rating, chart.patterns, chart.analysis_version, chart.variant
                FROM charts AS chart
                WHERE chart.hash = similar_charts.chart_hash AND chart.removed_at_ms IS NULL AND chart.rating > 0
            ) AS target, LATERAL (
                SELECT near.hash, near.analysis_version, near.variant,
                       sqrt((100 * ln(near.rating / target.rating::double precision)) ^ 2 + (
                           SELECT sum((get_byte(near.patterns, i) - get_byte(target.patterns, i)) ^ 2)
                           FROM generate_series(0, 9) AS i)) AS distance
                FROM ((
                    SELECT chart.hash, chart.rating, chart.patterns, chart.analysis_version, chart.variant
                    FROM charts AS chart
                    WHERE chart.removed_at_ms IS NULL AND chart.rating > 0 AND chart.keys = target.keys
                        AND (chart.rating, pattern_order(chart.patterns))
                            >= (target.rating, pattern_order(target.patterns))
                    ORDER BY chart.rating, pattern_order(chart.patterns) LIMIT 250
                ) UNION ALL (
                    SELECT chart.hash, chart.rating, chart.patterns, chart.analysis_version, chart.variant
                    FROM charts AS chart
                    WHERE chart.removed_at_ms IS NULL AND chart.rating > 0 AND chart.keys = target.keys
                        AND (chart.rating, pattern_order(chart.patterns))
                            < (target.rating, pattern_order(target.patterns))
                    ORDER BY chart.rating DESC, pattern_order(chart.patterns) DESC LIMIT 250
                )) AS near
            ) AS candidate
            WHERE candidate.hash <> similar_charts.chart_hash
                AND (candidate.variant = target.variant) IS NOT TRUE
                AND candidate.analysis_version = target.analysis_version AND candidate.distance <= 40
            ORDER BY distance, hash LIMIT 60
        ) AS nearest, LATERAL (
            SELECT chartset.id AS chartset_id FROM chartset_charts AS member
            JOIN chartsets AS chartset ON chartset.id = member.chartset_id
            WHERE member.chart_hash = nearest.hash AND chartset.shown AND NOT EXISTS (
                SELECT FROM chartset_charts AS own
                WHERE own.chartset_id = member.chartset_id AND own.chart_hash = similar_charts.chart_hash)
            ORDER BY chartset.exact_kind IS NULL, chartset.id LIMIT 1
        ) AS home
        ORDER BY home.chartset_id, nearest.distance, nearest.hash
    ) AS of_chartset
    ORDER BY distance, hash LIMIT 12;
END;
