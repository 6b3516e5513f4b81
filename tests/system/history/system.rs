//! The system under test: every service in a network namespace of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chart_index_system_tests::haproxy_program;
use chart_index_system_tests::network::{HOST, Networks, project_name};
use chart_index_tests::{PrivateMeilisearch, program, workspace_root};

use crate::postgres::PostgresPair;
use crate::process::{Process, in_namespace};

/// The replicas. The last one has no Redis.
pub(crate) const REPLICAS: [&str; 3] = ["replica-1", "replica-2", "replica-3"];
pub(crate) const WRITERS: [&str; 2] = ["writer-1", "writer-2"];
pub(crate) const NODES: [&str; 2] = ["meilisearch-1", "meilisearch-2"];
/// `chart-indexer follow`.
pub(crate) const FOLLOW: &str = "follow";
const POSTGRES: [&str; 2] = ["postgres-1", "postgres-2"];
const REDIS: [&str; 2] = ["redis-1", "redis-2"];

/// The addresses of the primaries, which move at a failover.
const POSTGRES_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 200);
const REDIS_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 201);

/// The network of all services, whose addresses the replicas trust to forward those of clients.
const SUBNET: &str = "172.31.0.0/24";

/// Which servers of `compose/haproxy.cfg` are which replica.
const SERVERS: [(&str, &str); 6] = [
    ("lookup-1", "replica-1"),
    ("lookup-2", "replica-2"),
    ("browse-1", "replica-2"),
    ("browse-2", "replica-3"),
    ("pages-1", "replica-3"),
    ("pages-2", "replica-1"),
];

/// Maximum time until a service listens.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// How many seconds the clock of a replica is ahead. The difference between any two is 30 s.
const CLOCKS: [(&str, &str); 2] = [("replica-2", "+15s"), ("replica-3", "-15s")];

/// All services, and what separates them. Dropping the value ends all processes and deletes the namespaces.
#[derive(Debug)]
pub(crate) struct System {
    // Dropped in this order: no process is left when the namespaces and files are deleted.
    processes: BTreeMap<&'static str, Process>,
    pub(crate) postgres: PostgresPair,
    redis_primary: usize,
    separated: BTreeSet<(String, String)>,
    networks: Networks,
    pub(crate) has_meilisearch: bool,
    folder: Folder,
}

