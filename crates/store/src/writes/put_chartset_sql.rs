//! The statements of [`Store::put_chartset`](crate::Store::put_chartset) and of imports. Each writes all rows
//! of several chartsets at once.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use chart_index_domain::{
    ChartDraft, ChartMetadata, ChartValues, ChartsetDraft, ChartsetId, ChartsetMember, Entity, FileAliases,
    NoteHash, PublicSource, SourceKind,
};
use chart_index_objects::Objects;
use sqlx::{Connection, PgConnection};

use crate::connection::removal_lock;
use crate::error::corrupt;
use crate::schema::chart_row::{ChartRow, chart_columns, new_chart_columns};
use crate::schema::column_values::{parse_chartset_id, parse_entity, source_columns};
use crate::schema::derived_columns::DerivedColumns;
use crate::schema::sql_text::replace_nul;
use crate::schema::statement_columns::{Columns, Parameters, Placeholder, array_literal};
use crate::schema::stored_files::NewFiles;
use crate::schema::stored_times::StoredTimes;
use crate::{ExpectedChartset, Precedence};

/// A stored chart. The first file ingested with its hash determines the values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CanonicalChart {
    pub(crate) values: ChartValues,
    pub(crate) removed: bool,
}

#[derive(sqlx::FromRow)]
struct CanonicalRow {
    #[sqlx(flatten)]
    chart: ChartRow,
    removed: bool,
}

/// A chartset to write.
#[derive(Debug)]
pub(crate) struct NewChartset<'a> {
    pub(crate) draft: &'a ChartsetDraft,
    pub(crate) fingerprint: &'a [u8; 32],
    pub(crate) times: StoredTimes,
    pub(crate) members: Vec<ChartsetMember>,
    /// Derived from the members that are not removed.
    pub(crate) derived: DerivedColumns,
}

/// The result of [`upsert_chartsets`] for a chartset.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Upserted {
    pub(crate) id: String,
    pub(crate) added: bool,
    pub(crate) removed: bool,
}

/// Returns the chartsets that are stored with the expected content.
pub(crate) async fn with_content(
    connection: &mut PgConnection,
    mut expected: Vec<ExpectedChartset>,
) -> Result<Vec<ExpectedChartset>, sqlx::Error> {
    let stored: Vec<String> = sqlx::query_scalar(
        "SELECT id FROM unnest($1::text[], $2::bytea[]) AS expected (id, fingerprint)
         JOIN chartsets USING (id) WHERE content_fingerprint = fingerprint",
    )
    .bind(expected.iter().map(|chartset| chartset.id.to_string()).collect::<Vec<_>>())
    .bind(expected.iter().map(|chartset| chartset.fingerprint).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    let stored = stored.iter().map(|id| parse_chartset_id(id)).collect::<Result<HashSet<_>, _>>()?;
    expected.retain(|chartset| stored.contains(&chartset.id));
    Ok(expected)
}

/// Returns the charts with these hashes that are stored.
pub(crate) async fn stored_charts(
    connection: &mut PgConnection,
    hashes: &[&[u8]],
) -> Result<HashMap<NoteHash, CanonicalChart>, sqlx::Error> {
    let rows: Vec<CanonicalRow> = sqlx::query_as(concat!(
        "SELECT ",
        chart_columns!(),
        ", chart.removed_at_ms IS NOT NULL AS removed FROM charts AS chart WHERE chart.hash = ANY($1)"
    ))
    .bind(hashes)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|CanonicalRow { chart, removed }| {
            Ok((chart.hash(), CanonicalChart { values: chart.values()?, removed: *removed }))
        })
        .collect()
}

/// Returns those of these charts and chartsets that were erased.
pub(crate) async fn erased(
    connection: &mut PgConnection,
    entities: &[&[u8]],
) -> Result<HashSet<Entity>, sqlx::Error> {
    let rows: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT entity FROM removals WHERE entity = ANY($1) AND erased")
            .bind(entities)
            .fetch_all(connection)
            .await?;
    rows.iter().map(|entity| parse_entity(entity)).collect()
}

