//! The expressions of rules, alerts, the runbook and the panels over a loaded instance: each returns data.
//!
//! An alert returns data if its comparisons have something to compare. For that each comparison becomes one
//! with `bool`, which returns 0 instead of nothing, `absent(x)` becomes `x`, and `unless` becomes `and`.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chart_index_system_tests::{PrivatePrometheus, Process, code_blocks, inline_code, on_one_line, read};
use chart_index_tests::{
    ChartSpec, Client, IndexerRun, Library, PrivateMeilisearch, PrivatePostgres, Service, TestDatabase,
    TestRedis, fixed_address, indexer, indexer_command,
};
use tempfile::TempDir;

use super::expressions::metrics;
use super::panel_data::assert_panels_have_data;
use super::promtool_with_input;
use super::rules::OF_OTHERS;

/// Rules that may return no data, by alert or series, with the reason.
const WITHOUT_DATA: &[(&str, &str)] = &[("ChartIndexProxyDown", "there is no HAProxy here")];

/// What only exists with Meilisearch nodes: the beginnings of the names of metrics.
const OF_MEILISEARCH: &[&str] = &["chart_index_search_node_", "chart_index_sync_", "slo:search_lag"];

/// The chart whose ROX file is lost, and the one whose ROX file cannot be read.
const LOST: u32 = 1;
const UNREADABLE: u32 = 2;

/// Maximum time until every expression returns data.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Pause between two rounds of requests.
const PAUSE: Duration = Duration::from_millis(500);

/// An instance with its servers, and a Prometheus that scrapes it.
pub(crate) struct Loaded {
    postgres: PrivatePostgres,
    service: Service,
    client: Client,
    pub(crate) prometheus: PrivatePrometheus,
    pub(crate) has_search: bool,
    /// `chart-indexer follow`, and a mirror.
    _indexers: [Process; 2],
    _servers: (TestDatabase, TestRedis, Option<PrivateMeilisearch>),
    _objects: TempDir,
}

impl Loaded {
    /// Starts everything, with a Meilisearch node if the program is on the PATH.
    async fn start() -> Self {
        let meilisearch = PrivateMeilisearch::program()
            .map(|_| PrivateMeilisearch::start_with(&["--max-indexing-memory", "1GiB"]));
        let has_search = meilisearch.is_some();
        let (postgres, redis) = (PrivatePostgres::start(), TestRedis::create());
        let library = Library::new();
        for number in 0..3 {
            library.osu(&format!("alpha/{} set/a.osu", number + 1), ChartSpec::numbered(number));
        }
        let objects = tempfile::tempdir().expect("a folder");
        let object_store = format!("file://{}", objects.path().display());
        indexer(postgres.url(), &["migrate"]).succeeded();
        let mut ingest = indexer_command(postgres.url(), &["ingest", &library.argument()]);
        IndexerRun::run(ingest.env("OBJECT_STORE_URL", &object_store)).succeeded();
        damage_objects(&postgres, objects.path());
        let node = meilisearch.as_ref().map(PrivateMeilisearch::url);
        // It is no standby, so it is not used as one.
        let mut variables = vec![
            ("REDIS_URL", redis.url()),
            ("DATABASE_READ_URL", postgres.url()),
            ("OBJECT_STORE_URL", &object_store),
        ];
        variables.extend(node.as_deref().map(|node| ("MEILISEARCH_URL", node)));
        let service = Service::with_variables(postgres.url(), &variables);
        let mut targets = vec![("chart-index", service.private_address())];
        let mut follow = indexer_command(postgres.url(), &["follow"]);
        follow.envs(node.map(|node| ("MEILISEARCH_URL", node)));
        // Of a CDN that refuses to purge what has changed.
        follow.env("PURGE_URL", format!("http://{}/purge", service.address()));
        let copy = TestDatabase::create_on(postgres.url());
        indexer(copy.url(), &["migrate"]).succeeded();
        // The mirror does not request their files.
        for chart in [LOST, UNREADABLE].map(|number| ChartSpec::numbered(number).note_hash()) {
            indexer(copy.url(), &["remove", "chart", &chart, "--erase"]).succeeded();
        }
        let mirror = indexer_command(copy.url(), &["mirror", &format!("http://{}", service.address())]);
        let indexers = [follow, mirror].map(|mut command| start(&mut command, &mut targets));
        let prometheus = PrivatePrometheus::start(&targets).await;
        let client = service.client();
        let servers = (copy, redis, meilisearch);
        Self {
            postgres,
            service,
            client,
            prometheus,
            has_search,
            _indexers: indexers,
            _servers: servers,
            _objects: objects,
        }
    }

