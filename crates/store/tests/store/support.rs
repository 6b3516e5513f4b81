//! A catalogue for every test, and drafts to fill it with.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use chart_index_domain::search::{ChartsetPage, ListItem, SearchIndex, SearchQuery};
use chart_index_domain::{
    ChartAnalysis, ChartDraft, ChartMetadata, ChartNumbers, ChartsetDraft, ChartsetId, DensityCurve, Entity,
    FileAliases, KeyCount, NoteHash, Patterns, PublicSource, Rating, SourceKind, SourceRef,
};
use chart_index_store::{
    CatalogueWatch, DatabaseUrl, PostgresSearch, PutOutcome, Removal, RemovalOutcome, Store, StoreConfig,
};
use chart_index_tests::{TestDatabase, within};
use serde_json::Value;

/// Longer than anything that a test waits for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A migrated database and the store on it.
pub(crate) struct Catalogue {
    pub(crate) database: TestDatabase,
    pub(crate) store: Store,
}

impl Catalogue {
    pub(crate) async fn create() -> Self {
        Self::over(TestDatabase::migrated().await)
    }

    /// Creates the catalogue on a private server.
    pub(crate) async fn create_on(server_url: &str) -> Self {
        let catalogue = Self::over(TestDatabase::create_on(server_url));
        catalogue.store.migrate().await.unwrap();
        catalogue
    }

    fn over(database: TestDatabase) -> Self {
        let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
        Self { database, store }
    }

    pub(crate) async fn put(&self, draft: &ChartsetDraft, now_ms: i64) -> PutOutcome {
        self.store.put_chartset(draft, now_ms).await.unwrap()
    }

    /// Removes a chart or a chartset.
    pub(crate) async fn remove(&self, entity: impl Into<Entity>, now_ms: i64) -> RemovalOutcome {
        self.store.remove(&[removal(entity, now_ms)], now_ms).await.unwrap()[0]
    }

    /// Restores a chart or a chartset. Returns whether it was removed.
    pub(crate) async fn restore(&self, entity: impl Into<Entity>, now_ms: i64) -> bool {
        self.store.restore(entity.into(), now_ms).await.unwrap()
    }

    pub(crate) async fn search(&self, query: &SearchQuery) -> ChartsetPage {
        PostgresSearch::new(self.store.clone(), CatalogueWatch::disabled()).search(query).await.unwrap()
    }

    /// Returns the last sequence of the change feed.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.database.psql("SELECT last_sequence FROM change_feed").parse().unwrap()
    }

    /// Returns the chartsets that have changed after a sequence.
    pub(crate) fn changed_after(&self, sequence: u64) -> Vec<ChartsetId> {
        let changes = format!(
            "SELECT encode(entity, 'hex') FROM catalogue_changes
             WHERE sequence > {sequence} AND octet_length(entity) = 8 ORDER BY sequence"
        );
        self.database.psql(&changes).lines().map(|id| id.parse().unwrap()).collect()
    }

    /// Returns the last change and the last check of a chartset.
    pub(crate) fn times(&self, id: ChartsetId) -> String {
        let times = format!(
            "SELECT updated_at_ms, greatest(chartsets.checked_at_ms, chartset_checks.checked_at_ms)
             FROM chartsets LEFT JOIN chartset_checks ON chartset_id = id WHERE id = '{id}'"
        );
        self.database.psql(&times)
    }

    /// Waits until this many sessions wait for a lock.
    pub(crate) async fn wait_for_blocked_sessions(&self, count: u32) {
        let blocked = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        within(TIMEOUT, async || (self.database.psql(blocked) == count.to_string()).then_some(())).await;
    }

    /// Fails unless every derived column and every row for lists match the charts and the list of removals.
    pub(crate) async fn assert_consistent(&self) {
        let (mismatches, _) = self.store.column_mismatches(None, 100_000).await.unwrap();
        assert_eq!(mismatches, []);
        assert_eq!(self.store.removal_mismatches().await.unwrap(), []);
        for table in ["shown_charts", "shown_chartsets"] {
            self.database.psql(&format!("CREATE TABLE copy_of_{table} AS TABLE {table}"));
        }
        // Those that were deleted as well.
        let sets = "SELECT id FROM chartsets UNION SELECT id FROM copy_of_shown_chartsets";
        self.database.psql(&format!("SELECT write_shown(id) FROM ({sets}) AS sets"));
        for table in ["shown_charts", "shown_chartsets"] {
            let differences = format!(
                "SELECT count(*) FROM ((TABLE {table} EXCEPT ALL TABLE copy_of_{table})
                                       UNION ALL (TABLE copy_of_{table} EXCEPT ALL TABLE {table})) AS differing"
            );
            assert_eq!(self.database.psql(&differences), "0", "{table}");
            self.database.psql(&format!("DROP TABLE copy_of_{table}"));
        }
    }
}

