//! The system under test: every service in a network namespace of its own.

mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chart_index_system_tests::network::{HOST, Network, SUBNET, project_name};
use chart_index_tests::{PrivateMeilisearch, workspace_root};

use crate::bucket::Bucket;
use crate::history::Options;
use crate::plan::has_objects;
use crate::postgres::PostgresPair;
use crate::process::{Process, clock, delete_clocks, in_namespace};

/// The replicas. The last one has no Redis.
pub(crate) const REPLICAS: [&str; 3] = ["replica-1", "replica-2", "replica-3"];
pub(crate) const WRITERS: [&str; 2] = ["writer-1", "writer-2"];
pub(crate) const NODES: [&str; 2] = ["meilisearch-1", "meilisearch-2"];
/// `chart-indexer follow`.
pub(crate) const FOLLOW: &str = "follow";
/// Varnish in front of HAProxy, which `follow` purges.
pub(crate) const EDGE: &str = "edge";
/// The proxy through which `follow` sends its purges, each of which takes a while.
pub(crate) const PURGES: &str = "purges";
/// The proxy in front of the bucket, and its server.
pub(crate) const OBJECTS: &str = "objects";
pub(crate) const S3: &str = "s3";
/// `chart-indexer mirror`.
pub(crate) const MIRROR: &str = "mirror";
/// The database that it fills.
pub(crate) const MIRROR_DATABASE: &str = "chart_index_mirror";
const POSTGRES: [&str; 2] = ["postgres-1", "postgres-2"];
const REDIS: [&str; 2] = ["redis-1", "redis-2"];

/// The addresses of the primaries and of the standby of PostgreSQL, which move at a failover.
const POSTGRES_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 200);
const REDIS_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 201);
const STANDBY_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 202);

/// How far the clocks of the second writer and of the first servers of PostgreSQL are ahead.
pub(crate) const AHEAD: &str = "+1h";

/// Maximum time until a service listens.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// All services, and what separates them. Dropping the value ends all processes and deletes the namespaces.
#[derive(Debug)]
pub(crate) struct System {
    // Dropped in this order: no process is left when the namespaces and files are deleted.
    processes: BTreeMap<&'static str, Process>,
    pub(crate) postgres: PostgresPair,
    redis_primary: usize,
    separated: BTreeSet<(String, String)>,
    network: Network,
    pub(crate) has_meilisearch: bool,
    /// `None` if all files are in PostgreSQL.
    pub(crate) bucket: Option<Bucket>,
    /// Their folder; by default that of this program.
    programs: Option<PathBuf>,
    folder: Folder,
}

#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        delete_clocks();
    }
}

impl System {
    /// Starts all services, over a migrated database. The thread must be in the namespace of the host
    /// afterwards.
    pub(crate) fn start(number: u32, options: &Options) -> Self {
        let name = project_name(number);
        let folder = Folder(std::env::temp_dir().join(&name));
        std::fs::create_dir(&folder.0).expect("a folder");
        let has_meilisearch = PrivateMeilisearch::program().is_some();
        let network = create_network(&name, has_meilisearch);
        network.enter_host();
        let mut s3 = has_objects(options.seed).then(|| {
            let script = workspace_root().join("scripts/s3").display().to_string();
            let command = [script, "serve".into(), "0.0.0.0".into(), Bucket::PORT.to_string()];
            Process::new(S3, network.namespace(S3), &folder.0, command.into())
        });
        // It starts beside PostgreSQL.
        s3.iter_mut().for_each(Process::start);
        let address = |service: &str| network.address(service).to_string();
        let postgres = PostgresPair::create(
            POSTGRES,
            POSTGRES.map(|service| network.namespace(service)),
            POSTGRES.map(address),
            &folder.0,
        );
        let mut system = Self {
            bucket: s3.is_some().then(|| Bucket::create((network.address(S3), Bucket::PORT).into())),
            processes: s3.into_iter().map(|s3| (S3, s3)).collect(),
            postgres,
            redis_primary: 0,
            separated: BTreeSet::new(),
            network,
            has_meilisearch,
            programs: options.programs.clone(),
            folder,
        };
        let addresses = [(POSTGRES, POSTGRES_ADDRESS), (POSTGRES, STANDBY_ADDRESS), (REDIS, REDIS_ADDRESS)];
        for (services, address) in addresses {
            for service in services {
                system.network.add_address(service, address);
            }
        }
        system.deliver_shared_addresses();
        system.add_services();
        system.run_indexer(&["migrate"]);
        system.create_database(MIRROR_DATABASE);
        system.start_all();
        system
    }