    /// Requests every route, and some that fail.
    pub(crate) async fn request(&self) {
        let id = text(&self.client, "/api/chartsets?perPage=1", "/items/0/id").await;
        let Some(id) = id else { return };
        let detail = format!("/api/chartsets/{id}");
        let Some(hash) = text(&self.client, &detail, "/charts/0/chart/hash").await else { return };
        let unknown = format!("{:064x}", fastrand::u64(..));
        for path in [
            format!("/api/charts/{hash}"),
            format!("/api/charts/{unknown}"),
            format!("/api/charts/{hash}/rox"),
            format!("/api/charts/{hash}/preview"),
            format!("/api/charts/{}/rox", ChartSpec::numbered(LOST).note_hash()),
            format!("/api/charts/{}/rox", ChartSpec::numbered(UNREADABLE).note_hash()),
            format!("/api/chartsets?q={}", &unknown[60..]),
            format!("/go/chartset/{id}"),
            "/".to_owned(),
            "/nowhere".to_owned(),
        ] {
            self.client.get(&path).await;
        }
    }

    /// Requests what is not cached while PostgreSQL does not respond: each is 503.
    pub(crate) async fn fail(&self) {
        self.postgres.freeze();
        for path in ["/api/chartsets/0000000000000000", "/go/chartset/0000000000000000"] {
            assert_eq!(self.client.get(path).await.status, 503, "{path}");
        }
        self.postgres.thaw();
    }
}

/// Deletes one object, and makes another one unreadable.
fn damage_objects(postgres: &PrivatePostgres, folder: &Path) {
    for chart in [LOST, UNREADABLE] {
        let hash = ChartSpec::numbered(chart).note_hash();
        let name = format!("SELECT encode(object, 'hex') FROM rox_files WHERE hash = '\\x{hash}'");
        let name = TestDatabase::psql_on(postgres.url(), &name);
        let object = folder.join(&name[..2]).join(&name);
        fs::remove_file(&object).expect("there is an object");
        if chart == UNREADABLE {
            symlink(&object, &object).expect("a link to itself");
        }
    }
}

/// Starts a command of `chart-indexer` that runs permanently, and adds it to the targets.
fn start(command: &mut Command, targets: &mut Vec<(&str, SocketAddr)>) -> Process {
    let address = fixed_address();
    targets.push(("chart-indexer", address));
    Process::start(command.env("METRICS_LISTEN", address.to_string()).stdout(Stdio::null()))
}

/// A string of a JSON response. `None` if it is not there: an index may be empty at first.
async fn text(client: &Client, path: &str, pointer: &str) -> Option<String> {
    let response = client.get(path).await;
    if response.status != 200 {
        return None;
    }
    response.json().pointer(pointer).map(|value| value.as_str().expect("a string").to_owned())
}

#[tokio::test]
async fn expressions_and_panels_have_data() {
    let loaded = Loaded::start().await;
    assert_expressions_return_data(&loaded).await;
    assert_panels_have_data(&loaded).await;
    check_metrics(&loaded.service).await;
}

