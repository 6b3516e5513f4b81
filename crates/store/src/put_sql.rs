//! The statements of an ingest. Whatever has several rows goes in as arrays, in one statement.

use std::collections::HashMap;

use chart_index_domain::{ChartDraft, ChartsetDraft, ChartsetId, ChartsetMember, NoteHash};
use sqlx::PgConnection;

use crate::columns::{DerivedColumns, bind_derived_columns};
use crate::error::corrupt;
use crate::put::CanonicalChart;
use crate::rows::{ChartRow, chart_columns, parse_hash, source_columns};
use crate::text_columns::storable;

/// What became of the row of a chartset.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Upserted {
    pub(crate) added: bool,
    pub(crate) removed: bool,
    /// The hashes of the charts that left it.
    gone: Vec<Vec<u8>>,
}

impl Upserted {
    pub(crate) fn dropped_charts(&self) -> Result<Vec<NoteHash>, sqlx::Error> {
        self.gone.iter().map(|hash| parse_hash(hash)).collect()
    }
}

/// Whether the chartset has this very content.
pub(crate) async fn has_content(
    connection: &mut PgConnection,
    id: ChartsetId,
    fingerprint: &[u8; 32],
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM chartsets WHERE id = $1 AND content_fingerprint = $2)")
        .bind(id.to_string())
        .bind(fingerprint)
        .fetch_one(connection)
        .await
}

/// What is stored with these hashes.
pub(crate) async fn stored_charts(
    connection: &mut PgConnection,
    hashes: &[&[u8]],
) -> Result<HashMap<NoteHash, CanonicalChart>, sqlx::Error> {
    let rows: Vec<ChartRow> = sqlx::query_as(concat!(
        "SELECT ",
        chart_columns!(),
        " FROM charts AS chart WHERE chart.hash = ANY($1)"
    ))
    .bind(hashes)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let (numbers, rox_bytes, removed) = (row.numbers()?, row.rox_bytes()?, row.removed);
            Ok((row.hash()?, CanonicalChart { numbers, rox_bytes, removed }))
        })
        .collect()
}

/// Stores charts, in the order of their hashes, and gives how many were new.
pub(crate) async fn insert_charts(
    connection: &mut PgConnection,
    charts: &[&ChartDraft],
    now_ms: i64,
) -> Result<usize, sqlx::Error> {
    let numbers = || charts.iter().map(|chart| &chart.numbers);
    let rox_files = charts.iter().map(|chart| chart.rox.as_deref()).collect::<Option<Vec<_>>>();
    let rox_files =
        rox_files.ok_or_else(|| corrupt("a chart that is not stored came without its ROX file"))?;
    let inserted: i64 = sqlx::query_scalar(
        "WITH stored AS (
             INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg,
                                 density_peak, rox_bytes, first_seen_ms)
             SELECT draft.*, $12 FROM unnest($1::bytea[], $2::smallint[], $3::float8[], $4::float8[],
                                             $5::float8[], $6::bigint[], $7::bigint[], $8::bigint[],
                                             $9::float8[], $10::float8[], $11::bigint[]) AS draft
             ON CONFLICT DO NOTHING
             RETURNING hash
         ), files AS (
             INSERT INTO rox_files (hash, bytes)
             SELECT file.hash, file.bytes FROM unnest($1::bytea[], $13::bytea[]) AS file (hash, bytes)
             JOIN stored ON stored.hash = file.hash
         )
         SELECT count(*) FROM stored",
    )
    .bind(charts.iter().map(|chart| &chart.hash.as_bytes()[..]).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| i16::from(numbers.keys.get())).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| numbers.bpm_min).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| numbers.bpm_max).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| numbers.bpm_main).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| i64::from(numbers.length_ms)).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| i64::from(numbers.notes)).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| i64::from(numbers.lns)).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| numbers.density_avg).collect::<Vec<_>>())
    .bind(numbers().map(|numbers| numbers.density_peak).collect::<Vec<_>>())
    .bind(rox_files.iter().map(|rox| i64::try_from(rox.len()).unwrap_or(i64::MAX)).collect::<Vec<_>>())
    .bind(now_ms)
    .bind(rox_files)
    .fetch_one(connection)
    .await?;
    Ok(usize::try_from(inserted).unwrap_or_default())
}

