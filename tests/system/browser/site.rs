//! The servers of the browser tests, with samples, hostile chartsets, enough chartsets for several pages and a
//! long chart.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use chart_index_tests::{
    ChartSpec, IndexerRun, Library, PrivateMeilisearch, PrivatePostgres, Service, TestDatabase, TestRedis,
    indexer_command, samples,
};
use serde_json::json;

use crate::control::Servers;
use crate::hostile_sets;

/// Chartsets for several pages.
const SETS: u32 = 100;

const LONG_CHART_NOTES: u32 = 54_000;

pub(crate) struct Site {
    // Before the servers, so that it is stopped first.
    service: Service,
    limited_pages: Service,
    limited_lookups: Service,
    servers: Arc<Servers>,
    _database: TestDatabase,
    library: Library,
    long_chart: ChartSpec,
}

impl Site {
    pub(crate) fn start() -> Self {
        let engine = PrivateMeilisearch::program()
            .is_some()
            .then(|| PrivateMeilisearch::start_with(&["--max-indexing-memory", "256MiB"]));
        let servers = Servers { database: PrivatePostgres::start_without_durability(), engine };
        let database = TestDatabase::create_on(servers.database.url());
        let library = Library::new();
        let long_chart = write_sets(&library);
        let samples = samples();
        let run = |arguments: &[&str]| {
            let mut command = indexer_command(database.url(), arguments);
            if let Some(engine) = &servers.engine {
                command.env("MEILISEARCH_URL", engine.url());
            }
            IndexerRun::run(&mut command).succeeded();
        };
        run(&["migrate"]);
        let limited_pages = serve(&database, &servers, &[("RATE_LIMIT_PAGE", "3")]);
        use_up_the_limit(&limited_pages);
        run(&["ingest", &library.argument()]);
        run(&["ingest", samples.to_str().unwrap()]);
        // Fewer than 100 of these charts have a rating.
        database.psql(
            "INSERT INTO chart_percentiles SELECT 0, 'rating', array_agg(percent * 6.0::float8), 1
             FROM generate_series(1, 99) AS percent ON CONFLICT DO NOTHING",
        );
        if servers.engine.is_some() {
            run(&["sync"]);
        }
        let service = serve(&database, &servers, &[]);
        let limited_lookups = serve(&database, &servers, &[("RATE_LIMIT_BULK", "2")]);
        let servers = Arc::new(servers);
        Self { service, limited_pages, limited_lookups, servers, _database: database, library, long_chart }
    }

    pub(crate) const fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// What the test files need to know, as JSON.
    pub(crate) fn description(&self, control: SocketAddr) -> String {
        json!({
            "base": format!("http://{}", self.service.address()),
            "limitedPages": format!("http://{}", self.limited_pages.address()),
            "limitedLookups": format!("http://{}", self.limited_lookups.address()),
            "control": { "host": control.ip(), "port": control.port() },
            "hasEngine": self.servers.engine.is_some(),
            "library": self.library.root(),
            "samples": samples(),
            "longChart": self.long_chart.note_hash(),
        })
        .to_string()
    }
}

fn serve(database: &TestDatabase, servers: &Servers, limits: &[(&str, &str)]) -> Service {
    let redis = TestRedis::create();
    let engine = servers.engine.as_ref().map(PrivateMeilisearch::url);
    let mut variables = vec![
        ("REDIS_URL", redis.url()),
        ("RATE_LIMIT_PAGE", "1000000"),
        ("RATE_LIMIT_BULK", "1000000"),
        ("CONTACT", "contact@charts.example"),
    ];
    variables.extend(engine.as_deref().map(|url| ("MEILISEARCH_URL", url)));
    variables.extend(limits);
    Service::with_variables(database.url(), &variables)
}

/// Uses up the limit of pages, so that a test that waits for its end waits for less than a minute.
fn use_up_the_limit(service: &Service) {
    for _ in 0..3 {
        let mut connection = TcpStream::connect(service.address()).unwrap();
        write!(connection, "GET /about HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
}

/// Writes the generated chartsets, and returns the long chart.
fn write_sets(library: &Library) -> ChartSpec {
    for number in 0..SETS {
        let title = format!("Generated {number:03}");
        let bpm = 120.0 + f64::from(number);
        library.osu(
            &format!("alpha/{} generated/a.osu", 6_000_000 + number),
            ChartSpec { title, bpm, creator: "generator".into(), ..ChartSpec::numbered(number) },
        );
    }
    hostile_sets::write(library);
    let note = |number: u32| {
        (i64::from(number / 2) * 20, u8::try_from(number % 2 + number / 2 % 4 / 2 * 2).unwrap(), None)
    };
    let notes = (0..LONG_CHART_NOTES).map(note).collect();
    let title = "Long chart".to_owned();
    library.osu("alpha/8000000 long/a.osu", ChartSpec { title, notes, ..ChartSpec::default() })
}