    fn add(&mut self, name: &'static str, words: Vec<String>, variables: &[(&str, String)]) {
        let process = Process::new(name, self.network.namespace(name), &self.folder.0, words);
        self.processes.insert(name, process.with_variables(variables));
    }

    /// Starts a process unless it is running, and waits until it listens.
    pub(crate) fn start_process(&mut self, name: &str) {
        let name = self.server_of(name);
        if let Some(server) = POSTGRES.iter().position(|postgres| *postgres == name) {
            return self.postgres.start(server);
        }
        self.process(name).start();
        let port = match name {
            name if REPLICAS.contains(&name) => 9090,
            name if NODES.contains(&name) => 7700,
            name if REDIS.contains(&name) => 6379,
            EDGE => 8080,
            "haproxy" => 8404,
            PURGES => 8080,
            OBJECTS => Bucket::PORT,
            _ => return,
        };
        let (start, address) = (Instant::now(), self.socket_address(name, port));
        let listens = || match port {
            6379 => TcpStream::connect(address).is_ok(),
            _ => http_status(address, "/health").is_some(),
        };
        while !listens() {
            assert!(start.elapsed() < START_TIMEOUT, "{name} does not start: {}", self.process(name).log());
            thread::sleep(Duration::from_millis(10));
        }
        if port == 6379 {
            self.replicate_redis(name);
        }
    }

    pub(crate) fn kill_process(&mut self, name: &str) {
        self.process(name).kill();
    }

    pub(crate) fn set_frozen(&mut self, name: &str, frozen: bool) {
        self.process(name).set_frozen(frozen);
    }

    fn process(&mut self, name: &str) -> &mut Process {
        let name = self.server_of(name);
        match POSTGRES.iter().position(|postgres| *postgres == name) {
            Some(server) => self.postgres.server(server),
            None => self.processes.get_mut(name).expect("a service"),
        }
    }

    /// The files of a process that is not running.
    pub(crate) fn files(&self, name: &str) -> &Path {
        self.processes[name].folder()
    }

    /// Starts all processes that are not running.
    pub(crate) fn start_all(&mut self) {
        let names: Vec<_> = self.processes.keys().copied().chain(POSTGRES).collect();
        for name in names {
            self.start_process(name);
        }
    }

    /// Copies the log of each process into a folder.
    pub(crate) fn copy_logs(&self, folder: &Path) {
        std::fs::create_dir_all(folder).expect("a folder");
        for (name, process) in &self.processes {
            std::fs::write(folder.join(format!("{name}.log")), process.log()).expect("a file");
        }
        std::fs::write(folder.join("postgres.log"), self.postgres.log()).expect("a file");
    }

    /// Loses all packets between two services, or ends that.
    pub(crate) fn set_separated(&mut self, first: &str, second: &str, separated: bool) {
        let [first, second] = [first, second].map(|name| self.server_of(name).to_owned());
        let pair = (first.clone(), second.clone());
        let to = |name: &str| (!separated).then(|| name.to_owned());
        self.network.deliver(&first, self.network.address(&second), to(&second).as_deref());
        self.network.deliver(&second, self.network.address(&first), to(&first).as_deref());
        if separated {
            self.separated.insert(pair)
        } else {
            self.separated.remove(&pair)
        };
        self.deliver_shared_addresses();
    }

