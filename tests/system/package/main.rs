//! The Debian package, installed as docs/operations/install.md says on a machine with systemd.
#![expect(clippy::expect_used, reason = "a test ends where its set-up fails")]

mod machine;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use chart_index_system_tests::{code_blocks, read, run, strip_programs};
use chart_index_tests::{PrivateMeilisearch, program, samples, within, workspace_root};
use serde_json::Value;

use crate::machine::Machine;

const SERVICES: [&str; 4] =
    ["chart-index", "chart-index-dump", "chart-indexer-follow", "chart-indexer-ingest"];

/// Until a service that was started or restarted responds.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `PACKAGE` is the package of a release; by default one is made of the programs of this build.
/// `EARLIER_PROGRAMS` is a folder with those of an earlier version.
#[tokio::test]
#[ignore = "needs root and Debian: make test-system"]
async fn package_is_installed_upgraded_and_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let programs = folder.path().join("programs");
    strip_programs(&programs);
    let earlier = std::env::var_os("EARLIER_PROGRAMS").map_or_else(|| programs.clone(), PathBuf::from);
    let machine = Machine::start().await;
    machine.copy(&samples(), "/srv/charts");
    machine.copy(&package(&earlier, "0.9.0", folder.path()), "/root/");

    let start = Instant::now();
    install(&machine);
    let total = wait_for_charts(&machine).await;
    eprintln!(
        "the index serves {total} chartsets {:.1?} after the begin of the installation",
        start.elapsed()
    );
    check_services(&machine).await;
    match PrivateMeilisearch::program() {
        Some(meilisearch) => search(&machine, &meilisearch, total).await,
        None => eprintln!("SKIPPED: Meilisearch beside the package (there is none on the PATH)"),
    }
    let made = || package(&programs, env!("CARGO_PKG_VERSION"), folder.path());
    upgrade(&machine, &std::env::var_os("PACKAGE").map_or_else(made, PathBuf::from), total).await;
    remove(&machine);
}

/// Makes the Debian package of programs.
fn package(programs: &Path, version: &str, folder: &Path) -> PathBuf {
    let folder = folder.join(version);
    let manuals = program("chart-index");
    let manuals = manuals.parent().expect("a folder");
    let mut script = Command::new(workspace_root().join("scripts/dist"));
    run(script.arg("debian").arg(programs).arg(version).arg(manuals).env("DIST", &folder));
    let mut files = std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").path());
    files.next().expect("a package")
}

/// The commands of the section "Debian package": those that install and configure, and those for Meilisearch.
fn commands() -> (Vec<String>, Vec<String>) {
    let page = read("docs/operations/install.md");
    let (_, section) = page.split_once("\n## Debian package\n").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let blocks = code_blocks(section, "sh").into_iter();
    blocks.map(str::to_owned).partition(|block| !block.contains("MEILISEARCH_URL"))
}

/// Runs the commands that install and configure.
fn install(machine: &Machine) {
    let (blocks, _) = commands();
    let (first, others) = blocks.split_first().expect("a block");
    machine.run(first);
    check_that_nothing_runs(machine);
    for block in others {
        machine.run(block);
    }
}

/// Without a configuration. A service that is started nevertheless says what is missing, and is not started
/// again.
fn check_that_nothing_runs(machine: &Machine) {
    let units = "'chart-index*'";
    assert_eq!(machine.run(&format!("systemctl list-units --plain --no-legend {units}")), "");
    let enabled =
        machine.run(&format!("systemctl list-unit-files --no-legend --state=enabled {units} || true"));
    assert_eq!(enabled, "");
    machine.output("systemctl start chart-index");
    let state = "systemctl show --value --property=NRestarts --property=ExecMainStatus chart-index";
    machine.run("while systemctl is-active --quiet chart-index; do :; done");
    assert_eq!(machine.run(state), "0\n2\n");
    assert!(machine.run("journalctl --unit chart-index").contains("--database-url"));
}