/// Stores charts, in the order of their hashes, and returns the number of new ones that are not removed. Those
/// that were erased are not stored.
///
/// The transaction holds the lock of [`removal_lock`](crate::connection::removal_lock).
pub(crate) async fn insert_charts(
    connection: &mut PgConnection,
    objects: Option<&Objects>,
    charts: &[&ChartDraft],
    now_ms: i64,
) -> Result<usize, sqlx::Error> {
    static STATEMENT: OnceLock<String> = OnceLock::new();
    let rox_files = charts.iter().map(|chart| chart.rox.as_deref()).collect::<Option<Vec<_>>>();
    let rox_files = rox_files.ok_or_else(|| corrupt("a new chart has no ROX file"))?;
    let digests: Vec<_> = rox_files.iter().map(|rox| *blake3::hash(rox).as_bytes()).collect();
    let files = store_files(connection, objects, charts).await?;
    let mut parameters = Parameters::default();
    let now = parameters.bind(now_ms);
    let hashes = parameters.bind(charts.iter().map(|chart| chart.hash.as_bytes()).collect::<Vec<_>>());
    let chart = new_chart_columns(&mut parameters, charts, &rox_files);
    let chart = Columns::concat([&Columns::single("hash", hashes), &chart]);
    let [files, file_objects] = [parameters.bind(files.bytes), parameters.bind(files.objects)];
    let digests = parameters.bind(digests);
    let statement = STATEMENT.get_or_init(|| {
        format!(
            "WITH stored AS (
                 INSERT INTO charts (first_seen_ms, removed_at_ms, {names})
                 SELECT {now}, (SELECT removal.removed_at_ms FROM removals AS removal WHERE removal.entity = hash), {values}
                 FROM {given}
                 -- Not a join, which may change the order.
                 WHERE NOT EXISTS (SELECT FROM removals AS removal WHERE removal.entity = hash AND removal.erased)
                 ON CONFLICT DO NOTHING
                 RETURNING hash, removed_at_ms
             ), files AS (
                 INSERT INTO rox_files (hash, bytes, object, replacement_digest)
                 SELECT file.hash, file.bytes, file.object, CASE WHEN EXISTS (
                            SELECT FROM erased_files AS erased
                            WHERE erased.hash = file.hash AND erased.digest IS DISTINCT FROM file.digest
                        ) THEN file.digest END
                 FROM unnest({hashes}, {files}, {file_objects}, {digests}) AS file (hash, bytes, object, digest)
                 JOIN stored ON stored.hash = file.hash
             )
             SELECT count(*) FROM stored WHERE removed_at_ms IS NULL",
            names = chart.names(),
            values = chart.values(),
            given = chart.given(),
        )
    });
    let inserted: i64 = sqlx::query_scalar_with(statement.as_str(), parameters.into_arguments()?)
        .fetch_one(connection)
        .await?;
    Ok(usize::try_from(inserted).unwrap_or_default())
}

/// Stores the ROX files of new charts as objects, if there is an object store, except those of charts that are
/// removed or erased.
async fn store_files<'a>(
    connection: &mut PgConnection,
    objects: Option<&Objects>,
    charts: &[&'a ChartDraft],
) -> Result<NewFiles<'a>, sqlx::Error> {
    let mut removed: HashSet<[u8; 32]> = HashSet::new();
    if objects.is_some() {
        let hashes: Vec<_> = charts.iter().map(|chart| chart.hash.as_bytes()).collect();
        let rows: Vec<[u8; 32]> = sqlx::query_scalar("SELECT entity FROM removals WHERE entity = ANY($1)")
            .bind(hashes)
            .fetch_all(connection)
            .await?;
        removed.extend(rows);
    }
    let stays = |index: usize| charts.get(index).is_some_and(|chart| removed.contains(chart.hash.as_bytes()));
    let rox_files = charts.iter().map(|chart| chart.rox.as_deref()).collect();
    NewFiles::store(objects, rox_files, stays).await
}

