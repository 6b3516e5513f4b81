//! A catalogue, a library to fill it from, and nodes to index it.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chart_index_tests::{
    ChartSpec, IndexerRun, Library, PrivateMeilisearch, PrivatePostgres, TestDatabase, indexer_command,
};

/// Everything that a test waits for comes long before.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Catalogue {
    pub(crate) database: TestDatabase,
    pub(crate) library: Library,
    pub(crate) nodes: Vec<PrivateMeilisearch>,
}

impl Catalogue {
    /// An empty, migrated catalogue with that many nodes.
    pub(crate) async fn with_nodes(count: usize) -> Self {
        let nodes = (0..count).map(|_| start_node(&[])).collect();
        Self::over(TestDatabase::create().await, nodes)
    }

    /// One with a node that is started with those arguments.
    pub(crate) async fn with_node_of(arguments: &[&str]) -> Self {
        let node = start_node(arguments);
        Self::over(TestDatabase::create().await, vec![node])
    }

    /// One with a node, on a PostgreSQL server of the test's own.
    pub(crate) fn on(server: &PrivatePostgres) -> Self {
        let node = start_node(&[]);
        Self::over(TestDatabase::create_on(server.url()), vec![node])
    }

    fn over(database: TestDatabase, nodes: Vec<PrivateMeilisearch>) -> Self {
        let catalogue = Self { database, library: Library::new(), nodes };
        catalogue.run(&["migrate"]);
        catalogue
    }

    /// A catalogue with one node and so many sets, both up to date.
    pub(crate) async fn synced(sets: u32) -> Self {
        let catalogue = Self::with_nodes(1).await;
        catalogue.write_sets(sets, "");
        catalogue.ingest();
        catalogue.run(&["sync"]);
        catalogue
    }

    /// Writes the sets `0..count` into the library, each with one chart and those tags.
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

    /// The command on this catalogue and all of its nodes.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = indexer_command(self.database.url(), arguments);
        command.env("MEILISEARCH_URL", self.node_urls()).env_remove("MEILISEARCH_API_KEY");
        command
    }

    /// Its nodes, as `MEILISEARCH_URL` takes them.
    pub(crate) fn node_urls(&self) -> String {
        self.nodes.iter().map(PrivateMeilisearch::url).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn try_run(&self, arguments: &[&str]) -> IndexerRun {
        run(&mut self.command(arguments))
    }

    /// Runs a command that must succeed and gives its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let run = self.try_run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {}{}", run.stdout, run.stderr);
        run.stdout
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        Running(command.stdout(Stdio::null()).spawn().unwrap())
    }

    /// The ids of all sets that were ever stored.
    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = self.database.psql("SELECT id FROM chartsets ORDER BY id");
        ids.lines().map(str::to_owned).collect()
    }

    /// Fails unless every node holds what PostgreSQL shows, and nothing else.
    pub(crate) fn assert_equal(&self) {
        let compared = self.run(&["verify", "--search"]);
        assert_eq!(compared.matches(" compared, 0 differences").count(), self.nodes.len(), "{compared}");
    }

    /// Waits until it is so.
    pub(crate) fn assert_becomes_equal(&self) {
        let start = Instant::now();
        while self.try_run(&["verify", "--search"]).code != Some(0) {
            assert!(start.elapsed() < PATIENCE, "the index never becomes equal");
        }
    }
}

/// A node that clears little memory for each task: by default it is a twentieth of what may be used for indexing, two
/// thirds of the machine's, which takes seconds.
pub(crate) fn start_node(arguments: &[&str]) -> PrivateMeilisearch {
    PrivateMeilisearch::start_with(&[&["--max-indexing-memory", "256MiB"], arguments].concat())
}

pub(crate) fn run(command: &mut Command) -> IndexerRun {
    IndexerRun::run(command)
}

/// A program that runs beside the test. Killed with the value.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let status = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status();
        assert!(status.unwrap().success());
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
