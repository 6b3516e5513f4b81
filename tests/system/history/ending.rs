//! What must hold once all faults have ended: replicas, the edge, mirrors, search nodes and an imported export
//! agree.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use chart_index_tests::Client;
use reqwest::Method;
use serde_json::{Value, json};

use crate::bucket::{Bucket, NAMED_OBJECTS};
use crate::checks::MAX_AGE;
use crate::history::World;
use crate::mirror::{self, content};
use crate::model::{Appearance, SETS};
use crate::system::{EDGE, FOLLOW, MIRROR, MIRROR_DATABASE, REPLICAS, WRITERS, database_url, http_status};

/// Until then the replicas must have noticed that all servers are available again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// The same of the edge: what it received from a replica that did not reach PostgreSQL stays for a minute.
const EDGE_TIMEOUT: Duration = Duration::from_secs(90);
/// Until then the mirror must have all changes.
const MIRROR_TIMEOUT: Duration = Duration::from_mins(3);
/// Until then the search nodes must have all changes.
const SYNC_TIMEOUT: Duration = Duration::from_mins(1);
const COPY: &str = "chart_index_copy";

/// What was found at the end of a history.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    pub(crate) violations: Vec<String>,
    /// The records of an export at the end.
    pub(crate) exported: BTreeMap<String, Value>,
    /// The time that the slowest server needed to agree with the model.
    pub(crate) recovery: Duration,
}

/// Compares everything that should be equal now.
pub(crate) async fn finish(world: &World, replicas: &[SocketAddr], edge: SocketAddr) -> Ending {
    let mut ending = Ending::default();
    let servers = REPLICAS.into_iter().zip(replicas.iter().copied().zip(std::iter::repeat(RECOVERY_TIMEOUT)));
    for (server, (address, timeout)) in servers.chain([(EDGE, (edge, EDGE_TIMEOUT))]) {
        let start = Instant::now();
        loop {
            let Err(difference) = compare_with_model(world, &Client::new(address)).await else { break };
            if start.elapsed() > timeout {
                ending.violations.push(format!("{server} after {timeout:?}: {difference}"));
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        ending.recovery = ending.recovery.max(start.elapsed());
    }
    tokio::task::block_in_place(|| verify(world, &mut ending));
    // Lists in caches as well show the last changes.
    tokio::time::sleep(MAX_AGE).await;
    let folder = world.system().exports();
    let arguments = ["export", folder.to_str().expect("a readable path"), "--rox"];
    let (is_ok, printed) = tokio::task::block_in_place(|| run_indexer(world, &arguments));
    if !is_ok {
        ending.violations.push(format!("export: {printed}"));
        return ending;
    }
    let (export, _) = printed.split_once(": ").expect("the path of the export");
    ending.exported = mirror::chartsets_of_export(Path::new(export));
    let mirrored = tokio::task::block_in_place(|| compare_with_mirror(world, Path::new(export)));
    ending.violations.extend(mirrored.err());
    if let Err(violation) = compare_with_copy(world, replicas[0], export).await {
        ending.violations.push(violation);
    }
    ending
}

/// Compares the details of all sets with the model.
async fn compare_with_model(world: &World, client: &Client) -> Result<(), String> {
    let states = world.model().states();
    let known = |set| states.appearances(states.last(), set);
    for set in 0..SETS {
        let path = format!("/api/chartsets/{}", world.names.id(set));
        let address = format!("10.98.{}.1", world.now().subsec_millis() % 256);
        let headers = [("x-forwarded-for", address.as_str())];
        let response = client.try_request(Method::GET, &path, &headers).await;
        let response = response.map_err(|error| error.to_string())?;
        let appearance: Appearance = match response.status.as_u16() {
            200 => Some(content(&response.json(), set, &world.names)?),
            404 => None,
            code => return Err(format!("{path}: {code}")),
        };
        if !known(set).contains(&appearance) {
            return Err(format!("{path}: {appearance:?}, expected {:?}", known(set)));
        }
    }
    Ok(())
}

/// Runs the checks of `chart-indexer`.
fn verify(world: &World, ending: &mut Ending) {
    let run = |arguments: &[&str]| run_indexer(world, arguments);
    // What lost its number in a fault gets one from the next command that writes.
    let (is_ok, text) = run(&["filter"]);
    if !is_ok {
        ending.violations.push(format!("filter: {text}"));
    }
    ending.violations.extend(collect_objects(world).err());
    let (is_ok, text) = run(&["verify"]);
    if !is_ok || !text.contains(", 0 findings") {
        ending.violations.push(format!("verify: {text}"));
    }
    if world.system().has_meilisearch {
        if world.model().has_resets() {
            let (is_ok, text) = run(&["rebuild"]);
            if !is_ok {
                ending.violations.push(format!("rebuild: {text}"));
            }
            world.system().start_process(FOLLOW);
        }
        ending.violations.extend(wait_for_search_nodes(world).err());
    }
}

/// Collects garbage, and compares the bucket with the rows, if there is one.
fn collect_objects(world: &World) -> Result<(), String> {
    const REMOVED: &str = "SELECT encode(hash, 'hex') FROM charts JOIN rox_files USING (hash)
        WHERE object IS NOT NULL AND (removed_at_ms IS NOT NULL OR (
            SELECT bool_and(chartset.removed_at_ms IS NOT NULL)
            FROM chartset_charts JOIN chartsets AS chartset ON chartset.id = chartset_id WHERE chart_hash = hash))";
    if world.system().bucket.is_none() {
        return Ok(());
    }
    let (is_ok, text) = run_indexer(world, &["objects", "gc", "--grace", "0s"]);
    if !is_ok {
        return Err(format!("objects gc: {text}"));
    }
    let system = world.system();
    let objects = system.bucket.as_ref().map(Bucket::objects).unwrap_or_default();
    let named = system.postgres.psql("chart_index", NAMED_OBJECTS).lines().map(str::to_owned).collect();
    let differences: Vec<_> = objects.symmetric_difference(&named).collect();
    let removed = system.postgres.psql("chart_index", REMOVED);
    if !differences.is_empty() || !removed.is_empty() {
        return Err(format!(
            "objects without a row, or rows without an object: {differences:?}; of removed charts: {removed}"
        ));
    }
    Ok(())
}

/// Waits until the search nodes have all changes.
pub(crate) fn wait_for_search_nodes(world: &World) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let (is_ok, text) = run_indexer(world, &["verify", "--search"]);
        if is_ok {
            return Ok(());
        }
        if start.elapsed() > SYNC_TIMEOUT {
            return Err(format!("verify --search after {SYNC_TIMEOUT:?}: {text}"));
        }
        thread::sleep(Duration::from_millis(500));
    }
}

