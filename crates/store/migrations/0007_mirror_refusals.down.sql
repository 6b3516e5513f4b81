DROP TABLE mirror_refusals;
