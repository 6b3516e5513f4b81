//! Ingest of real charts, if they are next to the checkout. The expectations are those of their README.

use super::*;
use chart_index_tests::real_charts;

struct Real {
    database: Database,
    report: Vec<serde_json::Value>,
}

impl Real {
    async fn ingested() -> Self {
        let charts = real_charts();
        let database = Database::new().await;
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.jsonl");
        database.run(&["ingest", charts.to_str().unwrap(), "--report", report.to_str().unwrap()]);
        let report = std::fs::read_to_string(report).unwrap();
        let report = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { database, report }
    }

    fn refused(&self, below: &str) -> Vec<&serde_json::Value> {
        let refused = self.report.iter().filter(|line| line["outcome"] == "refused");
        refused.filter(|line| line["file"].as_str().unwrap().starts_with(below)).collect()
    }

    fn charts_of(&self, path: &str) -> Vec<String> {
        let query = format!(
            "SELECT encode(chart_hash, 'hex') FROM chartset_charts JOIN chartsets ON id = chartset_id \
             WHERE path LIKE '{}%' ORDER BY 1",
            path.replace('\'', "''")
        );
        self.database.0.psql(&query).lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
#[ignore = "needs the real charts: make test-system"]
async fn real_charts_are_ingested_as_documented() {
    let real = Real::ingested().await;

    let pair = real.charts_of("alpha/577617");
    assert_eq!(pair.len(), 1);
    assert_eq!(pair, real.charts_of("alpha/no id - megalovania"), "one chart as .osu and .qua");

    assert_eq!(
        real.charts_of("beta/5 StepMania 5/Goin' Under").len(),
        5,
        "the same charts as .sm and .ssc, once"
    );
    let too_wide = real.refused("beta/5 StepMania 5/Goin' Under");
    assert!(
        !too_wide.is_empty()
            && too_wide.iter().all(|line| line["reason"].as_str().unwrap().contains("key count 8"))
    );

    assert_eq!(real.charts_of("alpha/no id - needs mending").len(), 3);
    assert!(real.refused("alpha/no id - needs mending").is_empty());

    let refused = real.refused("alpha/no id - to be refused");
    assert_eq!(refused.len(), 3);
    assert!(refused.iter().all(|line| !line["reason"].as_str().unwrap().is_empty()));
    assert!(real.charts_of("alpha/no id - to be refused").is_empty());

    assert!(
        real.refused("beta/103 Bhop Ball").iter().all(|line| !line["file"].as_str().unwrap().contains("._"))
    );
    let files: Vec<_> = real
        .refused("")
        .iter()
        .filter(|line| line["chart"].is_null())
        .map(|line| line["file"].clone())
        .collect();
    assert_eq!(files.len(), 3, "no other file is refused: {files:?}");
    assert!(real.database.run(&["verify"]).contains(", 0 findings"));
}