/// Writes the row of a chartset, its charts, and its entry in the outbox, and takes out the charts that left it.
/// `None` where the row has this very content already.
///
/// One statement: starting and ending several of them took longer than what they did.
pub(crate) async fn upsert_chartset(
    connection: &mut PgConnection,
    draft: &ChartsetDraft,
    fingerprint: &[u8; 32],
    columns: &DerivedColumns,
    members: &[(ChartsetMember, bool)],
    now_ms: i64,
) -> Result<Option<Upserted>, sqlx::Error> {
    let (exact_kind, exact_ref) = source_columns(draft.exact_source.as_ref());
    let charts = || members.iter().map(|(charted, _)| charted);
    let texts = || charts().map(|charted| &charted.metadata);
    let (declared_kinds, declared_refs): (Vec<_>, Vec<_>) =
        charts().map(|charted| source_columns(charted.declared_source.as_ref())).unzip();
    // Arrays of arrays have one length in PostgreSQL, so the tags come as one array that each row takes its part
    // of.
    let query = sqlx::query_as(
        "WITH written AS (
             INSERT INTO chartsets AS chartset
                 (id, path, exact_kind, exact_ref, content_fingerprint, checked_at_ms, updated_at_ms,
                  title, artist, creator, source_kind, source_ref, keys, bpm_min, bpm_max, length_min_ms,
                  length_max_ms, density_max, chart_count, tags, romanised_names,
                  title_sort, artist_sort, creator_search, search_words)
             VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
                     $20, $21, $22, $23, array_to_tsvector($24))
             ON CONFLICT (id) DO UPDATE SET
                 path = excluded.path, exact_kind = excluded.exact_kind, exact_ref = excluded.exact_ref,
                 content_fingerprint = excluded.content_fingerprint,
                 checked_at_ms = greatest(chartset.checked_at_ms, excluded.checked_at_ms),
                 updated_at_ms = excluded.updated_at_ms, title = excluded.title, artist = excluded.artist,
                 creator = excluded.creator, source_kind = excluded.source_kind,
                 source_ref = excluded.source_ref, keys = excluded.keys, bpm_min = excluded.bpm_min,
                 bpm_max = excluded.bpm_max, length_min_ms = excluded.length_min_ms,
                 length_max_ms = excluded.length_max_ms, density_max = excluded.density_max,
                 chart_count = excluded.chart_count, tags = excluded.tags,
                 romanised_names = excluded.romanised_names, title_sort = excluded.title_sort,
                 artist_sort = excluded.artist_sort, creator_search = excluded.creator_search,
                 search_words = excluded.search_words
             WHERE chartset.content_fingerprint <> excluded.content_fingerprint
             RETURNING id, xmax = 0 AS added, removed_at_ms IS NOT NULL AS removed
         ), change AS (
             INSERT INTO search_changes (chartset_id, changed_at_ms) SELECT id, $6 FROM written
         ), gone AS (
             DELETE FROM chartset_charts AS member USING written
             WHERE member.chartset_id = written.id AND member.chart_hash <> ALL ($25)
             RETURNING member.chart_hash
         ), members AS (
             INSERT INTO chartset_charts
                 (chartset_id, chart_hash, title, artist, title_romanised, artist_romanised, creator, difficulty,
                  declared_kind, declared_ref, alpha_beatmap_id, tags)
             SELECT written.id, member.hash, member.title, member.artist, member.title_romanised,
                    member.artist_romanised, member.creator, member.difficulty, member.declared_kind,
                    member.declared_ref, member.alpha_beatmap_id,
                    ($35::text[])[member.tags_end - member.tag_count + 1:member.tags_end]
             FROM written, unnest($25::bytea[], $26::text[], $27::text[], $28::text[], $29::text[], $30::text[],
                                  $31::text[], $32::text[], $33::text[], $34::bigint[], $36::integer[],
                                  $37::integer[])
                  AS member (hash, title, artist, title_romanised, artist_romanised, creator, difficulty,
                             declared_kind, declared_ref, alpha_beatmap_id, tag_count, tags_end)
             ON CONFLICT (chartset_id, chart_hash) DO UPDATE SET
                 title = excluded.title, artist = excluded.artist, title_romanised = excluded.title_romanised,
                 artist_romanised = excluded.artist_romanised, creator = excluded.creator,
                 difficulty = excluded.difficulty, declared_kind = excluded.declared_kind,
                 declared_ref = excluded.declared_ref, alpha_beatmap_id = excluded.alpha_beatmap_id,
                 tags = excluded.tags
         )
         SELECT added, removed, array(SELECT chart_hash FROM gone) AS gone FROM written",
    )
    .bind(draft.id.to_string())
    .bind(storable(&draft.path))
    .bind(exact_kind)
    .bind(exact_ref)
    .bind(fingerprint)
    .bind(now_ms);
    bind_derived_columns!(query, columns)
        .bind(charts().map(|charted| &charted.hash.as_bytes()[..]).collect::<Vec<_>>())
        .bind(texts().map(|text| text.title.as_str()).collect::<Vec<_>>())
        .bind(texts().map(|text| text.artist.as_str()).collect::<Vec<_>>())
        .bind(texts().map(|text| text.title_romanised.as_deref()).collect::<Vec<_>>())
        .bind(texts().map(|text| text.artist_romanised.as_deref()).collect::<Vec<_>>())
        .bind(texts().map(|text| text.creator.as_str()).collect::<Vec<_>>())
        .bind(texts().map(|text| text.difficulty.as_str()).collect::<Vec<_>>())
        .bind(declared_kinds)
        .bind(declared_refs)
        // An id that PostgreSQL cannot hold is none that the game ever gave.
        .bind(charts().map(|charted| i64::try_from(charted.alpha_beatmap_id?).ok()).collect::<Vec<_>>())
        .bind(texts().flat_map(|text| &text.tags).map(String::as_str).collect::<Vec<_>>())
        .bind(texts().map(|text| tag_count(&text.tags)).collect::<Vec<_>>())
        .bind(running_sums(texts().map(|text| tag_count(&text.tags))))
        .fetch_optional(connection)
        .await
}

fn tag_count(tags: &[String]) -> i32 {
    i32::try_from(tags.len()).unwrap_or(i32::MAX)
}

fn running_sums(numbers: impl Iterator<Item = i32>) -> Vec<i32> {
    numbers
        .scan(0, |sum, number| {
            *sum += number;
            Some(*sum)
        })
        .collect()
}
