-- Deletes all data. The extension pg_trgm stays: it may be older than the schema, and holds no data.
DROP TABLE chart_aliases, text_folding, cdn_purges, hash_filters, mirror_replacements, mirror_unconfirmed, mirror, change_feed_gaps, change_feed,
    catalogue_changes, pending_changes, ingest_fingerprints, chartset_checks, chart_percentiles, shown_charts,
    shown_chartsets, chart_analysis, erased_files, removals,
    chartset_charts, chartsets, chart_previews, rox_files, charts;
DROP FUNCTION record_new_aliases, record_chartset_change, record_new_chartsets, record_member_change, record_new_members,
    copy_removal, record_chart_change, is_lost_sequence, change_feed_origin_of, pending_changes_from,
    change_feed_origin, write_shown_chartset, write_shown_analysis, write_shown, key_count_bits;
