-- no-transaction
CREATE INDEX CONCURRENTLY chartset_charts_by_beatmap ON chartset_charts (alpha_beatmap_id)
    WHERE alpha_beatmap_id IS NOT NULL;
