DROP TABLE hash_filters;
