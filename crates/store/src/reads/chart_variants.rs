//! Finds charts with the same order of rows: converted copies of a chart (docs/formats/variant.md).
//!
//! A lookup reads the ROX files of these charts and compares the times of their rows, instead of storing a
//! value for each pair of charts. Their sources are not merged: two charts of one song may have the same rows
//! and not be the same chart. What follows from a file only, its MD5 digest and the variant with its rolls, is
//! in `chart_aliases`, and stays when the file changes.

use std::collections::HashMap;

use chart_index_domain::{NoteHash, ReadError, Rows, Variant, VariantTiming, round_to_thousandths};
use chart_index_rox::CanonicalNotes;

use crate::Store;
use crate::error::read_error;
use crate::reads::lookups::{KnownChart, LookupRow, Occurrence, known_chart, select_occurrences};
use crate::schema::stored_files::StoredFile;

const OPERATION: &str = "find variants of charts";
/// The number of notes up to which times are compared.
const MAX_NOTES: i64 = 60_000;

/// A chart, by its hash or by the variant that a client has computed. Both may be given: the hash of a
/// converted copy is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariantRequest {
    /// The note hash.
    pub hash: Option<NoteHash>,
    /// A variant, in addition to those of the chart with the hash.
    pub variant: Option<Variant>,
}

/// A chart, and the known charts with one of its variants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChartVariants {
    /// The chart with the requested hash, if it is known.
    pub known: Option<KnownChart>,
    /// Up to 20 other charts, in the order of their hashes.
    pub items: Vec<ChartVariant>,
    /// The number of these charts. It is exact up to 1,000.
    pub total: u64,
}

/// A chart with the same order of rows as another one.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartVariant {
    /// The chart.
    pub known: KnownChart,
    /// How often its length goes into that of the requested chart: 1.1 if it is 10 % faster. `None` without a
    /// known chart to compare it with.
    pub rate: Option<f64>,
    /// How the times compare; `None` without a known chart to compare it with, or if a ROX file is lost, has
    /// more than 60,000 notes, or has other rows.
    pub timing: Option<VariantTiming>,
}

/// An occurrence of a requested chart or of one of its variants.
#[derive(Debug, sqlx::FromRow)]
struct VariantRow {
    /// The position of the request, from 1.
    request: i64,
    /// 0 for the requested chart.
    total: i64,
    /// In the first row of a chart, if it is compared with another one.
    rox: Option<Vec<u8>>,
    /// The name of the object with the ROX file, likewise.
    rox_object: Option<[u8; 32]>,
    #[sqlx(flatten)]
    lookup: LookupRow,
}

/// The rows of a chart.
#[derive(Default)]
struct Found {
    total: u64,
    rox: Option<StoredFile>,
    occurrences: Vec<Occurrence>,
}

/// Selects the [`VariantRow`]s of requests. `LATERAL` with `OFFSET 0` makes the planner look up each hash, as
/// in lookups of many charts.
const FIND_VARIANTS: &str = concat!(
    "WITH asked AS MATERIALIZED (
         SELECT request, hash, variant
         FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS asked (hash, variant, request)
     ), sought AS MATERIALIZED (
         SELECT request, variant FROM asked WHERE variant IS NOT NULL
         UNION
         SELECT asked.request, chart.variant FROM asked JOIN charts AS chart ON chart.hash = asked.hash
         WHERE chart.removed_at_ms IS NULL AND chart.variant IS NOT NULL
         UNION
         SELECT asked.request, alias.alias FROM asked JOIN charts AS chart ON chart.hash = asked.hash
         JOIN chart_aliases AS alias ON alias.chart_hash = chart.hash
         WHERE chart.removed_at_ms IS NULL AND octet_length(alias.alias) = 32
     ), related AS MATERIALIZED (
         SELECT asked.request, first.hash, first.total FROM asked CROSS JOIN LATERAL (
             SELECT found.hash, count(*) OVER () AS total FROM (
                 SELECT DISTINCT candidate.hash FROM sought CROSS JOIN LATERAL (
                     (SELECT chart.hash FROM charts AS chart WHERE chart.variant = sought.variant LIMIT 1000)
                     UNION ALL
                     (SELECT alias.chart_hash FROM chart_aliases AS alias
                      WHERE alias.alias = sought.variant LIMIT 1000)
                 ) AS candidate JOIN known_charts AS chart ON chart.hash = candidate.hash
                 WHERE sought.request = asked.request AND candidate.hash IS DISTINCT FROM asked.hash
             ) AS found ORDER BY found.hash LIMIT 20
         ) AS first
     )
     SELECT wanted.request, wanted.total, occurrence.*,
            CASE WHEN row_number() OVER (PARTITION BY wanted.request, wanted.hash) = 1
                      AND wanted.request IN (SELECT request FROM related) AND occurrence.notes <= $3
                 THEN (SELECT file.bytes FROM rox_files AS file WHERE file.hash = wanted.hash)
            END AS rox,
            CASE WHEN row_number() OVER (PARTITION BY wanted.request, wanted.hash) = 1
                      AND wanted.request IN (SELECT request FROM related) AND occurrence.notes <= $3
                 THEN (SELECT file.object FROM rox_files AS file WHERE file.hash = wanted.hash)
            END AS rox_object
     FROM (SELECT request, hash, 0 AS total FROM asked WHERE hash IS NOT NULL
           UNION ALL SELECT request, hash, total FROM related) AS wanted
     CROSS JOIN LATERAL (",
    select_occurrences!("chart.hash = wanted.hash"),
    " OFFSET 0) AS occurrence"
);

