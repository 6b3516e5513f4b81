DROP INDEX chartsets_of_packs;
