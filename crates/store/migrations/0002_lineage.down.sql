ALTER TABLE mirror DROP COLUMN lineage;
DROP FUNCTION change_feed_lineage;
