//! The short form of the growth measurement: every figure is measured.

use std::process::Command;

use chart_index_tests::PrivateMeilisearch;
use serde_json::Value;

#[test]
fn growth_measures_every_figure() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bench-growth"))
        .args(["--short", "--json"])
        .arg(file.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();

    let engines = 1 + usize::from(PrivateMeilisearch::program().is_some());
    let [_, stage] = report["stages"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert_eq!((&stage["chartsets"], &stage["replica"]["charts"]), (&300.into(), &1_000.into()));
    let lookups = stage["lookups"].as_array().unwrap();
    assert_eq!(lookups.len(), 1);
    assert!(lookups.iter().all(|row| is_positive(&row["figures"]["p50_us"])), "{lookups:#?}");
    assert!(lookups.iter().all(|row| is_positive(&row["reference"]["cost"]["service"])), "{lookups:#?}");
    let lists = stage["lists"].as_array().unwrap();
    assert_eq!(lists.len(), 2 * engines);
    assert!(lists.iter().all(|row| is_positive(&row["p50_ms"]) && row["failed"] == 0), "{lists:#?}");

    let classes = report["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 9 + engines);
    // Few lists are sent that are not cached: they may take less than a tick of the CPU time.
    let loaded = || classes.iter().filter(|row| row["per_second"].is_number());
    assert_eq!(loaded().count(), 9);
    assert!(loaded().all(|row| is_positive(&row["cost"]["service"])), "{classes:#?}");
    assert!(is_positive(&report["entries"]["known"]), "{report:#}");
    // A second adds few unknown hashes, of 121 bytes each: less than the allocator may release meanwhile.
    assert!(report["entries"]["unknown"].is_number(), "{report:#}");
    assert!(is_positive(&report["redis"]["entry"]), "{report:#}");
    assert_eq!(report["rate"]["servers"].as_array().unwrap().len(), 4);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("## CPU-seconds per 1,000 requests"), "{text}");
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|value| value > 0.0)
}