/// Whether the command succeeds, and what it prints.
fn run_indexer(world: &World, arguments: &[&str]) -> (bool, String) {
    let output = world.system().indexer(WRITERS[0], arguments).output();
    let output = output.expect("it starts");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), text.concat())
}

/// Waits until a statement is true in the database of the mirror.
fn wait_for_mirror(world: &World, statement: &str) -> Result<(), String> {
    let start = Instant::now();
    while world.system().postgres.psql(MIRROR_DATABASE, statement) != "t" {
        if start.elapsed() > MIRROR_TIMEOUT {
            return Err(format!("not true of the mirror after {MIRROR_TIMEOUT:?}: {statement}"));
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Compares an export of the index with one of the mirror that `chart-indexer` has filled.
fn compare_with_mirror(world: &World, export: &Path) -> Result<(), String> {
    let of_index = |expression| {
        world.system().postgres.psql("chart_index", &format!("SELECT {expression} FROM change_feed"))
    };
    let (lineage, last) = (of_index("change_feed_lineage()"), of_index("last_sequence"));
    wait_for_mirror(
        world,
        &format!("SELECT lineage = {lineage} AND sequence >= {last} AND NOT is_starting FROM mirror"),
    )?;
    let is_complete = "SELECT NOT EXISTS (SELECT FROM mirror_refusals)";
    if world.system().postgres.psql(MIRROR_DATABASE, is_complete) != "t" {
        // It tries what it has refused again when it starts, otherwise after a minute.
        world.system().kill_process(MIRROR);
        world.system().start_process(MIRROR);
        wait_for_mirror(world, is_complete)?;
    }
    let printed = {
        let system = world.system();
        let (url, folder) = (database_url(MIRROR_DATABASE), system.exports().join("mirror"));
        let folder = folder.to_str().expect("a readable path");
        system.run_indexer(&["--database-url", &url, "export", folder, "--rox"])
    };
    let mirrored = Path::new(printed.split_once(": ").expect("the path of the export").0);
    let [records, mirrored_records] = [export, mirrored].map(mirror::chartsets_of_export);
    let [files, mirrored_files] =
        [export, mirrored].map(|export| std::fs::read(export.join("rox.tar")).expect("ROX files"));
    if !is_mirrored(&json!(records), &json!(mirrored_records), now_ms()) {
        return Err(format!("the mirror has {mirrored_records:?}, the index {records:?}"));
    }
    if files != mirrored_files {
        return Err("the mirror has other ROX files".to_owned());
    }
    Ok(())
}

/// Whether the value of a mirror is that of the index. Instead of a time that is ahead, it has one of its own.
fn is_mirrored(of_index: &Value, of_mirror: &Value, now_ms: u128) -> bool {
    match (of_index, of_mirror) {
        (Value::Object(a), Value::Object(b)) => {
            let has = |(name, value)| b.get(name).is_some_and(|other| is_mirrored(value, other, now_ms));
            a.len() == b.len() && a.iter().all(has)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_mirrored(a, b, now_ms))
        }
        (Value::Number(a), Value::Number(b)) if a.as_u128() > Some(now_ms) => b.as_u128() <= Some(now_ms),
        (a, b) => a == b,
    }
}

fn now_ms() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("after 1970").as_millis()
}

/// Imports the export into another database, whose responses must be the same bytes. Compares replicas that
/// have cached nothing, and their lists with those of a replica that searches in Meilisearch, if there is one.
async fn compare_with_copy(world: &World, replica: SocketAddr, export: &str) -> Result<(), String> {
    let replicas = tokio::task::block_in_place(|| -> Result<[SocketAddr; 2], String> {
        let mut system = world.system();
        system.create_database(COPY);
        let arguments = ["--database-url", &database_url(COPY), "import", export];
        // Into PostgreSQL alone, with the clock that is ahead: all times are kept.
        let mut import = system.indexer(WRITERS[1], &arguments);
        let output = import.env_remove("OBJECT_STORE_URL").output().expect("it starts");
        if !output.status.success() {
            return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let databases = [(WRITERS[0], "chart_index"), (WRITERS[1], COPY)];
        Ok(databases.map(|(writer, database)| system.start_replica(writer, database)))
    })?;
    let start = Instant::now();
    while replicas.iter().any(|replica| http_status(*replica, "/api/chartsets") != Some(200)) {
        if start.elapsed() > RECOVERY_TIMEOUT {
            return Err("the imported index does not respond".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let clients = [replicas[0], replicas[1], replica].map(Client::new);
    let lists = ["/api/chartsets?sort=title&perPage=60", "/api/chartsets?sort=bpm&perPage=60&keys=4"];
    let details = world.names.ids.iter().map(|id| format!("/api/chartsets/{id}"));
    let charts = world
        .names
        .hashes
        .iter()
        .flat_map(|hash| ["", "/rox", "/preview"].map(|suffix| format!("/api/charts/{hash}{suffix}")));
    let mut differences = BTreeMap::new();
    let lists = lists.into_iter().map(|path| (path.to_owned(), &clients[..]));
    // The third one has cached when a source was last checked.
    let others = details.chain(charts).map(|path| (path, &clients[..2]));
    for (path, clients) in lists.chain(others) {
        if let Some(difference) = difference(clients, &path).await? {
            differences.insert(path, difference);
        }
    }
    match differences.first_key_value() {
        None => Ok(()),
        Some(first) => Err(format!("{} responses differ: {first:?}", differences.len())),
    }
}

/// The responses of these replicas, unless they are the same.
async fn difference(clients: &[Client], path: &str) -> Result<Option<Vec<String>>, String> {
    let mut responses = Vec::new();
    for client in clients {
        let address = format!("10.99.{}.1", fastrand::u8(..));
        let response = client.try_request(Method::GET, path, &[("x-forwarded-for", &address)]).await;
        let response = response.map_err(|error| format!("{path}: {error}"))?;
        responses.push(format!("{} {}", response.status, String::from_utf8_lossy(&response.body)));
    }
    let are_same = responses.windows(2).all(|pair| pair[0] == pair[1]);
    Ok((!are_same).then_some(responses))
}
