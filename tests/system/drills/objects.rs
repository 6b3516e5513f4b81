//! ROX files and previews in an S3 bucket, as docs/operations/objects.md sets it up: the bucket frozen, and a
//! replica killed meanwhile.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use chart_index_system_tests::{ComposeProject, PrivateS3, code_blocks, read};
use chart_index_tests::within;

use super::report::Drill;
use super::site::{self, SERVICES, Site, TIMEOUT};

/// The S3 server runs on the host of the engine. It starts before the networks, on all addresses.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9000);
/// Where services reach it: the address of the host on the network `published`, as if it were outside.
const ENDPOINT: &str = "http://172.30.66.1:9000";
/// The longest that a response takes while the bucket is frozen: `REQUEST_DEADLINE_MS`, and a margin.
const DEADLINE: Duration = Duration::from_secs(7);

const NETWORK: &str = "
networks:
  published: {ipam: {config: [{subnet: 172.30.66.0/26}]}}
";

#[test]
#[ignore = "takes minutes: make test-full"]
fn long_frozen_bucket_fails_no_request_of_a_cached_file() {
    run(async |site, bucket| freeze(&site, bucket, 300, 24_000).await);
}

fn run(drill: impl AsyncFnOnce(Site, &PrivateS3) + Send) {
    let bucket = OnceLock::new();
    let start = async |project: &ComposeProject| {
        bucket.set(PrivateS3::start_on(SERVER).await).expect("it is started once");
        let settings = PrivateS3::variables(ENDPOINT).map(|(name, value)| format!("{name}={value}\n"));
        let page = read("docs/operations/objects.md");
        let way_out = code_blocks(&page, "yaml")[0];
        for (name, content) in [
            ("docker-compose.override.yml", format!("{way_out}{NETWORK}")),
            ("compose/local.env", settings.concat()),
        ] {
            std::fs::write(project.folder().join(name), content).expect("a file");
        }
        project.up().await;
    };
    site::run_started(&SERVICES, start, async |site| drill(site, bucket.get().expect("it is started")).await);
}

/// Freezes the bucket for this many requests, and again after a replica has lost what it had in memory.
async fn freeze(site: &Site, bucket: &PrivateS3, rate: u32, requests: u64) {
    let in_postgres = "SELECT count(*) FROM rox_files WHERE bytes IS NOT NULL";
    let psql = ["psql", "--username=postgres", "--dbname=chart_index", "-tAc", in_postgres];
    assert_eq!(site.project.exec("postgres", &psql), "0", "the files are objects");
    let mut drill = Drill::start(site.load(rate).start());
    drill.wait_for_requests(requests).await;

    drill.begin_phase("S3 frozen");
    bucket.signal("STOP");
    // Nobody has requested this file.
    let rox = format!("/api/charts/{}/rox", site.removable);
    let client = site.client(1);
    let started = Instant::now();
    assert_eq!(client.get(&rox).await.status, 503, "the file is not cached");
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
    assert_eq!(site.status_of("replica-1", &site.removable).await, "known");
    drill.wait_for_requests(requests).await;

    drill.begin_phase("replica-1 killed too");
    site.project.kill("replica-1");
    site.project.start("replica-1").await;
    site.wait_for_all_replicas().await;
    drill.wait_for_requests(requests).await;

    drill.begin_phase("S3 continues");
    bucket.signal("CONT");
    within(TIMEOUT, async || (client.get(&rox).await.status == 200).then_some(())).await;
    drill.record_recovery();
    drill.wait_for_requests(requests).await;
    let report = drill.finish("Objects");
    assert_eq!(report.failed(""), 0, "no request of the load needs the bucket");
}
