//! A catalogue with a library to ingest and nodes to index it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chart_index_system_tests::Process;
use chart_index_tests::{
    ChartSpec, IndexerRun, Library, PrivateMeilisearch, PrivatePostgres, TestDatabase, indexer_command,
};

/// The index of this version.
pub(crate) const INDEX: &str = "chartsets_v8";

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Catalogue {
    pub(crate) database: TestDatabase,
    pub(crate) library: Library,
    pub(crate) nodes: Vec<PrivateMeilisearch>,
}

impl Catalogue {
    /// An empty, migrated catalogue with `count` nodes.
    pub(crate) async fn with_nodes(count: usize) -> Self {
        let nodes = (0..count).map(|_| start_node(&[])).collect();
        Self::new(TestDatabase::create().await, nodes)
    }

    /// An empty, migrated catalogue with one node, which is started with these arguments.
    pub(crate) async fn with_node_arguments(arguments: &[&str]) -> Self {
        let node = start_node(arguments);
        Self::new(TestDatabase::create().await, vec![node])
    }

    /// An empty, migrated catalogue with one node, on this PostgreSQL server.
    pub(crate) fn on(server: &PrivatePostgres) -> Self {
        let node = start_node(&[]);
        Self::new(TestDatabase::create_on(server.url()), vec![node])
    }

    fn new(database: TestDatabase, nodes: Vec<PrivateMeilisearch>) -> Self {
        let catalogue = Self { database, library: Library::new(), nodes };
        catalogue.run(&["migrate"]);
        catalogue
    }

    /// A catalogue of `sets` chartsets with one node that is up to date.
    pub(crate) async fn synced(sets: u32) -> Self {
        let catalogue = Self::with_nodes(1).await;
        catalogue.write_sets(sets, "");
        catalogue.ingest();
        catalogue.run(&["sync"]);
        catalogue
    }

    /// Writes the chartsets `0..count` to the library, each with one chart and these tags.
    pub(crate) fn write_sets(&self, count: u32, tags: &str) {
        for number in 0..count {
            self.write_set(number, tags);
        }
    }

    pub(crate) fn write_set(&self, number: u32, tags: &str) {
        let title = format!("Title {number}");
        let chart = ChartSpec { tags: tags.into(), title, ..ChartSpec::numbered(number) };
        self.library.osu(&format!("alpha/{} set/a.osu", number + 1), chart);
    }

    pub(crate) fn ingest(&self) {
        self.run(&["ingest", &self.library.argument()]);
    }

    /// A command of the indexer with this catalogue and all of its nodes.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = indexer_command(self.database.url(), arguments);
        command.env("MEILISEARCH_URL", self.node_urls()).env_remove("MEILISEARCH_API_KEY");
        command
    }

    /// The value of `MEILISEARCH_URL` with all nodes.
    pub(crate) fn node_urls(&self) -> String {
        self.nodes.iter().map(PrivateMeilisearch::url).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn try_run(&self, arguments: &[&str]) -> IndexerRun {
        run(&mut self.command(arguments))
    }

    /// Runs a command that has to succeed and returns its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let run = self.try_run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {}{}", run.stdout, run.stderr);
        run.stdout
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        Process::start(self.command(arguments).stdout(Stdio::null()))
    }

    /// The ids of all chartsets, removed ones included.
    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = self.database.psql("SELECT id FROM chartsets ORDER BY id");
        ids.lines().map(str::to_owned).collect()
    }

    /// Fails unless every node is equal to PostgreSQL.
    pub(crate) fn assert_equal(&self) {
        let compared = self.run(&["verify", "--search"]);
        assert_eq!(compared.matches(" compared, 0 differences").count(), self.nodes.len(), "{compared}");
    }

    /// Waits until every node is equal to PostgreSQL.
    pub(crate) fn assert_becomes_equal(&self) {
        let start = Instant::now();
        while self.try_run(&["verify", "--search"]).code != Some(0) {
            assert!(start.elapsed() < TIMEOUT, "the index never becomes equal");
        }
    }
}

/// Starts a node with little indexing memory. The default is two thirds of the machine, and Meilisearch clears
/// a twentieth of it for each task, which takes seconds.
pub(crate) fn start_node(arguments: &[&str]) -> PrivateMeilisearch {
    PrivateMeilisearch::start_with(&[&["--max-indexing-memory", "256MiB"], arguments].concat())
}

pub(crate) fn run(command: &mut Command) -> IndexerRun {
    IndexerRun::run(command)
}
