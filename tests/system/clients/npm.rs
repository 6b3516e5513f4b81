//! The npm package.

mod hashes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use chart_index_system_tests::{code_blocks, read, run};
use chart_index_tests::{samples, workspace_root};
use serde_json::Value;

use crate::program::{finds_the_charts_of_a_folder, serve_samples};

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

/// A program in TypeScript that calls every method compiles in the strictest mode, and its assertions hold.
#[tokio::test]
async fn methods_return_what_their_types_say() {
    let (_database, service) = serve_samples().await;
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
    let (_database, service) = serve_samples().await;
    let base = format!("http://{}", service.address());
    let readme = read("clients/npm/README.md");
    let songs = INSTALLED.join("songs");
    let chart = samples().join("alpha/900101 Paper Lanterns - Harbour Lights/4K Hard (mossgrove).osu");
    fs::copy(&chart, INSTALLED.join("chart.osu")).expect("a file");
    let _ = fs::create_dir(&songs);
    fs::copy(&chart, songs.join("chart.osu")).expect("a file");
    let programs = code_blocks(&readme, "js");
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
    let printed: Vec<String> =
        files.iter().map(|file| run(node().arg(file).args([&base, "songs"]))).collect();
    let expected = [
        "21642f9846d39260 Paper Lanterns Harbour Lights\n7a1825cc4bacc079 Paper Lanterns Harbour Lights\n",
        "known songs/chart.osu https://alpha.example/sets/900101\n",
        "known\n",
    ];
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn example_finds_the_charts_of_a_folder() {
    let mut program = node();
    program.arg("client.mjs");
    finds_the_charts_of_a_folder(program).await;
}
