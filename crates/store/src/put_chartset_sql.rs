//! The statements of [`Store::put_chartset`](crate::Store::put_chartset). Each writes all rows of a chartset at
//! once.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use chart_index_domain::{
    ChartDraft, ChartMetadata, ChartNumbers, ChartsetDraft, ChartsetId, ChartsetMember, DensityCurve,
    NOTE_HASH_VERSION, NoteHash, PublicSource, SourceKind,
};
use sqlx::PgConnection;

use crate::Precedence;
use crate::column_values::{parse_hash, source_columns};
use crate::derived_columns::DerivedColumns;
use crate::error::corrupt;
use crate::rows::{ChartRow, chart_columns};
use crate::sql_text::replace_nul;
use crate::statement_columns::{Columns, Parameters, Placeholder};
use crate::stored_times::StoredTimes;

/// A stored chart. The first file ingested with its hash determines the numbers and the ROX bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CanonicalChart {
    pub(crate) numbers: ChartNumbers,
    pub(crate) rox_bytes: u64,
    pub(crate) curve: Option<DensityCurve>,
    pub(crate) removed: bool,
}

/// The result of [`upsert_chartset`].
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Upserted {
    pub(crate) added: bool,
    pub(crate) removed: bool,
    /// It must not be stored.
    pub(crate) erased: bool,
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

/// Returns the charts with these hashes that are stored.
pub(crate) async fn stored_charts(
    connection: &mut PgConnection,
    hashes: &[&[u8]],
) -> Result<HashMap<NoteHash, CanonicalChart>, sqlx::Error> {
    let rows: Vec<ChartRow> = sqlx::query_as(concat!(
        "SELECT ",
        chart_columns!(),
        ", chart.density_curve FROM charts AS chart WHERE chart.hash = ANY($1)"
    ))
    .bind(hashes)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let (rox_bytes, curve) = (row.rox_bytes()?, row.curve()?);
            let chart = CanonicalChart { numbers: row.numbers()?, rox_bytes, curve, removed: row.removed };
            Ok((row.hash()?, chart))
        })
        .collect()
}

/// Returns those of the hashes whose charts were erased.
pub(crate) async fn erased_charts(
    connection: &mut PgConnection,
    hashes: &[&[u8]],
) -> Result<HashSet<NoteHash>, sqlx::Error> {
    let rows: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT entity FROM removals WHERE entity = ANY($1) AND erased")
            .bind(hashes)
            .fetch_all(connection)
            .await?;
    rows.iter().map(|hash| parse_hash(hash)).collect()
}

/// Stores charts, in the order of their hashes, and returns the number of new ones that are not removed. Those
/// that were erased are not stored.
///
/// The transaction holds the lock of [`removal_lock`](crate::removal_lock).
pub(crate) async fn insert_charts(
    connection: &mut PgConnection,
    charts: &[&ChartDraft],
    now_ms: i64,
) -> Result<usize, sqlx::Error> {
    static STATEMENT: OnceLock<String> = OnceLock::new();
    let rox_files = charts.iter().map(|chart| chart.rox.as_deref()).collect::<Option<Vec<_>>>();
    let rox_files = rox_files.ok_or_else(|| corrupt("a new chart has no ROX file"))?;
    let mut parameters = Parameters::default();
    let now = parameters.bind(now_ms);
    let hashes = parameters.bind(charts.iter().map(|chart| &chart.hash.as_bytes()[..]).collect::<Vec<_>>());
    let chart = new_chart_columns(&mut parameters, charts, &rox_files);
    let rox_files = parameters.bind(rox_files);
    let previews = charts.iter().map(|chart| chart.preview.as_ref().map(|preview| &preview.json[..]));
    let previews = parameters.bind(previews.collect::<Vec<_>>());
    let statement = STATEMENT.get_or_init(|| {
        format!(
            "WITH stored AS (
                 INSERT INTO charts (first_seen_ms, removed_at_ms, hash, {names})
                 SELECT {now}, (SELECT removal.removed_at_ms FROM removals AS removal WHERE removal.entity = hash), draft.*
                 FROM unnest({hashes}, {values}) AS draft (hash, {names})
                 -- Not a join, which may change the order.
                 WHERE NOT EXISTS (SELECT FROM removals AS removal WHERE removal.entity = hash AND removal.erased)
                 ON CONFLICT DO NOTHING
                 RETURNING hash, removed_at_ms
             ), files AS (
                 INSERT INTO rox_files (hash, bytes)
                 SELECT file.hash, file.bytes FROM unnest({hashes}, {rox_files}) AS file (hash, bytes)
                 JOIN stored ON stored.hash = file.hash
             ), previews AS (
                 INSERT INTO chart_previews (hash, json)
                 SELECT preview.hash, preview.json FROM unnest({hashes}, {previews}) AS preview (hash, json)
                 JOIN stored ON stored.hash = preview.hash
                 WHERE preview.json IS NOT NULL
             )
             SELECT count(*) FROM stored WHERE removed_at_ms IS NULL",
            names = chart.names(),
            values = chart.values(),
        )
    });
    let inserted: i64 = sqlx::query_scalar_with(statement.as_str(), parameters.into_arguments()?)
        .fetch_one(connection)
        .await?;
    Ok(usize::try_from(inserted).unwrap_or_default())
}

