//! ROX files and previews from the object store, here a folder (docs/operations/objects.md).

use std::fs;
use std::path::PathBuf;

use chart_index_tests::indexer_command;
use tempfile::TempDir;

use super::*;

/// A database, and a service that reads objects from a folder, without Redis.
struct Site {
    database: TestDatabase,
    folder: TempDir,
    service: Service,
    hash: String,
}

impl Site {
    /// All files are objects.
    async fn new(arguments: &[&str]) -> Self {
        let library = Library::new();
        let hash = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        let (database, folder) = (TestDatabase::migrated().await, tempfile::tempdir().expect("a folder"));
        run(&database, &folder, &["ingest", &library.argument()]);
        let service = start(&database, &folder, arguments);
        Self { database, folder, service, hash }
    }

    /// Starts a service, of which nothing is cached.
    fn restart(&mut self) {
        self.service = start(&self.database, &self.folder, &[]);
    }

    fn indexer(&self, arguments: &[&str]) {
        run(&self.database, &self.folder, arguments);
    }

    fn paths(&self) -> [String; 2] {
        ["rox", "preview"].map(|file| format!("/api/charts/{}/{file}", self.hash))
    }

    fn object(&self) -> PathBuf {
        let statement = "SELECT substring(name, 1, 2) || '/' || name FROM (SELECT encode(object, 'hex') AS name FROM rox_files) AS files";
        self.folder.path().join(self.database.psql(statement))
    }
}

fn url(folder: &TempDir) -> String {
    format!("file://{}", folder.path().display())
}

fn run(database: &TestDatabase, folder: &TempDir, arguments: &[&str]) {
    let mut command = indexer_command(database.url(), arguments);
    IndexerRun::run(command.env("OBJECT_STORE_URL", url(folder))).succeeded();
}

fn start(database: &TestDatabase, folder: &TempDir, arguments: &[&str]) -> Service {
    let url = url(folder);
    let variables = [("OBJECT_STORE_URL", &*url)];
    let options = ServiceOptions { arguments, variables: &variables, ..ServiceOptions::default() };
    Service::start_with(database.url(), &options)
}

#[tokio::test]
async fn responses_do_not_depend_on_the_place() {
    let site = Site::new(&[]).await;
    assert_eq!(site.database.psql("SELECT count(*) FROM rox_files WHERE bytes IS NULL"), "1");
    let (in_postgresql, from_objects) = (Service::start(site.database.url()), site.service.client());
    // That of PostgreSQL needs the files there.
    let mut responses = Vec::new();
    for path in site.paths() {
        responses.push(from_objects.get(&path).await);
    }
    site.indexer(&["objects", "migrate", "--to-postgres"]);
    for (path, response) in site.paths().iter().zip(responses) {
        let expected = in_postgresql.client().get(path).await;
        assert_eq!((response.status, &response.body), (expected.status, &expected.body), "{path}");
        for name in ["etag", "cache-control", "content-type", "content-disposition", "content-length"] {
            assert_eq!(response.header(name), expected.header(name), "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn lost_objects_are_not_served() {
    let mut site = Site::new(&[]).await;
    let [rox, preview] = site.paths();
    fs::write(site.object(), "other").expect("the object is written");
    assert_eq!(site.service.client().get(&rox).await.status, 500);
    fs::remove_file(site.object()).expect("the object is deleted");
    site.restart();
    for path in [&rox, &preview] {
        let response = site.service.client().get(path).await;
        assert_eq!((response.status.as_u16(), response.header("cache-control")), (500, "no-store"), "{path}");
    }
    let lookup = site.service.client().get(&format!("/api/charts/{}", site.hash)).await;
    assert_eq!(lookup.json()["status"], "known");
    // Without the setting they are not served either.
    site.service = Service::start(site.database.url());
    assert_eq!(site.service.client().get(&preview).await.status, 500);
}

#[tokio::test]
async fn removed_file_is_gone_and_comes_back() {
    let site = Site::new(&[]).await;
    let [path, _] = site.paths();
    let (client, object) = (site.service.client(), site.object());
    let file = client.get(&path).await;
    site.indexer(&["remove", "chart", &site.hash]);
    assert!(!object.exists());
    let is_gone = async || (client.get(&path).await.status == 404).then_some(());
    within(CHANGE_TIMEOUT, is_gone).await;
    site.indexer(&["restore", "chart", &site.hash]);
    let is_back = async || Some(client.get(&path).await).filter(|response| response.status == 200);
    let (restored, _) = within(CHANGE_TIMEOUT, is_back).await;
    assert_eq!((restored.header("etag"), &restored.body), (file.header("etag"), &file.body));
}

/// `objects gc` deletes the objects of files that were moved back.
#[tokio::test]
async fn moved_files_are_not_redirected_to() {
    let site = Site::new(&["--objects-public-url", "https://files.example/rox/"]).await;
    let [path, _] = site.paths();
    let client = site.service.client();
    assert_eq!(client.get(&path).await.status, 302);
    site.indexer(&["objects", "migrate", "--to-postgres"]);
    within(CHANGE_TIMEOUT, async || (client.get(&path).await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn public_objects_are_redirected_to() {
    let arguments =
        ["--objects-public-url", "https://files.example/rox/", "--cdn-max-age-seconds", "2592000"];
    let site = Site::new(&arguments).await;
    let [path, preview] = site.paths();
    let (client, object) = (site.service.client(), site.object());
    let name = object.strip_prefix(site.folder.path()).expect("in the folder").to_str().expect("UTF-8");
    for _ in 0..2 {
        let response = client.get(&path).await;
        assert_eq!(response.status, 302);
        assert_eq!(response.header("location"), format!("https://files.example/rox/{name}"));
        assert_eq!(response.header("cache-control"), "public, max-age=300");
        assert!(response.header("surrogate-key").contains(&site.hash), "a purge reaches it");
    }
    assert_eq!(client.get(&preview).await.status, 200);
    site.indexer(&["remove", "chart", &site.hash]);
    within(CHANGE_TIMEOUT, async || (client.get(&path).await.status == 404).then_some(())).await;
    site.indexer(&["restore", "chart", &site.hash]);
    // The file is in PostgreSQL now.
    within(CHANGE_TIMEOUT, async || (client.get(&path).await.status == 200).then_some(())).await;
    let unchanged = client.get_with(&path, &[("if-none-match", &format!("\"{}\"", site.hash))]).await;
    assert_eq!(unchanged.status, 304);
    let unknown = client.get(&format!("/api/charts/{}/rox", "0".repeat(64))).await;
    assert_eq!(unknown.status, 404);
}
