-- What pages show of charts: density curves, previews, and which charts are similar. Charts that are stored already get
-- theirs from `chart-indexer backfill`. Versions that do not know of them insert charts without.

-- Charts of one key count whose main BPM and peak density differ by little are near each other: both are compared by
-- ratios, of which 5 % of BPM count as much as 25 % of density. First, since it takes longest and lets reads go on.
CREATE INDEX charts_by_similarity ON charts
    USING gist (point(keys * 1000 + 5 * ln(greatest(bpm_main, 1)), ln(greatest(density_peak, 1))))
    WHERE removed_at_ms IS NULL;

-- Apart from the numbers, like the ROX files. Charts are never deleted, so hash needs no foreign key; verify finds a
-- preview without its chart.
CREATE TABLE chart_previews (
    hash bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    json bytea NOT NULL
);

-- Not validated, which would read the whole table while no one else can: all values are NULL.
ALTER TABLE charts
    ADD COLUMN density_curve bytea,
    ADD CONSTRAINT charts_density_curve_check CHECK (octet_length(density_curve) = 48) NOT VALID;
