//! Varnish in front of HAProxy, as docs/operations/cdn.md sets it up: removals, Varnish killed, all replicas
//! killed, and purges that do not arrive.

use std::time::Duration;

use chart_index_system_tests::{ComposeProject, varnish};
use chart_index_tests::{Client, within};
use reqwest::Method;

use super::report::Drill;
use super::site::{self, REPLICAS, SERVICES, Site, TIMEOUT};

/// A removal is in force at the edge within this time.
const REMOVAL: Duration = Duration::from_secs(5);
/// After purges have failed they are repeated within this time: the timeout of a request, and a pause.
const REPEATED: Duration = Duration::from_secs(12);

/// The subnet of `published`, from which HAProxy has the addresses of clients and Varnish purges.
const SUBNET: &str = "172.30.65.0/28";

/// What docker-compose.yml does not have: Varnish, and a `follow` that needs no Meilisearch.
const OVERRIDE: &str = "
services:
  varnish:
    image: varnish:7
    command: [varnishd, -F, -j, none, -s, 'malloc,64m', -a, ':80', -f, /etc/varnish/cdn.vcl, -n, /tmp/varnish]
    volumes: ['./cdn.vcl:/etc/varnish/cdn.vcl:ro']
    networks: {published: {ipv4_address: 172.30.65.10}}
    depends_on: {haproxy: {condition: service_healthy}}
    healthcheck: {test: [CMD, varnishadm, -n, /tmp/varnish, ping], interval: 1s, timeout: 5s, retries: 30}
  follow:
    image: chart-index:0.1.0
    entrypoint: [/usr/local/bin/chart-indexer]
    command: [follow]
    env_file: [compose/indexer.env, compose/local.env]
    environment: {METRICS_LISTEN: '0.0.0.0:9091'}
    secrets: [database_url]
    networks: [data, published]
    depends_on: {migrate: {condition: service_completed_successfully}}
    healthcheck:
      test: [CMD, /usr/local/bin/chart-index, healthcheck, livez, '--admin-listen=127.0.0.1:9091']
      interval: 1s
      timeout: 5s
      retries: 30
networks:
  published: {ipam: {config: [{subnet: 172.30.65.0/28}]}}
";

#[test]
#[ignore = "needs root: make test-system"]
fn edge_serves_during_outages() {
    run(async |site| outages(&site, 60, Duration::from_secs(5)).await);
}

#[test]
#[ignore = "takes minutes: make test-full"]
fn long_edge_serves_during_outages() {
    run(async |site| outages(&site, 300, Duration::from_mins(1)).await);
}

fn run(drill: impl AsyncFnOnce(Site) + Send) {
    let services = [&SERVICES[..], &["varnish", "follow"]].concat();
    let start = async |project: &ComposeProject| {
        project.make_varnish_image();
        let write =
            |name, content: &str| std::fs::write(project.folder().join(name), content).expect("a file");
        write("docker-compose.override.yml", OVERRIDE);
        write("cdn.vcl", &varnish::configuration("haproxy", 8080, "\"172.30.65.0\"/28"));
        write(".env", &format!("FRONT_PROXIES={SUBNET}\n"));
        write("compose/local.env", "CDN_MAX_AGE_SECONDS=2592000\nPURGE_URL=http://varnish/purge\n");
        project.up().await;
    };
    site::run_started(&services, start, drill);
}

/// Each outage lasts for this time.
async fn outages(site: &Site, rate: u32, outage: Duration) {
    let address = site.project.address("varnish", 80);
    let edge = Client::with_local_address(address, ComposeProject::client_address(30_000));
    let mut paths = site.paths();
    paths.extend(["/", "/about", "/feed.atom"].map(str::to_owned));
    wait_for_purge_position(site).await;
    warm_up(&edge, &paths).await;

    let mut drill = Drill::start(Site::load_on(address, paths.clone(), rate).start());
    drill.wait_for_requests(u64::from(rate) * 2).await;
    drill.begin_phase("removed");
    cache_removable(site, &edge).await;
    let took = remove(site, &edge, REMOVAL).await;
    println!("a removal is in force at the edge {took:.1?} after the command has ended");
    drill.record_recovery();

    drill.begin_phase("Varnish killed");
    site.project.kill("varnish");
    drill.wait_for_requests(u64::from(rate)).await;
    site.project.start("varnish").await;
    drill.begin_phase("Varnish empty");
    warm_up(&edge, &paths).await;
    drill.record_recovery();

    drill.begin_phase("replicas killed");
    for replica in REPLICAS {
        site.project.kill(replica);
    }
    tokio::time::sleep(outage.min(Duration::from_secs(20))).await;
    drill.begin_phase("replicas restarted");
    for replica in REPLICAS {
        site.project.start(replica).await;
    }
    site.wait_for_all_replicas().await;
    drill.record_recovery();

    cache_removable(site, &edge).await;
    drill.begin_phase("purges lost");
    site.project.partition(["follow", "varnish"]);
    site.project.run_once("ingest", &["remove", "chart", &site.removable]);
    tokio::time::sleep(outage).await;
    let path = format!("/api/charts/{}/rox", site.removable);
    assert_eq!(edge.get(&path).await.status, 200, "nothing has purged it");
    drill.begin_phase("purges arrive");
    site.project.heal(["follow", "varnish"]);
    let took = wait_for_removal(site, &edge, REPEATED).await;
    println!("a removal is in force at the edge {took:.1?} after purges arrive again");
    drill.record_recovery();
    let report = drill.finish("CDN");
    let of_varnish = report.failed("Varnish killed");
    assert_eq!(report.failed(""), of_varnish, "the edge serves what it has");
}

/// Waits until `follow` purges what changes from then on.
async fn wait_for_purge_position(site: &Site) {
    let count = ["--username=postgres", "--dbname=chart_index", "-tAc", "SELECT count(*) FROM cdn_purges"];
    let psql = [&["psql"][..], &count].concat();
    within(TIMEOUT, async || (site.project.exec("postgres", &psql) == "1").then_some(())).await;
}

/// Requests every path, so that the edge has the responses.
async fn warm_up(edge: &Client, paths: &[String]) {
    for path in paths {
        let respond = async || edge.try_request(Method::GET, path, &[]).await.ok();
        let (response, _) = within(TIMEOUT, respond).await;
        assert_eq!(response.status, 200, "{path}");
    }
}

/// Restores the chart that the load does not request, and waits until the edge has it.
async fn cache_removable(site: &Site, edge: &Client) {
    site.project.run_once("ingest", &["restore", "chart", &site.removable]);
    let path = format!("/api/charts/{}", site.removable);
    let known = async || (edge.get(&path).await.json()["status"] == "known").then_some(());
    within(TIMEOUT, known).await;
    assert_eq!(edge.get(&format!("{path}/rox")).await.status, 200);
}

/// Removes the chart. Returns how long it takes until the edge does not have it.
async fn remove(site: &Site, edge: &Client, timeout: Duration) -> Duration {
    site.project.run_once("ingest", &["remove", "chart", &site.removable]);
    wait_for_removal(site, edge, timeout).await
}

async fn wait_for_removal(site: &Site, edge: &Client, timeout: Duration) -> Duration {
    let path = format!("/api/charts/{}", site.removable);
    let is_removed = async || {
        let lookup = edge.get(&path).await.json();
        let rox = edge.get(&format!("{path}/rox")).await.status;
        (lookup["status"] == "unknown" && rox == 404).then_some(())
    };
    within(timeout, is_removed).await.1
}