/// Writes the rows of chartsets, their charts and their pending changes, and deletes the charts that they no
/// longer contain. Chartsets that must not be replaced are not in the result: they are stored with this content
/// already or, in an import, are newer.
///
/// The transaction holds the locks of [`begin_ingest`](crate::connection::removal_lock::begin_ingest), and none
/// of the chartsets was erased. It is one statement because the overhead of several would exceed their work.
pub(crate) async fn upsert_chartsets(
    connection: &mut PgConnection,
    chartsets: &[NewChartset<'_>],
) -> Result<Vec<Upserted>, sqlx::Error> {
    static STATEMENT: OnceLock<String> = OnceLock::new();
    let mut parameters = Parameters::default();
    // All of them are of the same ingest or import.
    let imported = chartsets.first().and_then(|chartset| chartset.times.imported);
    let placeholders = UpsertPlaceholders {
        is_import: parameters.bind(imported.is_some()),
        replaces_newer: parameters.bind(imported == Some(Precedence::Imported)),
        row: chartset_row_columns(&mut parameters, chartsets),
        content: chartset_content_columns(&mut parameters, chartsets),
        member_key: member_key_columns(&mut parameters, chartsets),
        member: member_columns(&mut parameters, chartsets),
        alias: alias_columns(
            &mut parameters,
            members(chartsets).map(|(draft, member)| (draft.id, member.hash, &member.aliases)),
        ),
    };
    let statement = STATEMENT.get_or_init(|| upsert_statement(&placeholders));
    sqlx::query_as_with(statement.as_str(), parameters.into_arguments()?).fetch_all(connection).await
}

/// The placeholders of [`upsert_statement`].
struct UpsertPlaceholders {
    is_import: Placeholder,
    replaces_newer: Placeholder,
    row: Columns,
    /// The columns of `chartsets` that an update replaces.
    content: Columns,
    member_key: Columns,
    member: Columns,
    alias: Columns,
}

fn upsert_statement(placeholders: &UpsertPlaceholders) -> String {
    let UpsertPlaceholders { is_import, replaces_newer, row, content, member_key, member, alias } =
        placeholders;
    let (chartsets, members) = (Columns::concat([row, content]), Columns::concat([member_key, member]));
    format!(
        "WITH written AS (
             INSERT INTO chartsets AS chartset (removed_at_ms, {chartset_names})
             -- Not a join, which may change the order.
             SELECT (SELECT removed_at_ms FROM removals WHERE entity = decode(given.id, 'hex')), {chartset_values}
             FROM {given_chartsets}
             ON CONFLICT (id) DO UPDATE SET
                 checked_at_ms = greatest(chartset.checked_at_ms, excluded.checked_at_ms),
                 updated_at_ms = excluded.updated_at_ms, {content_assignments},
                 path = CASE WHEN {is_import} THEN chartset.path ELSE excluded.path END
             WHERE CASE WHEN {replaces_newer} THEN true
                        WHEN {is_import} THEN chartset.updated_at_ms <= excluded.updated_at_ms
                        ELSE chartset.content_fingerprint <> excluded.content_fingerprint END
             -- xmax is 0 in a row that was inserted, not updated.
             RETURNING id, xmax = 0 AS added, removed_at_ms IS NOT NULL AS removed
         ), dropped AS (
             DELETE FROM chartset_charts AS member USING written
             WHERE member.chartset_id = written.id AND NOT written.added
                   AND (member.chartset_id, member.chart_hash) NOT IN (
                       SELECT given.chartset_id, given.chart_hash FROM {given_keys})
         ), stored_member AS (
             INSERT INTO chartset_charts ({member_names})
             SELECT {member_values} FROM {given_members} JOIN written ON written.id = given.chartset_id
             ON CONFLICT (chartset_id, chart_hash) DO UPDATE SET {member_assignments}
         ), stored_alias AS (
             INSERT INTO chart_aliases ({alias_names})
             SELECT {alias_values} FROM {given_aliases} JOIN written ON written.id = given.chartset_id
             ON CONFLICT DO NOTHING
         )
         SELECT id, added, removed FROM written",
        chartset_names = chartsets.names(),
        chartset_values = chartsets.values(),
        given_chartsets = chartsets.given(),
        content_assignments = content.excluded_assignments(),
        given_keys = member_key.given(),
        member_names = members.names(),
        member_values = members.values(),
        given_members = members.given(),
        member_assignments = member.excluded_assignments(),
        alias_names = alias.names(),
        alias_values = alias.values(),
        given_aliases = alias.given(),
    )
}

