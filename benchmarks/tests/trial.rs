//! A run of a few seconds over real servers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The only document in the folder.
fn document(folder: &Path) -> Value {
    let mut entries = std::fs::read_dir(folder).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none(), "one document");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn trial_run_compares_measures_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("uplot");
    std::fs::create_dir_all(package.join("dist")).unwrap();
    for file in ["uPlot.iife.min.js", "uPlot.min.css"] {
        std::fs::write(package.join("dist").join(file), "").unwrap();
    }
    let (results, page) = (folder.path().join("results"), folder.path().join("report.html"));
    let mut run = Command::new(env!("CARGO_BIN_EXE_load"));
    run.args(["run", "--form", "trial", "--output"]).arg(&results).arg("--page").arg(&page);
    run.env("CHART_INDEX_CACHE", folder.path().join("cache")).env("UPLOT", &package);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let document = document(&results);
    let hot = &document["comparisons"][0];
    let names: Vec<&str> =
        hot["targets"].as_array().unwrap().iter().map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nginx", "nginx proxy_cache + axum/sqlx", "service, local window", "service"]);
    let service = &hot["targets"][3];
    assert!(service["requests_per_second"].as_f64().unwrap() > 0.0, "{hot}");
    for role in ["server", "redis"] {
        assert!(service["cpu_us"][role].as_f64().unwrap() > 0.0, "{hot}");
    }
    let abuser = &document["latencies"][0]["targets"][0];
    assert_eq!(abuser["problems"], 0, "{abuser}");
    assert!(abuser["rounds"][0]["hdr_log"].as_str().unwrap().contains("Tag=status-200"), "{abuser}");
    assert!(std::fs::read_to_string(page).unwrap().contains("lookup-hot"));
}
