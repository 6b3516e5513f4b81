//! Varnish in front of HAProxy, as docs/operations/cdn.md sets it up: removals, Varnish killed, all replicas
//! killed, and purges that do not arrive.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use chart_index_system_tests::{ComposeProject, PrivateVarnish};
use chart_index_tests::{Client, within};
use reqwest::Method;

use super::report::Drill;
use super::site::{self, REPLICAS, SERVICES, Site, TIMEOUT};

/// A removal is in force at the edge within this time.
const REMOVAL: Duration = Duration::from_secs(5);
/// After purges have failed they are repeated within this time: the timeout of a request, and a pause.
const REPEATED: Duration = Duration::from_secs(12);

/// Varnish runs on the host of the engine, whose address this is on the network `published`.
const VARNISH: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(172, 30, 65, 1)), 6081);

/// A `follow` that needs no Meilisearch, on a network of known addresses.
const OVERRIDE: &str = "
services:
  follow:
    image: chart-index:1.0.0-rc.1
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
#[ignore = "takes minutes: make test-full"]
fn long_edge_serves_during_outages() {
    run(async |site| outages(&site, 300, Duration::from_mins(1)).await);
}

fn run(drill: impl AsyncFnOnce(Site) + Send) {
    let services = [&SERVICES[..], &["follow"]].concat();
    let start = async |project: &ComposeProject| {
        let write =
            |name, content: &str| std::fs::write(project.folder().join(name), content).expect("a file");
        write("docker-compose.override.yml", OVERRIDE);
        write(".env", &format!("FRONT_PROXIES={}\n", VARNISH.ip()));
        let purges = format!("PURGE_URL=http://{VARNISH}/purge\n");
        write("compose/local.env", &format!("CDN_MAX_AGE_SECONDS=2592000\n{purges}"));
        project.up().await;
    };
    site::run_started(&services, start, drill);
}

async fn start_varnish(site: &Site) -> PrivateVarnish {
    PrivateVarnish::start(VARNISH, site.address(), "\"172.30.65.0\"/28").await
}

/// Each outage lasts for this time.
async fn outages(site: &Site, rate: u32, outage: Duration) {
    let varnish = start_varnish(site).await;
    let edge = Client::with_local_address(VARNISH, ComposeProject::client_address(30_000));
    let mut paths = site.paths();
    paths.extend(["/", "/about", "/feed.atom"].map(str::to_owned));
    wait_for_purges(site).await;
    warm_up(&edge, &paths).await;

    let mut drill = Drill::start(Site::load_on(VARNISH, paths.clone(), rate).start());
    drill.wait_for_requests(u64::from(rate) * 2).await;
    drill.begin_phase("removed");
    cache_removable(site, &edge).await;
    let took = remove(site, &edge).await;
    println!("a removal is in force at the edge {took:.1?} after the command has ended");
    drill.record_recovery();
    wait_for_purges(site).await;

    drill.begin_phase("Varnish killed");
    // So that requests in flight are those of this phase.
    drill.wait_for_requests(u64::from(rate)).await;
    drop(varnish);
    drill.wait_for_requests(u64::from(rate)).await;
    let _varnish = start_varnish(site).await;
    drill.begin_phase("Varnish empty");
    warm_up(&edge, &paths).await;
    drill.record_recovery();

    drill.begin_phase("replicas killed");
    for replica in REPLICAS {
        site.project.kill(replica);
    }
    // Lists are fresh at the edge for a minute at most.
    tokio::time::sleep(outage.min(Duration::from_secs(20))).await;
    drill.begin_phase("replicas restarted");
    for replica in REPLICAS {
        site.project.start(replica).await;
    }
    site.wait_for_all_replicas().await;
    drill.record_recovery();

    cache_removable(site, &edge).await;
    drill.begin_phase("purges lost");
    site.project.partition_from("follow", VARNISH.ip());
    site.project.run_once("ingest", &["remove", "chart", &site.removable]);
    tokio::time::sleep(outage).await;
    let path = format!("/api/charts/{}/rox", site.removable);
    assert_eq!(edge.get(&path).await.status, 200, "nothing has purged it");
    drill.begin_phase("purges arrive");
    site.project.heal_from("follow", VARNISH.ip());
    let took = wait_for_removal(site, &edge, REPEATED).await;
    println!("a removal is in force at the edge {took:.1?} after purges arrive again");
    drill.record_recovery();
    let report = drill.finish("CDN");
    let of_varnish = report.failed("Varnish killed");
    assert_eq!(report.failed(""), of_varnish, "the edge serves what it has");
}

/// Waits until `follow` has done all purges.
async fn wait_for_purges(site: &Site) {
    let done = "SELECT count(*) FROM cdn_purges \
        WHERE sequence = (SELECT coalesce(max(sequence), 0) FROM catalogue_changes)";
    let psql = ["psql", "--username=postgres", "--dbname=chart_index", "-tAc", done];
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
    let is_known = async || {
        let lookup = edge.get(&path).await.json();
        let rox = edge.get(&format!("{path}/rox")).await.status;
        (lookup["status"] == "known" && rox == 200).then_some(())
    };
    within(TIMEOUT, is_known).await;
}

/// Removes the chart. Returns how long it takes until the edge does not have it.
async fn remove(site: &Site, edge: &Client) -> Duration {
    site.project.run_once("ingest", &["remove", "chart", &site.removable]);
    wait_for_removal(site, edge, REMOVAL).await
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