fn chartset_row_columns(parameters: &mut Parameters, chartsets: &[NewChartset<'_>]) -> Columns {
    let mut columns = Columns::default();
    let ids = chartsets.iter().map(|chartset| chartset.draft.id.to_string());
    columns.add("id", parameters.bind(ids.collect::<Vec<_>>()));
    let checked = chartsets.iter().map(|chartset| chartset.times.checked_at_ms);
    columns.add("checked_at_ms", parameters.bind(checked.collect::<Vec<_>>()));
    let updated = chartsets.iter().map(|chartset| chartset.times.updated_at_ms);
    columns.add("updated_at_ms", parameters.bind(updated.collect::<Vec<_>>()));
    let paths = chartsets.iter().map(|chartset| replace_nul(&chartset.draft.path));
    columns.add("path", parameters.bind(paths.collect::<Vec<_>>()));
    columns
}

fn chartset_content_columns(parameters: &mut Parameters, chartsets: &[NewChartset<'_>]) -> Columns {
    let mut columns = Columns::default();
    let sources = chartsets.iter().map(|chartset| source_columns(chartset.draft.exact_source.as_ref()));
    let (kinds, refs): (Vec<_>, Vec<_>) = sources.unzip();
    columns.add("exact_kind", parameters.bind(kinds));
    columns.add("exact_ref", parameters.bind(refs));
    let fingerprints = chartsets.iter().map(|chartset| chartset.fingerprint);
    columns.add("content_fingerprint", parameters.bind(fingerprints.collect::<Vec<_>>()));
    let derived: Vec<_> = chartsets.iter().map(|chartset| &chartset.derived).collect();
    DerivedColumns::add_to(&derived, &mut columns, parameters);
    columns
}

/// The members of all chartsets, each with its chartset.
fn members<'a>(
    chartsets: &'a [NewChartset<'a>],
) -> impl Iterator<Item = (&'a ChartsetDraft, &'a ChartsetMember)> {
    chartsets.iter().flat_map(|chartset| chartset.members.iter().map(|member| (chartset.draft, member)))
}