#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl System {
    /// Starts all services, over a migrated database. The thread must be in the namespace of the host
    /// afterwards.
    pub(crate) fn start(number: u32, programs: Option<&Path>) -> Self {
        let name = project_name(number);
        let folder = Folder(std::env::temp_dir().join(&name));
        std::fs::create_dir(&folder.0).expect("a folder");
        let meilisearch = PrivateMeilisearch::program();
        let has_meilisearch = meilisearch.is_some();
        let networks = create_networks(&name, has_meilisearch);
        networks.enter_host();
        let address = |service: &str| networks.address(service).to_string();
        let postgres = PostgresPair::create(
            POSTGRES,
            POSTGRES.map(|service| networks.namespace(service)),
            POSTGRES.map(address),
            &folder.0,
        );
        let mut system = Self {
            processes: BTreeMap::new(),
            postgres,
            redis_primary: 0,
            separated: BTreeSet::new(),
            networks,
            has_meilisearch,
            folder,
        };
        for (services, address) in [(POSTGRES, POSTGRES_ADDRESS), (REDIS, REDIS_ADDRESS)] {
            for service in services {
                system.networks.add_address(service, address);
            }
        }
        system.deliver_shared_addresses();
        system.create_processes(programs, meilisearch.as_deref());
        system.run_indexer(programs, &["migrate"]);
        let names: Vec<_> = system.processes.keys().copied().filter(|name| *name != "haproxy").collect();
        for name in names {
            system.start_process(name);
        }
        system.start_process("haproxy");
        system
    }

    fn create_processes(&mut self, programs: Option<&Path>, meilisearch: Option<&Path>) {
        let exports = self.exports();
        std::fs::create_dir(&exports).expect("a folder");
        let path = |path: &Path| path.to_str().expect("a readable path").to_owned();
        for (index, name) in REDIS.into_iter().enumerate() {
            let mut words = vec!["redis-server".to_owned()];
            let options = ["--protected-mode", "no", "--save", "", "--appendonly", "no", "--port", "6379"];
            words.extend(options.map(str::to_owned));
            // A full synchronisation begins at once, and not 5 s after it was requested.
            words.extend(["--repl-diskless-sync-delay".to_owned(), "0".to_owned()]);
            if index == 1 {
                words.extend(["--replicaof".to_owned(), self.address(REDIS[0]), "6379".to_owned()]);
            }
            self.add(name, words, &[]);
        }
        let nodes = if self.has_meilisearch { &NODES[..] } else { &[] };
        for name in nodes {
            let words = [
                &path(meilisearch.expect("a program")),
                "--db-path",
                "data",
                "--http-addr",
                "0.0.0.0:7700",
                "--no-analytics",
                "--max-indexing-memory",
                "256MiB",
                "--max-indexing-threads",
                "1",
            ];
            self.add(name, words.map(str::to_owned).to_vec(), &[]);
        }
        let nodes = self.has_meilisearch.then(|| ("MEILISEARCH_URL", self.node_urls()));
        for name in REPLICAS {
            let words = vec![path(&program_in(programs, "chart-index")), "serve".to_owned()];
            let mut variables = vec![
                ("DATABASE_URL", database_url("chart_index")),
                ("LISTEN", "0.0.0.0:8080".to_owned()),
                ("ADMIN_LISTEN", "0.0.0.0:9090".to_owned()),
                ("TRUSTED_PROXIES", SUBNET.to_owned()),
                ("EXPORTS_DIR", path(&exports)),
                ("RATE_LIMIT_BULK", "1000000".to_owned()),
                ("LOG_FORMAT", "json".to_owned()),
            ];
            if let Some((_, offset)) = CLOCKS.iter().find(|(replica, _)| *replica == name) {
                variables.push(("LD_PRELOAD", path(&faketime_library())));
                variables.push(("FAKETIME", (*offset).to_owned()));
                variables.push(("DONT_FAKE_MONOTONIC", "1".to_owned()));
            }
            variables.extend(nodes.clone());
            if name != REPLICAS[2] {
                variables.push(("REDIS_URL", redis_url()));
            }
            self.add(name, words, &variables);
        }
        let words = vec![path(&program_in(programs, "chart-indexer")), "follow".to_owned()];
        let mut variables = vec![("DATABASE_URL", database_url("chart_index"))];
        variables.extend(nodes);
        self.add(FOLLOW, words, &variables);
        std::fs::write(self.folder.0.join("haproxy.cfg"), self.haproxy_configuration()).expect("a file");
        let words = [haproxy_program(), "-db", "-f", &path(&self.folder.0.join("haproxy.cfg"))];
        self.add("haproxy", words.map(str::to_owned).to_vec(), &[]);
    }

    /// `compose/haproxy.cfg`, with the addresses of the replicas.
    fn haproxy_configuration(&self) -> String {
        let file = workspace_root().join("compose/haproxy.cfg");
        let mut configuration = std::fs::read_to_string(file).expect("a configuration");
        for (server, replica) in SERVERS {
            let original = format!("server {server} {server}:8080\n");
            assert!(configuration.contains(&original), "{server}");
            let address = self.address(replica);
            configuration = configuration.replace(&original, &format!("server {server} {address}:8080\n"));
        }
        configuration
    }

    fn add(&mut self, name: &'static str, words: Vec<String>, variables: &[(&str, String)]) {
        let process = Process::new(name, self.networks.namespace(name), &self.folder.0, words);
        self.processes.insert(name, process.with_variables(variables));
    }

    /// Starts a process unless it is running, and waits until it listens.
    pub(crate) fn start_process(&mut self, name: &str) {
        let process = self.processes.get_mut(name).expect("a service");
        process.start();
        let port = match process.name {
            name if REPLICAS.contains(&name) => 9090,
            name if NODES.contains(&name) => 7700,
            name if REDIS.contains(&name) => 6379,
            "haproxy" => 8404,
            _ => return,
        };
        // HAProxy is healthy once its checks have found replicas.
        let path = if port == 8404 { "/healthz" } else { "/health" };
        let (start, address) = (Instant::now(), self.socket_address(name, port));
        let listens = || match port {
            6379 => TcpStream::connect(address).is_ok(),
            8404 => http_status(address, path) == Some(200),
            _ => http_status(address, path).is_some(),
        };
        while !listens() {
            assert!(start.elapsed() < START_TIMEOUT, "{name} does not start: {}", self.processes[name].log());
            thread::sleep(Duration::from_millis(10));
        }
        if name == self.redis() {
            // It may have been started as a replica.
            self.redis_cli(name, &["REPLICAOF", "NO", "ONE"]);
        }
    }

    pub(crate) fn kill_process(&mut self, name: &str) {
        self.processes.get_mut(name).expect("a service").kill();
    }

    pub(crate) fn set_frozen(&self, name: &str, frozen: bool) {
        self.processes[name].set_frozen(frozen);
    }

    /// The files of a process that is not running.
    pub(crate) fn files(&self, name: &str) -> &Path {
        self.processes[name].folder()
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = &'static str> {
        self.processes.keys().copied()
    }

    /// Copies the log of each process into a folder.
    pub(crate) fn copy_logs(&self, folder: &Path) {
        std::fs::create_dir_all(folder).expect("a folder");
        for (name, process) in &self.processes {
            std::fs::write(folder.join(format!("{name}.log")), process.log()).expect("a file");
        }
        std::fs::write(folder.join("postgres.log"), self.postgres.log()).expect("a file");
    }

    /// Loses all packets between two services, or ends that. `postgres` and `redis` are the primaries.
    pub(crate) fn set_separated(&mut self, first: &str, second: &str, separated: bool) {
        let [first, second] = [first, second].map(|name| self.primary_of(name).to_owned());
        let pair = (first.clone(), second.clone());
        let to = |name: &str| (!separated).then(|| name.to_owned());
        self.networks.deliver(&first, self.networks.address(&second), to(&second).as_deref());
        self.networks.deliver(&second, self.networks.address(&first), to(&first).as_deref());
        if separated {
            self.separated.insert(pair)
        } else {
            self.separated.remove(&pair)
        };
        self.deliver_shared_addresses();
    }

    fn primary_of<'a>(&self, name: &'a str) -> &'a str {
        match name {
            "postgres" => POSTGRES[self.postgres.primary()],
            "redis" => REDIS[self.redis_primary],
            name => name,
        }
    }

    /// Kills the primary of PostgreSQL and promotes its standby, which gets its address. The old primary
    /// becomes the standby with the next backup.
    pub(crate) fn promote_postgres(&mut self) {
        self.postgres.promote();
        self.separated.clear();
        self.networks.deliver(POSTGRES[0], self.networks.address(POSTGRES[1]), Some(POSTGRES[1]));
        self.networks.deliver(POSTGRES[1], self.networks.address(POSTGRES[0]), Some(POSTGRES[0]));
        self.deliver_shared_addresses();
    }

    /// Kills the primary of Redis; its replica gets its address.
    pub(crate) fn promote_redis(&mut self) {
        let old = REDIS[self.redis_primary];
        self.kill_process(old);
        self.redis_primary = 1 - self.redis_primary;
        let new = REDIS[self.redis_primary];
        self.redis_cli(new, &["REPLICAOF", "NO", "ONE"]);
        self.deliver_shared_addresses();
        self.start_process(old);
        self.redis_cli(old, &["REPLICAOF", &self.address(new), "6379"]);
    }

    /// Deletes all keys of Redis.
    pub(crate) fn flush_redis(&self) {
        self.redis_cli(REDIS[self.redis_primary], &["FLUSHALL"]);
    }

    /// The name of the primary of Redis.
    pub(crate) fn redis(&self) -> &'static str {
        REDIS[self.redis_primary]
    }

    fn redis_cli(&self, server: &str, words: &[&str]) {
        let output = Command::new("redis-cli").args(["-h", &self.address(server)]).args(words).output();
        let output = output.expect("redis-cli is installed");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn deliver_shared_addresses(&self) {
        let primaries = [
            (POSTGRES_ADDRESS, POSTGRES[self.postgres.primary()]),
            (REDIS_ADDRESS, REDIS[self.redis_primary]),
        ];
        for client in [HOST, FOLLOW].into_iter().chain(REPLICAS).chain(WRITERS) {
            for (address, primary) in primaries {
                let pairs = [(client, primary), (primary, client)];
                let is_separated =
                    pairs.iter().any(|(a, b)| self.separated.contains(&((*a).to_owned(), (*b).to_owned())));
                self.networks.deliver(client, address, (!is_separated).then_some(primary));
            }
        }
    }

    /// A command of `chart-indexer` in the namespace of a writer.
    pub(crate) fn indexer(&self, programs: Option<&Path>, writer: &str, arguments: &[&str]) -> Command {
        let program = program_in(programs, "chart-indexer").to_str().expect("a readable path").to_owned();
        let words: Vec<_> = [program].into_iter().chain(arguments.iter().map(ToString::to_string)).collect();
        let mut command = in_namespace(&self.networks.namespace(writer), &words);
        command.env("DATABASE_URL", database_url("chart_index"));
        if self.has_meilisearch {
            command.env("MEILISEARCH_URL", self.node_urls());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command of `chart-indexer` that must succeed.
    pub(crate) fn run_indexer(&self, programs: Option<&Path>, arguments: &[&str]) -> String {
        let output = self.indexer(programs, WRITERS[0], arguments).output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a replica of a database, without Redis and Meilisearch, in the namespace of a writer.
    pub(crate) fn start_replica(
        &mut self,
        programs: Option<&Path>,
        writer: &'static str,
        database: &str,
    ) -> SocketAddr {
        let program = program_in(programs, "chart-index").to_str().expect("a readable path").to_owned();
        let variables = [
            ("DATABASE_URL", database_url(database)),
            ("LISTEN", "0.0.0.0:8080".to_owned()),
            ("ADMIN_LISTEN", "0.0.0.0:9090".to_owned()),
            ("TRUSTED_PROXIES", SUBNET.to_owned()),
        ];
        self.add(writer, vec![program, "serve".to_owned()], &variables);
        self.processes.get_mut(writer).expect("it was added").start();
        self.socket_address(writer, 8080)
    }

    /// Sends a signal to all processes of a writer.
    pub(crate) fn signal_writer(&self, writer: &str, signal: &str) {
        crate::process::signal(&self.networks.namespace(writer), signal);
    }

    fn node_urls(&self) -> String {
        NODES.map(|name| format!("http://{}:7700", self.address(name))).join(",")
    }

    /// The folder of all exports.
    pub(crate) fn exports(&self) -> PathBuf {
        self.folder.0.join("exports")
    }

    pub(crate) fn address(&self, service: &str) -> String {
        self.networks.address(service).to_string()
    }

    pub(crate) fn socket_address(&self, service: &str, port: u16) -> SocketAddr {
        SocketAddr::from((self.networks.address(service), port))
    }
}

fn create_networks(name: &str, has_meilisearch: bool) -> Networks {
    let search = NODES.iter().filter(|_| has_meilisearch);
    let services = REPLICAS.iter().chain(&WRITERS).chain(&POSTGRES).chain(&REDIS).chain(&["haproxy", FOLLOW]);
    let networks = |service: &&str| ((*service).to_owned(), vec!["all".to_owned()]);
    let subnets = [("all".to_owned(), Some(SUBNET.to_owned()))].into();
    let services = services.chain(search).map(networks).collect();
    let networks = Networks::create(name, &services, &subnets);
    for service in services.keys() {
        networks.set_connected(service, true);
    }
    networks
}

/// A database on the primary.
pub(crate) fn database_url(name: &str) -> String {
    format!("postgres://postgres@{POSTGRES_ADDRESS}/{name}")
}

fn redis_url() -> String {
    format!("redis://{REDIS_ADDRESS}")
}

fn program_in(programs: Option<&Path>, name: &str) -> PathBuf {
    programs.map_or_else(|| program(name), |folder| folder.join(name))
}

/// The library that fakes the clock. Not its wrapper, which leaves a semaphore behind when it is killed.
fn faketime_library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file()).expect("faketime is installed")
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