/// Sends requests until each expression has returned data.
async fn assert_expressions_return_data(loaded: &Loaded) {
    let mut missing = expressions(&loaded.prometheus).await;
    if !loaded.has_search {
        missing.retain(|(_, expression)| {
            !metrics(expression).iter().any(|name| OF_MEILISEARCH.iter().any(|start| name.starts_with(start)))
        });
    }
    assert!(missing.len() > 50, "{missing:?}");
    for (name, _) in WITHOUT_DATA {
        assert!(missing.iter().any(|(rule, _)| rule == name), "no such rule: {name}");
    }
    let start = Instant::now();
    loaded.request().await;
    loaded.fail().await;
    loop {
        loaded.request().await;
        let mut still_missing = Vec::new();
        for (name, expression) in missing {
            let result = loaded.prometheus.query(&as_data(&expression)).await;
            if result.as_array().is_none_or(Vec::is_empty) {
                still_missing.push((name, expression));
            }
        }
        missing = still_missing;
        let unexpected: Vec<_> = missing.iter().filter(|(name, _)| reason(name).is_none()).collect();
        if unexpected.is_empty() {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "no data: {unexpected:#?}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// `promtool check metrics` finds nothing in the metrics of the instance.
async fn check_metrics(service: &Service) {
    let metrics = service.private_client().get("/metrics").await;
    assert_eq!(metrics.status, 200);
    let found = promtool_with_input(&["check", "metrics"], &metrics.body);
    assert_eq!(found, "", "{found}");
}

/// Why an expression may have no data.
fn reason(name: &str) -> Option<&'static str> {
    WITHOUT_DATA.iter().find(|(rule, _)| *rule == name).map(|(_, reason)| *reason)
}

/// The expressions of all rules, and those of the runbook, each with a name. Without those that read the
/// metrics of programs that do not run here.
async fn expressions(prometheus: &PrivatePrometheus) -> Vec<(String, String)> {
    let rules = prometheus.rules().await.into_iter();
    let mut expressions: Vec<_> = rules.map(|rule| (rule.name, rule.expression)).collect();
    let runbook = runbook_queries();
    assert!(runbook.len() > 15, "{runbook:#?}");
    expressions.extend(runbook.into_iter().map(|query| ("docs/runbook.md".to_owned(), query)));
    let runs_here = |name: &String| {
        name == "up"
            || name.starts_with("prometheus_")
            || !OF_OTHERS.iter().any(|beginning| name.starts_with(beginning))
    };
    expressions.retain(|(_, expression)| metrics(expression).iter().all(runs_here));
    expressions
}

/// The queries of the runbook: in blocks of `promql`, separated by empty lines, and between backticks.
pub(crate) fn runbook_queries() -> BTreeSet<String> {
    let page = read("docs/runbook.md");
    let in_blocks = code_blocks(&page, "promql").into_iter().flat_map(|block| block.split("\n\n"));
    let inline = inline_code(&page).into_iter().filter(|code| is_query(code));
    in_blocks.map(on_one_line).chain(inline).collect()
}

/// Whether code between backticks is a query: a series of the metrics page or of the rules, or a function of
/// one.
fn is_query(code: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "chart_index_",
        "db_client_",
        "http_server_",
        "process_",
        "tokio_runtime_",
        "slo:",
        "up{",
        "sum ",
        "count ",
        "max ",
        "rate(",
        "histogram_quantile(",
        "topk(",
    ];
    BEGINNINGS.iter().any(|beginning| code.starts_with(beginning))
        && !["chart_index_reason", "chart_index_signal"].contains(&code)
}

/// The expression in a form that returns data if there is something to compare.
fn as_data(expression: &str) -> String {
    let mut data = expression.replace("absent(", "(").replace(" unless ", " and ");
    for comparison in [" > ", " < ", " >= ", " <= ", " == ", " != "] {
        data = data.replace(comparison, &format!("{comparison}bool "));
    }
    data.replace(" bool bool ", " bool ")
}