/// A transaction that stays open until the test ends it.
pub(crate) struct OpenTransaction {
    psql: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl OpenTransaction {
    pub(crate) fn begin(url: &str) -> Self {
        let mut command = Command::new("psql");
        command.args(["--no-psqlrc", "--quiet", "-tA", "-v", "ON_ERROR_STOP=1", "-d", url]);
        let mut psql = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (psql.stdin.take().unwrap(), psql.stdout.take().unwrap());
        let mut transaction = Self { psql, input, output: BufReader::new(output).lines() };
        transaction.run("BEGIN");
        transaction
    }

    /// Runs a statement that returns no rows, and waits for its end.
    pub(crate) fn run(&mut self, statement: &str) {
        writeln!(self.input, "{statement};\n\\echo done").unwrap();
        assert_eq!(self.output.next().unwrap().unwrap(), "done");
    }

    pub(crate) fn commit(mut self) {
        self.run("COMMIT");
    }

    pub(crate) fn roll_back(mut self) {
        self.run("ROLLBACK");
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let _ = self.psql.kill();
        let _ = self.psql.wait();
    }
}

/// An entry of the list of removals.
pub(crate) fn removal(entity: impl Into<Entity>, removed_at_ms: i64) -> Removal {
    Removal { entity: entity.into(), removed_at_ms, reason: None, erased: false }
}

pub(crate) fn config(url: &str) -> StoreConfig {
    StoreConfig::new(url.parse::<DatabaseUrl>().unwrap())
}

pub(crate) fn hash(number: u64) -> NoteHash {
    let mut bytes = [0; 32];
    // Scattered, so that the hashes are not in the order of the numbers.
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    NoteHash::from_bytes(bytes)
}

pub(crate) fn id(number: u64) -> ChartsetId {
    ChartsetId::from_bytes(number.to_be_bytes())
}

pub(crate) fn source(kind: SourceKind, number: u64) -> PublicSource {
    PublicSource { kind, reference: SourceRef::from_number(number).unwrap() }
}

pub(crate) fn alpha(number: u64) -> PublicSource {
    source(SourceKind::AlphaSet, number)
}

pub(crate) fn beta(number: u64) -> PublicSource {
    source(SourceKind::BetaPack, number)
}

pub(crate) fn numbers(number: u32) -> ChartNumbers {
    let small = f64::from(number % 50);
    ChartNumbers {
        keys: KeyCount::try_from(u8::try_from(4 + number % 4).unwrap()).unwrap(),
        bpm_min: 100.0 + small,
        bpm_max: 150.125 + small,
        bpm_main: 120.5 + small,
        length_ms: 60_000 + number,
        notes: 500 + number,
        density_avg: 5.25 + small,
        density_peak: 12.5 + small,
        ..ChartNumbers::default()
    }
}

pub(crate) fn curve(number: u32) -> DensityCurve {
    DensityCurve::from_bytes([u8::try_from(number % 256).unwrap(); DensityCurve::PARTS])
}

/// A chart whose number is a multiple of 5 has no rating.
pub(crate) fn analysis(number: u32) -> ChartAnalysis {
    let small = u8::try_from(number % 50).unwrap();
    let rating = Rating::from_hundredths(200 + u16::from(small)).filter(|_| !number.is_multiple_of(5));
    ChartAnalysis { rating, patterns: Patterns { ln_note_share: small, ..Patterns::default() } }
}

/// A chart whose metadata is derived from its number.
pub(crate) fn chart(number: u32) -> ChartDraft {
    ChartDraft {
        hash: hash(number.into()),
        numbers: numbers(number),
        variant: None,
        analysis: Some(analysis(number)),
        rox: Some(format!("rox of {number}").into_bytes()),
        curve: Some(curve(number)),
        metadata: ChartMetadata {
            title: format!("Title {number}"),
            artist: format!("Artist {number}"),
            creator: format!("Creator {number}"),
            difficulty: format!("Difficulty {number}"),
            tags: vec![format!("tag{number}"), "common".into()],
            ..ChartMetadata::default()
        },
        declared_source: None,
        alpha_beatmap_id: Some(1_000 + u64::from(number)),
        aliases: FileAliases::default(),
    }
}

/// A folder without an exact source.
pub(crate) fn folder(number: u64, charts: impl IntoIterator<Item = ChartDraft>) -> ChartsetDraft {
    let path = format!("alpha/{number}");
    ChartsetDraft { id: id(number), path, exact_source: None, charts: charts.into_iter().collect() }
}

/// A folder with one chart of this title.
pub(crate) fn titled(number: u32, title: &str) -> ChartsetDraft {
    let mut chart = chart(number);
    chart.metadata.title = title.into();
    chart.metadata.tags.clear();
    folder(number.into(), [chart])
}

/// Returns the numbers of the sets on a page.
pub(crate) fn ids(page: &ChartsetPage) -> Vec<u64> {
    let number = |item: &ListItem| {
        let item: Value = serde_json::from_str(item.as_str()).unwrap();
        u64::from_str_radix(item["id"].as_str().unwrap(), 16).unwrap()
    };
    page.items.iter().map(number).collect()
}