impl Store {
    /// Returns, for each request, the chart and those with one of its variants. It is one statement, and a read
    /// of each ROX file that is an object.
    pub async fn chart_variants(&self, requests: &[VariantRequest]) -> Result<Vec<ChartVariants>, ReadError> {
        let hashes = requests.iter().map(|request| request.hash.as_ref().map(NoteHash::as_bytes));
        let variants = requests.iter().map(|request| request.variant.as_ref().map(Variant::as_bytes));
        let (hashes, variants): (&Vec<_>, &Vec<_>) = (&hashes.collect(), &variants.collect());
        let read = self.short_read(OPERATION, |mut connection| async move {
            let rows: Vec<VariantRow> = sqlx::query_as(FIND_VARIANTS)
                .bind(hashes)
                .bind(variants)
                .bind(MAX_NOTES)
                .fetch_all(&mut *connection)
                .await?;
            connection.release();
            let mut found: HashMap<(usize, NoteHash), Found> = HashMap::new();
            for VariantRow { request, total, rox, rox_object, lookup } in rows {
                let occurrence = lookup.parse()?;
                let request = usize::try_from(request).unwrap_or_default();
                let chart = found.entry((request, occurrence.member.hash)).or_default();
                chart.total = total.unsigned_abs();
                chart.rox = chart.rox.take().or_else(|| StoredFile::new(rox, rox_object));
                chart.occurrences.push(occurrence);
            }
            Ok(found)
        });
        let mut found = read.await?;
        let read = self.read_objects(found.values_mut().collect()).await;
        read.map_err(|error| read_error(OPERATION, error))?;
        Ok(assemble(requests, found))
    }

    /// Reads the ROX files that are objects. Those that are lost are left out.
    async fn read_objects(&self, mut found: Vec<&mut Found>) -> Result<(), sqlx::Error> {
        found.retain(|chart| matches!(chart.rox, Some(StoredFile::Object(_))));
        let files = found.iter_mut().filter_map(|chart| chart.rox.take()).collect();
        for (chart, content) in found.into_iter().zip(self.contents(files).await?) {
            chart.rox = content.ok().map(StoredFile::Bytes);
        }
        Ok(())
    }
}

fn assemble(requests: &[VariantRequest], found: HashMap<(usize, NoteHash), Found>) -> Vec<ChartVariants> {
    let mut by_request: Vec<(Option<Found>, Vec<Found>)> = Vec::new();
    by_request.resize_with(requests.len(), Default::default);
    for ((request, hash), chart) in found {
        let Some(place) = request.checked_sub(1) else { continue };
        let (Some(VariantRequest { hash: requested, .. }), Some((own, related))) =
            (requests.get(place), by_request.get_mut(place))
        else {
            continue;
        };
        if *requested == Some(hash) { *own = Some(chart) } else { related.push(chart) }
    }
    by_request.into_iter().map(|(own, related)| chart_variants(own, related)).collect()
}

fn chart_variants(own: Option<Found>, related: Vec<Found>) -> ChartVariants {
    let total = related.first().map_or(0, |chart| chart.total);
    let own_rows = own.as_ref().and_then(Found::rows);
    let known = own.and_then(|own| known_chart(&own.occurrences));
    let variant = |chart: Found| {
        let rows = own_rows.as_ref().zip(chart.rows());
        let timing = rows.and_then(|(own, other)| own.timing(&other));
        let variant = known_chart(&chart.occurrences)?;
        let length_ms = |known: &KnownChart| f64::from(known.chart.numbers.length_ms);
        let rate = known.as_ref().map(|known| round_to_thousandths(length_ms(known) / length_ms(&variant)));
        Some(ChartVariant { known: variant, rate, timing })
    };
    let mut items: Vec<ChartVariant> = related.into_iter().filter_map(variant).collect();
    items.sort_unstable_by_key(|item| item.known.chart.hash);
    ChartVariants { known, items, total }
}

impl Found {
    /// The rows of the notes in the ROX file.
    fn rows(&self) -> Option<Rows> {
        let StoredFile::Bytes(rox) = self.rox.as_ref()? else { return None };
        let chart = chart_index_rox::read(rox).ok()?;
        CanonicalNotes::from_chart(&chart).ok().map(|notes| notes.rows())
    }
}
