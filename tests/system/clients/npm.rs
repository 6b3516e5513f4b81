//! The npm package.

mod hashes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use chart_index_system_tests::run;
use chart_index_tests::{ChartSpec, Library, Service, TestDatabase, indexer, samples, workspace_root};
use serde_json::Value;

use crate::slow_link::SlowLink;

/// The number of charts that the index does not know.
const UNKNOWN: u32 = 700;

/// A folder with the installed package and the programs that use it.
static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    run(script().arg("pack").arg(&folder));
    for name in ["requests.mjs", "methods.mts", "hash.mjs", "tsconfig.json"] {
        fs::copy(programs().join(name), folder.join(name)).expect("a file");
    }
    fs::copy(workspace_root().join("docs/snippets/client.mjs"), folder.join("client.mjs")).expect("a file");
    folder
});

fn script() -> Command {
    Command::new(workspace_root().join("scripts/npm-client"))
}

/// The programs in JavaScript.
fn programs() -> PathBuf {
    workspace_root().join("tests/system/clients/npm")
}

/// Node.js in the folder of the installed package.
fn node() -> Command {
    let mut command = script();
    command.arg("node").current_dir(&*INSTALLED);
    command
}

/// A service over the sample library.
async fn sample_service() -> (TestDatabase, Service) {
    let database = TestDatabase::create().await;
    indexer(database.url(), &["migrate"]).succeeded();
    indexer(database.url(), &["ingest", samples().to_str().expect("UTF-8")]).succeeded();
    indexer(database.url(), &["filter"]).succeeded();
    let service = Service::start(database.url());
    (database, service)
}

fn read(path: impl AsRef<Path>) -> String {
    let path = workspace_root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn package_has_the_version_of_the_workspace() {
    let package: Value = serde_json::from_str(&read("clients/npm/package.json")).expect("JSON");
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    assert!(package.get("dependencies").is_none(), "{package}");
    assert_eq!(read("clients/npm/LICENSE"), read("LICENSE"));
}

/// Limits, failures, conditional requests and batches, in the oldest Node.js and a current one.
#[test]
fn requests_follow_what_servers_say() {
    for version in ["oldest", "node"] {
        let mut tests = script();
        run(tests.args([version, "--test", "requests.mjs"]).current_dir(&*INSTALLED));
    }
}

/// `UPDATE_DOCS=1` writes them.
#[tokio::test]
async fn types_are_those_of_the_openapi_document() {
    let (_database, service) = sample_service().await;
    let folder = tempfile::tempdir().expect("a folder");
    let document = folder.path().join("openapi.json");
    fs::write(&document, service.client().get("/docs/openapi.json").await.body).expect("a file");
    let types = run(script().arg("types").arg(document));
    let file = workspace_root().join("clients/npm/src/openapi.d.ts");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &types).expect("a file");
    }
    assert!(types == read(&file), "clients/npm/src/openapi.d.ts is of another document: UPDATE_DOCS=1");
}

/// A program in TypeScript that calls every method compiles in the strictest mode, and its assertions hold.
#[tokio::test]
async fn methods_return_what_their_types_say() {
    let (_database, service) = sample_service().await;
    // For Node.js, and for a bundler of a browser.
    for options in [&[][..], &["--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom"]]
    {
        run(script().arg("tsc").args(options).current_dir(&*INSTALLED));
    }
    let base = format!("http://{}", service.address());
    run(node().arg("methods.mts").arg(base).arg(samples()));
}

/// The blocks of the README, each a program, also in TypeScript.
#[tokio::test]
async fn programs_of_the_readme_run() {
    let (_database, service) = sample_service().await;
    let base = format!("http://{}", service.address());
    let readme = read("clients/npm/README.md");
    let songs = INSTALLED.join("songs");
    let chart = samples().join("alpha/900101 Paper Lanterns - Harbour Lights/4K Hard (mossgrove).osu");
    fs::copy(&chart, INSTALLED.join("chart.osu")).expect("a file");
    let _ = fs::create_dir(&songs);
    fs::copy(&chart, songs.join("chart.osu")).expect("a file");
    let programs: Vec<&str> =
        readme.split("```js\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(programs[0].lines().count(), 5, "the first result is five lines away");
    let mut compiler = script();
    compiler.args(["tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext"]);
    let mut files = Vec::new();
    for (number, program) in programs.iter().enumerate() {
        let file = INSTALLED.join(format!("readme-{number}.mts"));
        fs::write(&file, program.replace("https://charts.example", &base)).expect("a file");
        files.push(file);
    }
    run(compiler.args(&files).current_dir(&*INSTALLED));
    let printed: Vec<String> = files.iter().map(|file| run(node().arg(file))).collect();
    let expected = [
        "21642f9846d39260 Paper Lanterns Harbour Lights\n7a1825cc4bacc079 Paper Lanterns Harbour Lights\n",
        "known songs/chart.osu https://alpha.example/sets/900101\n",
        "known\n",
    ];
    assert_eq!(printed, expected);
}

/// docs/snippets/client.mjs, at 256 kbit/s, with files that the index does not know.
#[tokio::test]
async fn example_runs_over_a_slow_link() {
    let (_database, service) = sample_service().await;
    let link = SlowLink::start(&service, 256).await;
    let program = read("docs/snippets/client.mjs");
    let statements = program.lines().filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(statements.count() <= 20);
    let songs = Library::new();
    let known = samples().join("beta/71 Kitchen Table Pack/Copper Kettle/kettle.ssc");
    songs.file("known/kettle.ssc", fs::read(known).expect("a file"));
    for number in 0..UNKNOWN {
        songs.osu(&format!("unknown/{number}.osu"), ChartSpec::numbered(number));
    }
    let arguments = ["client.mjs".to_owned(), link.base(), songs.argument()];
    let printed = tokio::task::spawn_blocking(move || run(node().args(arguments))).await.expect("it runs");
    let (known, unknown): (Vec<&str>, _) = printed.lines().partition(|line| line.starts_with("known "));
    let expected = format!("known {}/known/kettle.ssc https://beta.example/packs/71", songs.argument());
    assert!(!known.is_empty() && known.iter().all(|line| line.starts_with(&expected)), "{known:?}");
    let expected = format!("unknown {}/unknown/", songs.argument());
    assert!(unknown.len() == UNKNOWN as usize && unknown.iter().all(|line| line.starts_with(&expected)));
}

/// At 16 kbit/s the service gives up on a batch of 100 charts.
#[tokio::test]
async fn batches_become_smaller_on_a_link_that_is_too_slow() {
    let (_database, service) = sample_service().await;
    let link = SlowLink::start(&service, 16).await;
    let program = r#"
        import { ChartIndex } from "chart-index";
        const sizes = [];
        const counted = (url, request) => {
          sizes.push(JSON.parse(request.body).hashes.length);
          return fetch(url, request);
        };
        const index = new ChartIndex(process.argv[1], { userAgent: "tests/1.0", fetch: counted });
        const hashes = Array.from({ length: 100 }, (_, number) => number.toString(16).padStart(64, "0"));
        const items = await index.lookupMany(hashes);
        console.log(items.every(({ chartHash }, number) => chartHash === hashes[number]), items.length, ...sizes);
    "#;
    let arguments = ["--input-type=module", "--eval", program, &link.base()].map(str::to_owned);
    let printed = tokio::task::spawn_blocking(move || run(node().args(arguments))).await.expect("it runs");
    assert!(printed.starts_with("true 100 100 50 "), "{printed}");
}
