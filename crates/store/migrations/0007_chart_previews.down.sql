DROP INDEX charts_by_similarity;
DROP TABLE chart_previews;
ALTER TABLE charts DROP COLUMN density_curve;
