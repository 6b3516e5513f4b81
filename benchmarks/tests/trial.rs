//! A run of a few seconds over real servers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The only file in the folder with this extension.
fn read(folder: &Path, extension: &str) -> String {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    let path = paths.next().unwrap();
    assert!(paths.next().is_none(), "one file");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn trial_run_compares_measures_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let mut run = Command::new(env!("CARGO_BIN_EXE_load"));
    run.args(["run", "--form", "trial", "--output"]).arg(&results);
    run.env("CHART_INDEX_CACHE", folder.path().join("cache"));
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let rounds: Value = serde_json::from_str(&read(&results, "json")).unwrap();
    let hot = &rounds["comparisons"][0];
    let names: Vec<&str> =
        hot["targets"].as_array().unwrap().iter().map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nginx", "service, local window", "service"]);
    let service = &hot["targets"][2];
    assert!(service["requests_per_second"].as_f64().unwrap() > 0.0, "{hot}");
    for role in ["server", "redis"] {
        assert!(service["cpu_us"][role].as_f64().unwrap() > 0.0, "{hot}");
    }
    let abuser = &rounds["latencies"][0]["targets"][0];
    assert_eq!(abuser["problems"], 0, "{abuser}");
    assert!(abuser["rounds"][0]["statuses"]["200"].as_u64().unwrap() > 0, "{abuser}");
    assert!(abuser["p99_us"].as_f64().unwrap() > 0.0, "void or not: {abuser}");

    let tables = read(&results, "md");
    for part in ["`load run --form trial", ", commit ", "### lookup-hot", "### abuser", "| service "] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
}
