//! Databases that were restored in other ways than on their own server, while everything outside has what an
//! earlier database numbered: exports, Redis, a mirror and a node of Meilisearch. The clock of the earlier
//! server was ahead, so that its numbers are the higher ones.

use std::path::{Path, PathBuf};

use chart_index_tests::{
    IndexerRun, PrivateMeilisearch, Proxy, Service, TestDatabase, TestRedis, indexer, indexer_command, within,
};
use tempfile::TempDir;

use crate::backup::Dump;
use crate::catalogue::{Catalogue, chart};
use crate::restore::with_node;
use crate::{TIMEOUT, wait_until_ready};

/// Sets of each kind.
const SETS: u32 = 4;

/// The number of the set that is removed. No other one has its chart.
const REMOVED: u32 = 2;

/// How an operator fills a new database. The list of removals is applied to each.
#[derive(Debug, Clone, Copy)]
enum Restore {
    Import,
    Ingest,
    Dump,
}

const RESTORES: [Restore; 3] = [Restore::Import, Restore::Ingest, Restore::Dump];

/// What the earlier database has left behind when it is lost: all of it shows what was removed since.
struct Remains {
    catalogue: Catalogue,
    folder: TempDir,
    redis: TestRedis,
    mirror: TestDatabase,
    dump: Dump,
    /// An export from before the removal.
    export: PathBuf,
    /// The removed chartset, and the paths that show it.
    removed: String,
    paths: Vec<String>,
}

impl Remains {
    /// Leaves `before_removal` what it copies of the earlier database.
    async fn create(before_removal: impl FnOnce(&Catalogue)) -> Self {
        let catalogue = Catalogue::with_sets(SETS).await;
        // A day of numbers, which are derived from milliseconds.
        let day = 24 * 60 * 60 * 1_000 * 1_024_u64;
        let ahead = format!(
            "UPDATE change_feed SET origin = 0;
             UPDATE catalogue_changes SET sequence = sequence + base FROM (SELECT
                 ((extract(epoch FROM now()) * 1000)::bigint - 1577836800000) * 1024 + {day} AS base) AS clock;
             UPDATE change_feed SET last_sequence = (SELECT max(sequence) FROM catalogue_changes)"
        );
        let _ = catalogue.database.psql(&ahead);
        let (folder, redis, mirror) =
            (tempfile::tempdir().expect("a folder"), TestRedis::create(), TestDatabase::create().await);
        catalogue.run(&["export", &argument(folder.path()), "--rox"]);
        let export = newest_export(folder.path());
        let (removed, hash) = (id_of(&catalogue.database, REMOVED), chart(REMOVED).note_hash());
        let paths = [
            format!("/chartsets/{removed}"),
            format!("/charts/{hash}"),
            format!("/api/chartsets/{removed}"),
            format!("/api/charts/{hash}"),
            format!("/api/charts/{hash}/rox"),
            format!("/api/charts/{hash}/preview"),
            format!("/go/chartset/{removed}"),
        ];
        let dump = Dump::of(catalogue.database.url());
        let remains = Self { catalogue, folder, redis, mirror, dump, export, removed, paths: paths.to_vec() };
        remains.show_everywhere().await;
        before_removal(&remains.catalogue);
        remains.catalogue.run(&["remove", "chartset", &remains.removed]);
        remains
    }

    /// Lets the mirror and Redis have what is removed later.
    async fn show_everywhere(&self) {
        let mut proxy = Proxy::start(self.catalogue.database.url()).await;
        let (service, in_outage) = (self.start(proxy.url()).await, self.start(proxy.url()).await);
        indexer(self.mirror.url(), &["migrate"]).succeeded();
        self.mirror(&service).succeeded();
        assert_eq!(self.on_the_mirror(), "1");
        let client = service.client();
        for path in &self.paths {
            assert!(client.get(path).await.status.as_u16() < 400, "{path}");
        }
        proxy.cut().await;
        let client = in_outage.client();
        for path in &self.paths {
            // Writes to Redis are in the background.
            let is_in_redis = async || (client.get(path).await.status.as_u16() < 400).then_some(());
            within(TIMEOUT, is_in_redis).await;
        }
    }

    async fn start(&self, database_url: &str) -> Service {
        let folder = argument(self.folder.path());
        let variables = &[("REDIS_URL", self.redis.url()), ("EXPORTS_DIR", &folder)][..];
        let service = Service::with_variables(database_url, variables);
        wait_until_ready(&service).await;
        service
    }

    fn mirror(&self, upstream: &Service) -> IndexerRun {
        let url = format!("http://{}", upstream.address());
        IndexerRun::run(&mut indexer_command(self.mirror.url(), &["mirror", &url, "--once"]))
    }

