//! A catalogue with charts of every kind: of both games, without a source, in several sets, removed.

use chart_index_tests::{ChartSpec, IndexerRun, Library, TestDatabase, indexer_command, samples};

/// Chartsets of each kind: sets of the first game, songs of packs of the second, folders without an id.
const SETS_OF_A_KIND: u32 = 120;
/// One in this many sets shares a chart with the set before, which gives the chart two sources.
const SHARED: u32 = 4;
/// Charts and chartsets that are removed.
const REMOVED: usize = 8;

/// Words of titles, artists, creators and tags, which lists search for.
const WORDS: [&str; 8] = ["harbour", "lantern", "signal", "mirror", "été", "夜明け", "garden", "static"];

/// A library and the database that it was ingested into.
pub(crate) struct Catalogue {
    pub(crate) database: TestDatabase,
    pub(crate) library: Library,
}

impl Catalogue {
    /// A catalogue of some hundred chartsets on the server of the test run.
    pub(crate) async fn create() -> Self {
        let catalogue = Self::with_sets(SETS_OF_A_KIND).await;
        catalogue.run(&["ingest", samples().to_str().expect("a readable path")]);
        let charts = catalogue.column("SELECT encode(hash, 'hex') FROM charts ORDER BY hash");
        let sets = catalogue.column("SELECT id FROM chartsets ORDER BY id");
        for hash in charts.iter().take(REMOVED) {
            catalogue.run(&["remove", "chart", hash]);
        }
        for id in sets.iter().take(REMOVED) {
            catalogue.run(&["remove", "chartset", id]);
        }
        catalogue.run(&["restore", "chart", &charts[0]]);
        catalogue.run(&["restore", "chartset", &sets[0]]);
        catalogue
    }

    /// A catalogue with this many sets of each kind, none of them removed.
    pub(crate) async fn with_sets(count: u32) -> Self {
        let catalogue = Self::written(count).await;
        catalogue.run(&["migrate"]);
        catalogue.ingest();
        catalogue
    }

    /// A library with this many sets of each kind, and an empty database.
    pub(crate) async fn written(count: u32) -> Self {
        let catalogue = Self { database: TestDatabase::create().await, library: Library::new() };
        for number in 0..count {
            catalogue.write(&format!("alpha/{} set", 1_000 + number), number);
            catalogue.write(&format!("beta/{} pack/song {number}", 1 + number / 10), count + number);
            catalogue.write(&format!("alpha/no id {number}"), 2 * count + number);
        }
        catalogue
    }

    /// Writes a set with its own chart, and, for every [`SHARED`]th set, with the chart of the set before.
    fn write(&self, folder: &str, number: u32) {
        self.library.osu(&format!("{folder}/a.osu"), chart(number));
        if number % SHARED == 1 {
            self.library.osu(&format!("{folder}/shared.osu"), chart(number - 1));
        }
    }

    pub(crate) fn ingest(&self) {
        self.run(&["ingest", &self.library.argument()]);
    }

    /// Runs `chart-indexer` without Redis. It has to succeed.
    pub(crate) fn run(&self, arguments: &[&str]) {
        IndexerRun::run(&mut indexer_command(self.database.url(), arguments)).succeeded();
    }

    fn column(&self, query: &str) -> Vec<String> {
        self.database.psql(query).lines().map(str::to_owned).collect()
    }
}

/// A chart whose notes and metadata depend on the number.
pub(crate) fn chart(number: u32) -> ChartSpec {
    let word = |shift: u32| WORDS[((number >> shift) % 8) as usize];
    let mut chart = ChartSpec {
        keys: u8::try_from(4 + number % 4).expect("4 to 7"),
        title: format!("{} {number}", word(0)),
        artist: format!("{} and {}", word(1), word(2)),
        creator: format!("mapper {}", number % 17),
        difficulty: format!("Level {}", number % 5),
        tags: format!("{} {}", word(3), word(4)),
        bpm: 90.0 + f64::from(number % 150),
        ..ChartSpec::numbered(number)
    };
    chart.notes.push((20_000 + i64::from(number) * 100, 3, None));
    chart
}
