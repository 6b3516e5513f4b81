//! The statements of [`Store::put_chartset`](crate::Store::put_chartset). Each writes all rows of a chartset at once.

use std::borrow::Cow;
use std::collections::HashMap;

use chart_index_domain::{ChartDraft, ChartNumbers, ChartsetDraft, ChartsetId, ChartsetMember, NoteHash};
use serde::Serialize;
use sqlx::PgConnection;

use crate::column_values::{hex_bytea, parse_hash, source_columns, to_json};
use crate::derived_columns::{DerivedColumns, derived_columns};
use crate::error::corrupt;
use crate::rows::{ChartRow, chart_columns};
use crate::sql_text::replace_nul;

/// What is stored per note hash. The first file ingested with a hash decides the numbers and the ROX bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CanonicalChart {
    pub(crate) numbers: ChartNumbers,
    pub(crate) rox_bytes: u64,
    pub(crate) removed: bool,
}

/// The result of [`upsert_chartset`].
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Upserted {
    pub(crate) added: bool,
    pub(crate) removed: bool,
    dropped_hashes: Vec<Vec<u8>>,
}

impl Upserted {
    /// The charts that the chartset no longer contains.
    pub(crate) fn dropped_charts(&self) -> Result<Vec<NoteHash>, sqlx::Error> {
        self.dropped_hashes.iter().map(|hash| parse_hash(hash)).collect()
    }
}

/// Whether the chartset is stored with this content.
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

/// Returns those of the charts that are stored.
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

/// Stores charts, in the order of their hashes, and returns the number of new ones.
pub(crate) async fn insert_charts(
    connection: &mut PgConnection,
    charts: &[&ChartDraft],
    now_ms: i64,
) -> Result<usize, sqlx::Error> {
    let numbers = || charts.iter().map(|chart| &chart.numbers);
    let rox_files = charts.iter().map(|chart| chart.rox.as_deref()).collect::<Option<Vec<_>>>();
    let rox_files = rox_files.ok_or_else(|| corrupt("a new chart has no ROX file"))?;
    let inserted: i64 = sqlx::query_scalar(
        "WITH stored AS (
             INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg,
                                 density_peak, rox_bytes, first_seen_ms)
             SELECT draft.*, $12::bigint FROM unnest($1::bytea[], $2::smallint[], $3::float8[], $4::float8[],
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

/// A row of `chartsets` as a JSON record.
#[derive(Serialize)]
struct ChartsetRecord<'a> {
    id: String,
    path: Cow<'a, str>,
    exact_kind: Option<String>,
    exact_ref: Option<String>,
    content_fingerprint: String,
    updated_at_ms: i64,
    #[serde(flatten)]
    derived: &'a DerivedColumns,
}

/// A row of `chartset_charts` as a JSON record, without the id of the chartset.
#[derive(Serialize)]
struct MemberRecord<'a> {
    chart_hash: String,
    title: &'a str,
    artist: &'a str,
    title_romanised: Option<&'a str>,
    artist_romanised: Option<&'a str>,
    creator: &'a str,
    difficulty: &'a str,
    tags: &'a [String],
    declared_kind: Option<String>,
    declared_ref: Option<String>,
    alpha_beatmap_id: Option<i64>,
}

impl<'a> MemberRecord<'a> {
    fn new(member: &'a ChartsetMember) -> Self {
        let metadata = &member.metadata;
        let (declared_kind, declared_ref) = source_columns(member.declared_source.as_ref());
        Self {
            chart_hash: hex_bytea(member.hash.as_bytes()),
            title: &metadata.title,
            artist: &metadata.artist,
            title_romanised: metadata.title_romanised.as_deref(),
            artist_romanised: metadata.artist_romanised.as_deref(),
            creator: &metadata.creator,
            difficulty: &metadata.difficulty,
            tags: &metadata.tags,
            declared_kind,
            declared_ref,
            // The game has never assigned an id that PostgreSQL cannot store.
            alpha_beatmap_id: member.alpha_beatmap_id.and_then(|id| i64::try_from(id).ok()),
        }
    }
}