/// The columns of `charts`. Each value is an array with an element per chart.
pub(crate) fn new_chart_columns(
    parameters: &mut Parameters,
    charts: &[&ChartDraft],
    rox_files: &[&[u8]],
) -> Columns {
    let mut columns = Columns::default();
    let integers = |value: fn(&ChartNumbers) -> u32| -> Vec<i64> {
        charts.iter().map(|chart| value(&chart.numbers).into()).collect()
    };
    let floats = |value: fn(&ChartNumbers) -> f64| -> Vec<f64> {
        charts.iter().map(|chart| value(&chart.numbers)).collect()
    };
    let keys: Vec<i16> = charts.iter().map(|chart| chart.numbers.keys.get().into()).collect();
    let sizes = rox_files.iter().map(|rox| i64::try_from(rox.len()).unwrap_or(i64::MAX));
    let versions = vec![i32::try_from(NOTE_HASH_VERSION).unwrap_or(i32::MAX); charts.len()];
    columns.add("note_hash_version", parameters.bind(versions));
    columns.add("keys", parameters.bind(keys));
    columns.add("bpm_min", parameters.bind(floats(|numbers| numbers.bpm_min)));
    columns.add("bpm_max", parameters.bind(floats(|numbers| numbers.bpm_max)));
    columns.add("bpm_main", parameters.bind(floats(|numbers| numbers.bpm_main)));
    columns.add("length_ms", parameters.bind(integers(|numbers| numbers.length_ms)));
    columns.add("notes", parameters.bind(integers(|numbers| numbers.notes)));
    columns.add("lns", parameters.bind(integers(|numbers| numbers.lns)));
    columns.add("density_avg", parameters.bind(floats(|numbers| numbers.density_avg)));
    columns.add("density_peak", parameters.bind(floats(|numbers| numbers.density_peak)));
    columns.add("rox_bytes", parameters.bind(sizes.collect::<Vec<_>>()));
    let curves =
        charts.iter().map(|chart| chart.preview.as_ref().map(|preview| &preview.curve.as_bytes()[..]));
    columns.add("density_curve", parameters.bind(curves.collect::<Vec<_>>()));
    columns
}