    /// The number of removed chartsets that the mirror shows.
    fn on_the_mirror(&self) -> String {
        self.mirror.psql(&format!("SELECT count(*) FROM chartsets WHERE id = '{}' AND shown", self.removed))
    }

    /// A new database with what is left, to which the list of removals was applied.
    async fn restore(&self, restore: Restore) -> TestDatabase {
        let list = self.folder.path().join("removals.jsonl");
        let removals = indexer(self.catalogue.database.url(), &["removals", "export"]).succeeded();
        std::fs::write(&list, removals).expect("a file");
        let database = TestDatabase::create().await;
        let run = |arguments: &[&str]| drop(indexer(database.url(), arguments).succeeded());
        if matches!(restore, Restore::Dump) {
            self.dump.restore(database.url(), 1);
        }
        run(&["migrate"]);
        run(&["remove", "--from", &argument(&list)]);
        match restore {
            Restore::Import => run(&["import", &argument(&self.export)]),
            Restore::Ingest => run(&["ingest", &self.catalogue.library.argument()]),
            Restore::Dump => {}
        }
        run(&["verify"]);
        database
    }
}

fn argument(path: &Path) -> String {
    path.to_str().expect("a readable path").to_owned()
}

fn newest_export(folder: &Path) -> PathBuf {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.join("manifest.json").exists()).max().expect("an export")
}

/// The id of the chartset with the chart of this number.
fn id_of(database: &TestDatabase, number: u32) -> String {
    let hash = chart(number).note_hash();
    let query = format!("SELECT chartset_id FROM chartset_charts WHERE chart_hash = decode('{hash}', 'hex')");
    database.psql(&query).lines().next().expect("a chartset").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_is_shown_nowhere_after_any_restore() {
    for restore in RESTORES {
        let remains = Remains::create(|_| ()).await;
        let database = remains.restore(restore).await;
        let mut proxy = Proxy::start(database.url()).await;
        let service = remains.start(proxy.url()).await;
        let client = service.client();

        let name = remains.export.file_name().and_then(|name| name.to_str()).expect("a name");
        for path in ["latest", &format!("{name}/manifest.json"), &format!("{name}/rox.tar")] {
            let response = client.get(&format!("/api/exports/{path}")).await;
            assert!(response.status.as_u16() >= 400, "{restore:?}: {path}: {}", response.status);
        }

        assert_eq!(remains.on_the_mirror(), "1");
        // The address of the upstream is another one (docs/operations/mirrors.md).
        let _ = remains.mirror.psql(&format!("UPDATE mirror SET upstream = 'http://{}'", service.address()));
        remains.mirror(&service).succeeded();
        assert_eq!(remains.on_the_mirror(), "0", "{restore:?}");

        proxy.cut().await;
        for path in &remains.paths {
            let status = client.get(path).await.status.as_u16();
            assert!(status >= 400, "{restore:?}: {path}: {status} from Redis");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn meilisearch_shows_nothing_of_a_lost_database_after_any_restore() {
    for restore in RESTORES {
        let node = PrivateMeilisearch::start_with(&["--max-indexing-memory", "256MiB"]);
        let sync = |lost: &Catalogue| drop(with_node(lost.database.url(), &node, &["sync"]).succeeded());
        let remains = Remains::create(sync).await;
        let database = remains.restore(restore).await;
        let run = with_node(database.url(), &node, &["sync"]);
        // The node has no change that the dump lacks, and continues with the removal.
        let is_continued = matches!(restore, Restore::Dump);
        let is_refused = run.code == Some(1) && run.stderr.contains("is not in the change feed");
        assert_ne!(is_refused, is_continued, "{restore:?}: {}", run.stderr);
        let url = node.url();
        let service = Service::with_variables(database.url(), &[("MEILISEARCH_URL", &*url)]);
        wait_until_ready(&service).await;
        let client = service.client();
        let engine = if is_continued { "meilisearch" } else { "postgres" };
        let has_engine = async || {
            let list = client.get("/api/chartsets?perPage=60").await;
            (list.header("x-search-engine") == engine).then_some(list)
        };
        let (list, _) = within(TIMEOUT, has_engine).await;
        let items = list.json()["items"].as_array().expect("a list").clone();
        assert!(items.len() > 1 && items.iter().all(|item| item["id"] != remains.removed), "{restore:?}");
        if !is_continued {
            with_node(database.url(), &node, &["rebuild"]).succeeded();
        }
        with_node(database.url(), &node, &["verify", "--search"]).succeeded();
    }
}
