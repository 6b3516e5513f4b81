ALTER TABLE search_changes DROP COLUMN token;
