-- no-transaction
-- The best sources first, since any number of files may claim an id.
CREATE INDEX CONCURRENTLY chartset_charts_by_beatmap_rank ON chartset_charts (alpha_beatmap_id, source_rank, chartset_id)
    WHERE alpha_beatmap_id IS NOT NULL;