/// The number of chartsets that the index serves, once it does.
async fn wait_for_charts(machine: &Machine) -> u64 {
    let total = async || {
        let list = machine.output("curl --fail --silent http://127.0.0.1:8080/api/chartsets").stdout;
        serde_json::from_slice::<Value>(&list).ok()?["total"].as_u64().filter(|total| *total > 0)
    };
    within(TIMEOUT, total).await.0
}

/// The services are confined, write dumps, and log as they are told.
async fn check_services(machine: &Machine) {
    for service in SERVICES {
        machine.run(&format!("systemd-analyze security --threshold=20 {service}"));
    }
    machine.run("systemctl start chart-index-dump");
    machine.run("pg_restore --list /var/lib/chart-index/dumps/*.dump");
    machine.run(
        "ls /usr/share/man/man1/chart-index-serve.1* /usr/share/bash-completion/completions/chart-index.bash",
    );
    machine.run("curl --fail --silent http://127.0.0.1:9091/readyz");
    let log = "journalctl --output cat --unit chart-index _PID=";
    for format in ["text", "json"] {
        machine.run(&format!(
            "echo LOG_FORMAT={format} >>/etc/chart-index/common.env; systemctl restart chart-index"
        ));
        wait_for_charts(machine).await;
        let process = machine.run("systemctl show --value --property=MainPID chart-index");
        let log = machine.run(&format!("{log}{process}"));
        let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object());
        assert!(!log.is_empty() && log.lines().all(|line| is_json(line) == (format == "json")), "{log}");
    }
}

/// Meilisearch answers lists once its URL is set.
async fn search(machine: &Machine, meilisearch: &Path, total: u64) {
    machine.copy(meilisearch, "/usr/local/bin/meilisearch");
    machine.run(
        "systemd-run --unit=meilisearch --property=StateDirectory=meilisearch \
         --property=WorkingDirectory=/var/lib/meilisearch \
         /usr/local/bin/meilisearch --no-analytics --max-indexing-memory=1GiB",
    );
    let (_, blocks) = commands();
    for block in blocks {
        machine.run(&block);
    }
    let list = "curl --silent --dump-header - --output /dev/null http://127.0.0.1:8080/api/chartsets";
    let is_searched = async || {
        let headers = machine.output(list).stdout;
        String::from_utf8_lossy(&headers).contains("search-engine: meilisearch").then_some(())
    };
    within(Duration::from_mins(1), is_searched).await;
    assert_eq!(wait_for_charts(machine).await, total);
}

/// Configuration and data are as before, and the new programs run.
async fn upgrade(machine: &Machine, package: &Path, total: u64) {
    machine.copy(package, "/root/");
    let read = "cat /etc/chart-index/*.env; ls /var/lib/chart-index/dumps";
    let before = machine.run(read);
    let name = package.file_name().expect("a name").to_str().expect("UTF-8");
    machine.run(&format!("apt-get install --yes ./{name}"));
    assert_eq!(machine.run(read), before);
    let version = format!("chart-index {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        machine.run("/proc/$(systemctl show --value --property=MainPID chart-index)/exe --version"),
        version
    );
    assert_eq!(wait_for_charts(machine).await, total);
    machine.run("systemctl is-active chart-indexer-follow");
}

/// `remove` leaves configuration, dumps and database; `purge` leaves the database.
fn remove(machine: &Machine) {
    machine.run("apt-get remove --yes chart-index");
    assert!(!machine.path("/usr/bin/chart-index").exists());
    assert_eq!(machine.run("cat /proc/[0-9]*/comm | grep -c ^chart-index || true"), "0\n");
    let kept = ["/etc/chart-index/common.env", "/var/lib/chart-index/dumps"].map(|path| machine.path(path));
    assert!(kept.iter().all(|path| path.exists()));
    machine.run("apt-get purge --yes chart-index");
    let purged = ["/etc/chart-index", "/var/lib/chart-index"].map(|path| machine.path(path));
    assert!(purged.iter().all(|path| !path.exists()));
    let charts =
        machine.run("runuser -u postgres -- psql -tAc 'SELECT count(*) > 0 FROM charts' chart_index");
    assert_eq!(charts, "t\n");
}
