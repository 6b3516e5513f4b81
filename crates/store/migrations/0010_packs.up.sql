-- The chartsets of a pack, for its page.
CREATE INDEX chartsets_of_packs ON chartsets (source_ref, title_sort, id) WHERE shown AND source_kind = 'betaPack';