    /// The server that is the primary or the standby of `postgres` or `redis` now; the name itself of any other
    /// service.
    fn server_of<'a>(&self, name: &'a str) -> &'a str {
        match name {
            "postgres" => POSTGRES[self.postgres.primary()],
            "postgres-standby" => POSTGRES[1 - self.postgres.primary()],
            "redis" => REDIS[self.redis_primary],
            "redis-standby" => REDIS[1 - self.redis_primary],
            name => name,
        }
    }

    /// Kills the primary of PostgreSQL and promotes its standby, which gets its address. The old primary
    /// becomes the standby with the next backup.
    pub(crate) fn promote_postgres(&mut self) {
        self.kill_process("postgres");
        self.set_separated("postgres", "postgres-standby", false);
        self.postgres.promote();
        self.deliver_shared_addresses();
    }

    /// Kills the primary of Redis; its replica gets its address.
    pub(crate) fn promote_redis(&mut self) {
        self.kill_process("redis");
        self.redis_primary = 1 - self.redis_primary;
        self.replicate_redis(REDIS[self.redis_primary]);
        self.deliver_shared_addresses();
        self.start_process("redis-standby");
    }

    /// Makes a server of Redis the primary, or a replica of the primary.
    fn replicate_redis(&self, server: &str) {
        let primary = REDIS[self.redis_primary];
        if server == primary {
            self.redis_cli(server, &["REPLICAOF", "NO", "ONE"]);
        } else {
            self.redis_cli(server, &["REPLICAOF", &self.address(primary), "6379"]);
        }
    }

    /// Deletes all keys of Redis.
    pub(crate) fn flush_redis(&self) {
        self.redis_cli(REDIS[self.redis_primary], &["FLUSHALL"]);
    }

    fn redis_cli(&self, server: &str, words: &[&str]) {
        let output = Command::new("redis-cli").args(["-h", &self.address(server)]).args(words).output();
        let output = output.expect("redis-cli is installed");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn deliver_shared_addresses(&self) {
        let servers = [
            (POSTGRES_ADDRESS, POSTGRES[self.postgres.primary()]),
            (STANDBY_ADDRESS, POSTGRES[1 - self.postgres.primary()]),
            (REDIS_ADDRESS, REDIS[self.redis_primary]),
        ];
        for client in [HOST, FOLLOW, MIRROR].into_iter().chain(REPLICAS).chain(WRITERS) {
            for (address, server) in servers {
                let pairs = [(client, server), (server, client)];
                let is_separated =
                    pairs.iter().any(|(a, b)| self.separated.contains(&((*a).to_owned(), (*b).to_owned())));
                self.network.deliver(client, address, (!is_separated).then_some(server));
            }
        }
    }

    /// A command of `chart-indexer` in the namespace of a writer.
    pub(crate) fn indexer(&self, writer: &str, arguments: &[&str]) -> Command {
        let words: Vec<_> = [self.program("chart-indexer")]
            .into_iter()
            .chain(arguments.iter().map(ToString::to_string))
            .collect();
        let mut command = in_namespace(&self.network.namespace(writer), &words);
        command.env("DATABASE_URL", database_url("chart_index"));
        if self.has_meilisearch {
            command.env("MEILISEARCH_URL", self.node_urls());
        }
        command.envs(self.object_variables());
        if writer == WRITERS[1] {
            command.envs(clock(AHEAD));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command of `chart-indexer` that must succeed.
    pub(crate) fn run_indexer(&self, arguments: &[&str]) -> String {
        let output = self.indexer(WRITERS[0], arguments).output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Creates a database on the primary, and its tables.
    pub(crate) fn create_database(&self, name: &str) {
        self.postgres.psql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        self.run_indexer(&["--database-url", &database_url(name), "migrate"]);
    }

    /// Starts a replica of a database, without Redis and Meilisearch, in the namespace of a writer.
    pub(crate) fn start_replica(&mut self, writer: &'static str, database: &str) -> SocketAddr {
        self.add_replica(writer, database, Vec::new());
        self.processes.get_mut(writer).expect("it was added").start();
        self.socket_address(writer, 8080)
    }

    /// Sends a signal to all processes of a writer.
    pub(crate) fn signal_writer(&self, writer: &str, signal: &str) {
        crate::process::signal(&self.network.namespace(writer), signal);
    }

    fn node_urls(&self) -> String {
        NODES.map(|name| format!("http://{}:7700", self.address(name))).join(",")
    }

    /// The folder of all exports.
    pub(crate) fn exports(&self) -> PathBuf {
        self.folder.0.join("exports")
    }

    pub(crate) fn address(&self, service: &str) -> String {
        self.network.address(service).to_string()
    }

    pub(crate) fn socket_address(&self, service: &str, port: u16) -> SocketAddr {
        SocketAddr::from((self.network.address(service), port))
    }
}

fn create_network(name: &str, has_meilisearch: bool) -> Network {
    let nodes = if has_meilisearch { &NODES[..] } else { &[] };
    let others = ["haproxy", EDGE, FOLLOW, PURGES, MIRROR, OBJECTS, S3];
    Network::create(name, [&REPLICAS[..], &WRITERS, &POSTGRES, &REDIS, nodes, &others].concat())
}

/// A database on the primary.
pub(crate) fn database_url(name: &str) -> String {
    format!("postgres://postgres@{POSTGRES_ADDRESS}/{name}")
}

/// A database on the standby.
pub(crate) fn standby_url(name: &str) -> String {
    format!("postgres://postgres@{STANDBY_ADDRESS}/{name}")
}

/// The status of a response, if there is one.
pub(crate) fn http_status(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").as_bytes())
        .ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head[9..]).ok()?.parse().ok()
}