/// Writes the row of a chartset, its charts and its row in the outbox, and deletes the charts that it no longer
/// contains. Returns `None` if the chartset is stored with this content already.
///
/// The rows are JSON records, whose fields PostgreSQL assigns to columns by their names. It is one statement because
/// starting and ending several of them takes longer than what they do.
pub(crate) async fn upsert_chartset(
    connection: &mut PgConnection,
    draft: &ChartsetDraft,
    fingerprint: &[u8; 32],
    derived: &DerivedColumns,
    members: &[ChartsetMember],
    now_ms: i64,
) -> Result<Option<Upserted>, sqlx::Error> {
    let (exact_kind, exact_ref) = source_columns(draft.exact_source.as_ref());
    let chartset = ChartsetRecord {
        id: draft.id.to_string(),
        path: replace_nul(&draft.path),
        exact_kind,
        exact_ref,
        content_fingerprint: hex_bytea(fingerprint),
        updated_at_ms: now_ms,
        derived,
    };
    let members: Vec<MemberRecord<'_>> = members.iter().map(MemberRecord::new).collect();
    sqlx::query_as(concat!(
        "WITH new_chartset AS MATERIALIZED (
             SELECT * FROM json_populate_record(NULL::chartsets, $1::json)
         ), new_member AS MATERIALIZED (
             SELECT * FROM json_populate_recordset(NULL::chartset_charts, $2::json)
         ), written AS (
             INSERT INTO chartsets AS chartset
                 (id, path, exact_kind, exact_ref, content_fingerprint, checked_at_ms, updated_at_ms, search_words, ",
        derived_columns!(),
        ")
             SELECT id, path, exact_kind, exact_ref, content_fingerprint, updated_at_ms, updated_at_ms,
                    array_to_tsvector($3), ",
        derived_columns!(),
        "
             FROM new_chartset
             ON CONFLICT (id) DO UPDATE SET
                 path = excluded.path, exact_kind = excluded.exact_kind, exact_ref = excluded.exact_ref,
                 content_fingerprint = excluded.content_fingerprint,
                 checked_at_ms = greatest(chartset.checked_at_ms, excluded.checked_at_ms),
                 updated_at_ms = excluded.updated_at_ms, search_words = excluded.search_words, (",
        derived_columns!(),
        ") = (SELECT ",
        derived_columns!(),
        " FROM new_chartset)
             WHERE chartset.content_fingerprint <> excluded.content_fingerprint
             RETURNING id, updated_at_ms, xmax = 0 AS added, removed_at_ms IS NOT NULL AS removed
         ), change AS (
             INSERT INTO search_changes (chartset_id, changed_at_ms) SELECT id, updated_at_ms FROM written
         ), dropped AS (
             DELETE FROM chartset_charts AS member USING written
             WHERE member.chartset_id = written.id AND member.chart_hash NOT IN (SELECT chart_hash FROM new_member)
             RETURNING member.chart_hash
         ), stored_member AS (
             INSERT INTO chartset_charts
                 (chartset_id, chart_hash, title, artist, title_romanised, artist_romanised, creator, difficulty,
                  tags, declared_kind, declared_ref, alpha_beatmap_id)
             SELECT written.id, chart_hash, title, artist, title_romanised, artist_romanised, creator, difficulty,
                    tags, declared_kind, declared_ref, alpha_beatmap_id
             FROM written, new_member
             ON CONFLICT (chartset_id, chart_hash) DO UPDATE SET
                 title = excluded.title, artist = excluded.artist, title_romanised = excluded.title_romanised,
                 artist_romanised = excluded.artist_romanised, creator = excluded.creator,
                 difficulty = excluded.difficulty, tags = excluded.tags, declared_kind = excluded.declared_kind,
                 declared_ref = excluded.declared_ref, alpha_beatmap_id = excluded.alpha_beatmap_id
         )
         SELECT added, removed, array(SELECT chart_hash FROM dropped) AS dropped_hashes FROM written"
    ))
    .bind(to_json(&chartset)?)
    .bind(to_json(&members)?)
    .bind(&derived.search.lexemes)
    .fetch_optional(connection)
    .await
}