fn member_key_columns(parameters: &mut Parameters, chartsets: &[NewChartset<'_>]) -> Columns {
    let mut columns = Columns::default();
    let ids = members(chartsets).map(|(chartset, _)| chartset.id.to_string());
    columns.add("chartset_id", parameters.bind(ids.collect::<Vec<_>>()));
    let hashes = members(chartsets).map(|(_, member)| member.hash.as_bytes());
    columns.add("chart_hash", parameters.bind(hashes.collect::<Vec<_>>()));
    columns
}

fn member_columns(parameters: &mut Parameters, chartsets: &[NewChartset<'_>]) -> Columns {
    let mut columns = Columns::default();
    let metadata = || members(chartsets).map(|(_, member)| &member.metadata);
    let texts = |value: fn(&ChartMetadata) -> &str| -> Vec<&str> { metadata().map(value).collect() };
    let optional_texts = |value: fn(&ChartMetadata) -> &Option<String>| -> Vec<Option<&str>> {
        metadata().map(|metadata| value(metadata).as_deref()).collect()
    };
    columns.add("title", parameters.bind(texts(|metadata| &metadata.title)));
    columns.add("artist", parameters.bind(texts(|metadata| &metadata.artist)));
    columns.add("title_romanised", parameters.bind(optional_texts(|metadata| &metadata.title_romanised)));
    columns.add("artist_romanised", parameters.bind(optional_texts(|metadata| &metadata.artist_romanised)));
    columns.add("creator", parameters.bind(texts(|metadata| &metadata.creator)));
    columns.add("difficulty", parameters.bind(texts(|metadata| &metadata.difficulty)));
    let tags = metadata().map(|metadata| array_literal(&metadata.tags));
    columns.add_cast("tags", "text[]", parameters.bind(tags.collect::<Vec<_>>()));
    let sources = members(chartsets).map(|(_, member)| source_columns(member.declared_source.as_ref()));
    let (kinds, refs): (Vec<_>, Vec<_>) = sources.unzip();
    columns.add("declared_kind", parameters.bind(kinds));
    columns.add("declared_ref", parameters.bind(refs));
    // The game has never assigned an id that PostgreSQL cannot store.
    let beatmap_ids = members(chartsets).map(|(_, member)| i64::try_from(member.alpha_beatmap_id?).ok());
    columns.add("alpha_beatmap_id", parameters.bind(beatmap_ids.collect::<Vec<_>>()));
    let ranks = members(chartsets).map(|(chartset, member)| {
        source_rank(chartset.exact_source.as_ref(), member.declared_source.as_ref())
    });
    columns.add("source_rank", parameters.bind(ranks.collect::<Vec<_>>()));
    columns
}

/// The rows of `chart_aliases` of charts in chartsets, in the order of the primary key.
fn alias_columns<'a>(
    parameters: &mut Parameters,
    charts: impl Iterator<Item = (ChartsetId, NoteHash, &'a FileAliases)>,
) -> Columns {
    let mut rows: Vec<(NoteHash, ChartsetId, &[u8])> = Vec::new();
    for (id, hash, aliases) in charts {
        rows.extend(aliases.md5s.iter().map(|md5| (hash, id, &md5.as_bytes()[..])));
        rows.extend(aliases.roll_variants.iter().map(|variant| (hash, id, &variant.as_bytes()[..])));
    }
    rows.sort_unstable();
    let mut columns = Columns::default();
    let hashes = rows.iter().map(|(hash, ..)| hash.as_bytes());
    columns.add("chart_hash", parameters.bind(hashes.collect::<Vec<_>>()));
    let ids = rows.iter().map(|(_, id, _)| id.to_string());
    columns.add("chartset_id", parameters.bind(ids.collect::<Vec<_>>()));
    columns.add("alias", parameters.bind(rows.iter().map(|(.., alias)| *alias).collect::<Vec<_>>()));
    columns
}

/// Stores the aliases of charts in chartsets whose content was unchanged, unless they have been erased since.
pub(crate) async fn insert_aliases<'a>(
    connection: &mut PgConnection,
    charts: impl Iterator<Item = (ChartsetId, NoteHash, &'a FileAliases)>,
) -> Result<(), sqlx::Error> {
    static STATEMENT: OnceLock<String> = OnceLock::new();
    let charts: Vec<_> = charts.filter(|(.., aliases)| **aliases != FileAliases::default()).collect();
    if charts.is_empty() {
        return Ok(());
    }
    let mut parameters = Parameters::default();
    let alias = alias_columns(&mut parameters, charts.into_iter());
    let statement = STATEMENT.get_or_init(|| {
        format!(
            "INSERT INTO chart_aliases ({}) SELECT {} FROM {}
             -- Not a join, which may change the order.
             WHERE (SELECT true FROM chartset_charts AS member
                    WHERE member.chartset_id = given.chartset_id AND member.chart_hash = given.chart_hash)
             ON CONFLICT DO NOTHING",
            alias.names(),
            alias.values(),
            alias.given()
        )
    });
    let mut transaction = connection.begin_with(removal_lock::BEGIN_INSERT).await?;
    sqlx::query_with(statement.as_str(), parameters.into_arguments()?).execute(&mut *transaction).await?;
    transaction.commit().await
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