/// Writes the row of a chartset, its charts and its pending changes, and deletes the charts that it no longer
/// contains. Returns `None` if the chartset is stored with this content already.
///
/// It is one statement because the overhead of several would exceed their work.
pub(crate) async fn upsert_chartset(
    connection: &mut PgConnection,
    draft: &ChartsetDraft,
    fingerprint: &[u8; 32],
    derived: &DerivedColumns,
    members: &[ChartsetMember],
    times: StoredTimes,
) -> Result<Option<Upserted>, sqlx::Error> {
    static STATEMENT: OnceLock<String> = OnceLock::new();
    let mut parameters = Parameters::default();
    let placeholders = UpsertPlaceholders {
        id: parameters.bind(draft.id.to_string()),
        updated: parameters.bind(times.updated_at_ms),
        checked: parameters.bind(times.checked_at_ms),
        is_import: parameters.bind(times.imported.is_some()),
        replaces_newer: parameters.bind(times.imported == Some(Precedence::Imported)),
        path: parameters.bind(replace_nul(&draft.path)),
        chartset: new_chartset_columns(&mut parameters, draft, fingerprint, derived),
        hashes: parameters.bind(members.iter().map(|member| &member.hash.as_bytes()[..]).collect::<Vec<_>>()),
        member: new_member_columns(&mut parameters, members, draft.exact_source.as_ref()),
        tags: TagPlaceholders::bind(&mut parameters, members),
    };
    let statement = STATEMENT.get_or_init(|| upsert_statement(&placeholders));
    sqlx::query_as_with(statement.as_str(), parameters.into_arguments()?).fetch_optional(connection).await
}

/// The placeholders of [`upsert_statement`].
struct UpsertPlaceholders {
    id: Placeholder,
    updated: Placeholder,
    checked: Placeholder,
    is_import: Placeholder,
    replaces_newer: Placeholder,
    path: Placeholder,
    chartset: Columns,
    hashes: Placeholder,
    member: Columns,
    tags: TagPlaceholders,
}

fn upsert_statement(placeholders: &UpsertPlaceholders) -> String {
    let UpsertPlaceholders {
        id,
        updated,
        checked,
        is_import,
        replaces_newer,
        path,
        chartset,
        hashes,
        member,
        tags,
    } = placeholders;
    format!(
        "WITH written AS (
             INSERT INTO chartsets AS chartset (id, removed_at_ms, checked_at_ms, updated_at_ms, path, {chartset_names})
             VALUES ({id}, (SELECT removed_at_ms FROM removals WHERE entity = decode({id}, 'hex')), {checked}, {updated},
                     {path}, {chartset_values})
             ON CONFLICT (id) DO UPDATE SET
                 checked_at_ms = greatest(chartset.checked_at_ms, excluded.checked_at_ms),
                 updated_at_ms = excluded.updated_at_ms, {chartset_assignments},
                 path = CASE WHEN {is_import} THEN chartset.path ELSE excluded.path END
             WHERE CASE WHEN {replaces_newer} THEN true
                        WHEN {is_import} THEN chartset.updated_at_ms <= excluded.updated_at_ms
                        ELSE chartset.content_fingerprint <> excluded.content_fingerprint END
             -- xmax is 0 in a row that was inserted, not updated.
             RETURNING id, xmax = 0 AS added, removed_at_ms IS NOT NULL AS removed,
                       removed_at_ms IS NOT NULL AND EXISTS (
                           SELECT FROM removals WHERE entity = decode({id}, 'hex') AND erased) AS erased
         ), dropped AS (
             DELETE FROM chartset_charts AS member USING written
             WHERE member.chartset_id = written.id AND member.chart_hash <> ALL ({hashes})
         ), stored_member AS (
             INSERT INTO chartset_charts (chartset_id, chart_hash, tags, {member_names})
             SELECT written.id, hash, ({all_tags})[tags_end - tag_count + 1:tags_end], {member_names}
             FROM written, unnest({hashes}, {tag_counts}, {tag_ends}, {member_values})
                           AS member (hash, tag_count, tags_end, {member_names})
             ON CONFLICT (chartset_id, chart_hash) DO UPDATE SET tags = excluded.tags, {member_assignments}
         )
         SELECT added, removed, erased FROM written",
        chartset_names = chartset.names(),
        chartset_values = chartset.values(),
        chartset_assignments = chartset.excluded_assignments(),
        member_names = member.names(),
        member_values = member.values(),
        member_assignments = member.excluded_assignments(),
        all_tags = tags.all,
        tag_counts = tags.counts,
        tag_ends = tags.ends,
    )
}

