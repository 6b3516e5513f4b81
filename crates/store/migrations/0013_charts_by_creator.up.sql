-- no-transaction
-- For the page of a creator. Longer names, which no one has, would not fit into the index.
CREATE INDEX CONCURRENTLY chartset_charts_by_creator ON chartset_charts (creator)
    WHERE octet_length(creator) BETWEEN 1 AND 800;
