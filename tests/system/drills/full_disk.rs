//! The disk of all volumes is full: reads go on, a removal fails, and old dumps make room for it.

use std::time::Duration;

use chart_index_system_tests::{inline_code, read};
use chart_index_tests::within;

use super::site::{self, Site};

/// The folder of the dumps in the container of `backup`.
const DUMPS: &str = "/var/lib/postgresql/data";

#[test]
#[ignore = "needs root and Debian: make test-system"]
fn old_dumps_make_room_for_a_removal() {
    site::run_with(&["backup", "node-exporter"], remove_on_a_full_disk);
}

async fn remove_on_a_full_disk(site: Site) {
    let old_dump = format!("head --bytes 64M /dev/zero >{DUMPS}/chart_index-20200101T000000Z.dump");
    site.project.exec("backup", &["sh", "-c", &old_dump]);
    assert_eq!(metric(&site, "node_textfile_scrape_error "), "0");
    assert_ne!(metric(&site, "chart_index_backup_last_success_seconds{chart_index_backup=\"dump\"} "), "0");
    assert_ne!(free_bytes(&site), "0");

    site.project.fill_disk();
    assert_eq!(free_bytes(&site), "0");
    let remove = format!("docker compose run --rm --no-deps ingest remove chart {}", site.removable);
    let failed = site.project.run_shell(&format!("! {remove} 2>&1"));
    assert!(failed.to_lowercase().contains("no space left on device"), "{failed}");
    let client = site.client(0);
    for path in site.paths() {
        assert_eq!(client.get(&path).await.status, 200, "{path}");
    }
    assert_eq!(site.status_of("replica-1", &site.removable).await, "known");

    site.project.run_shell(&prune());
    site.project.run_shell(&remove);
    within(Duration::from_secs(10), async || {
        (site.status_of("replica-1", &site.removable).await == "unknown").then_some(())
    })
    .await;
    assert_ne!(free_bytes(&site), "0");
    let dumps = site.project.exec("backup", &["sh", "-c", &format!("ls {DUMPS}/*.dump")]);
    assert!(dumps.lines().count() == 1 && !dumps.contains("20200101"), "{dumps}");
}

/// The command of docs/runbook.md that deletes dumps.
fn prune() -> String {
    let page = read("docs/runbook.md");
    inline_code(&page).into_iter().find(|code| code.ends_with("backup.sh prune 1")).expect("the command")
}

/// Free bytes of the volume of PostgreSQL.
fn free_bytes(site: &Site) -> String {
    let metrics = metrics(site);
    let mut samples = metrics.lines().filter(|line| line.starts_with("node_filesystem_avail_bytes{"));
    value(samples.find(|line| line.contains("mountpoint=\"/volumes/postgres\"")))
}

/// The value of the sample with this beginning.
fn metric(site: &Site, beginning: &str) -> String {
    value(metrics(site).lines().find(|line| line.starts_with(beginning)))
}

fn value(sample: Option<&str>) -> String {
    sample.and_then(|sample| sample.rsplit(' ').next()).expect("a sample").to_owned()
}

fn metrics(site: &Site) -> String {
    let url = "http://127.0.0.1:9100/metrics";
    site.project.exec("node-exporter", &["wget", "--quiet", "--output-document=-", url])
}