/// The columns of `chartsets` that an update replaces.
fn new_chartset_columns(
    parameters: &mut Parameters,
    draft: &ChartsetDraft,
    fingerprint: &[u8; 32],
    derived: &DerivedColumns,
) -> Columns {
    let mut columns = Columns::default();
    let (exact_kind, exact_ref) = source_columns(draft.exact_source.as_ref());
    columns.add("exact_kind", parameters.bind(exact_kind));
    columns.add("exact_ref", parameters.bind(exact_ref));
    columns.add("content_fingerprint", parameters.bind(fingerprint));
    derived.add_to(&mut columns, parameters);
    columns
}

/// The columns of `chartset_charts`, except for the tags. Each value is an array with an element per chart.
fn new_member_columns(
    parameters: &mut Parameters,
    members: &[ChartsetMember],
    exact_source: Option<&PublicSource>,
) -> Columns {
    let mut columns = Columns::default();
    let texts = |value: fn(&ChartMetadata) -> &str| -> Vec<&str> {
        members.iter().map(|member| value(&member.metadata)).collect()
    };
    let optional_texts = |value: fn(&ChartMetadata) -> &Option<String>| -> Vec<Option<&str>> {
        members.iter().map(|member| value(&member.metadata).as_deref()).collect()
    };
    let (kinds, refs): (Vec<_>, Vec<_>) =
        members.iter().map(|member| source_columns(member.declared_source.as_ref())).unzip();
    // The game has never assigned an id that PostgreSQL cannot store.
    let beatmap_ids = members.iter().map(|member| i64::try_from(member.alpha_beatmap_id?).ok());
    columns.add("title", parameters.bind(texts(|metadata| &metadata.title)));
    columns.add("artist", parameters.bind(texts(|metadata| &metadata.artist)));
    columns.add("title_romanised", parameters.bind(optional_texts(|metadata| &metadata.title_romanised)));
    columns.add("artist_romanised", parameters.bind(optional_texts(|metadata| &metadata.artist_romanised)));
    columns.add("creator", parameters.bind(texts(|metadata| &metadata.creator)));
    columns.add("difficulty", parameters.bind(texts(|metadata| &metadata.difficulty)));
    columns.add("declared_kind", parameters.bind(kinds));
    columns.add("declared_ref", parameters.bind(refs));
    columns.add("alpha_beatmap_id", parameters.bind(beatmap_ids.collect::<Vec<_>>()));
    let ranks = members.iter().map(|member| source_rank(exact_source, member.declared_source.as_ref()));
    columns.add("source_rank", parameters.bind(ranks.collect::<Vec<_>>()));
    columns
}

/// The value of `chartset_charts.source_rank`.
const fn source_rank(exact: Option<&PublicSource>, declared: Option<&PublicSource>) -> i16 {
    match (exact, declared) {
        (Some(PublicSource { kind: SourceKind::AlphaSet, .. }), _) => 0,
        (Some(PublicSource { kind: SourceKind::BetaPack, .. }), _) => 1,
        (None, Some(PublicSource { kind: SourceKind::AlphaSet, .. })) => 2,
        (None, Some(PublicSource { kind: SourceKind::BetaPack, .. })) => 3,
        (None, None) => 4,
    }
}

/// The placeholders of the tags. In PostgreSQL all rows of a two-dimensional array have the same length, so the
/// tags of all charts are one array, and each chart has a slice of it.
struct TagPlaceholders {
    all: Placeholder,
    counts: Placeholder,
    ends: Placeholder,
}

impl TagPlaceholders {
    fn bind(parameters: &mut Parameters, members: &[ChartsetMember]) -> Self {
        let tags = || members.iter().map(|member| &member.metadata.tags);
        let counts: Vec<i32> = tags().map(|tags| i32::try_from(tags.len()).unwrap_or(i32::MAX)).collect();
        let mut end = 0;
        let ends: Vec<i32> = counts
            .iter()
            .map(|count| {
                end += count;
                end
            })
            .collect();
        Self {
            all: parameters.bind(tags().flatten().map(String::as_str).collect::<Vec<_>>()),
            counts: parameters.bind(counts),
            ends: parameters.bind(ends),
        }
    }
}
