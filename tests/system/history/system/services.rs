//! The services: their programs and settings.

use std::path::Path;

use chart_index_system_tests::{PrivateS3, haproxy_program, varnish};
use chart_index_tests::{PrivateMeilisearch, program, workspace_root};

use super::{
    EDGE, FOLLOW, MIRROR, MIRROR_DATABASE, NODES, OBJECTS, PURGES, REDIS, REDIS_ADDRESS, REPLICAS, S3,
    SUBNET, System, database_url, standby_url,
};
use crate::bucket::Bucket;
use crate::process::clock;

/// How long the API of a CDN takes for a purge.
const PURGE_TIME: &str = "150ms";

/// How many seconds the clock of a replica is ahead. The difference between any two is 30 s.
const CLOCKS: [(&str, &str); 2] = [("replica-2", "+15s"), ("replica-3", "-15s")];

impl System {
    /// Adds all services, apart from PostgreSQL, without starting them.
    pub(super) fn add_services(&mut self) {
        std::fs::create_dir(self.exports()).expect("a folder");
        self.add_redis();
        let nodes = self.has_meilisearch.then(|| ("MEILISEARCH_URL", self.node_urls()));
        if let Some(meilisearch) = PrivateMeilisearch::program() {
            self.add_search_nodes(&path(&meilisearch));
        }
        for name in REPLICAS {
            let mut variables = vec![
                ("EXPORTS_DIR", path(&self.exports())),
                ("RATE_LIMIT_BULK", "1000000".to_owned()),
                ("RATE_LIMIT_FEED", "1000000".to_owned()),
                // The mirror needs those of the large chartsets.
                ("RATE_LIMIT_ROX", "1000000".to_owned()),
                ("CDN_MAX_AGE_SECONDS", "2592000".to_owned()),
                ("LOG_FORMAT", "json".to_owned()),
            ];
            if let Some((_, offset)) = CLOCKS.iter().find(|(replica, _)| *replica == name) {
                variables.extend(clock(offset));
            }
            variables.extend(nodes.clone());
            if name != REPLICAS[2] {
                variables.push(("REDIS_URL", format!("redis://{REDIS_ADDRESS}")));
            }
            // The other two share cached responses that they read from different servers.
            if name != REPLICAS[1] {
                variables.push(("DATABASE_READ_URL", standby_url("chart_index")));
            }
            // One of those that share cached responses sends clients to the bucket.
            if name == REPLICAS[1] && self.bucket.is_some() {
                let bucket = self.socket_address(S3, Bucket::PORT);
                variables.push(("OBJECTS_PUBLIC_URL", format!("http://{bucket}{}", Bucket::PATH)));
            }
            self.add_replica(name, "chart_index", variables);
        }
        let variables = [
            ("DATABASE_URL", database_url("chart_index")),
            ("PURGE_URL", format!("http://{}:8080/purge", self.address(PURGES))),
        ];
        let variables: Vec<_> = variables.into_iter().chain(nodes).collect();
        self.add(FOLLOW, vec![self.program("chart-indexer"), "follow".to_owned()], &variables);
        let upstream = format!("http://{}:8080", self.address("haproxy"));
        let mut mirror = words(&["mirror", &upstream, "--interval-ms", "200", "--downloads", "downloads"]);
        // One of the replicas redirects to the bucket.
        if self.bucket.is_some() {
            let bucket = self.socket_address(S3, Bucket::PORT);
            mirror.extend(["--objects-url".to_owned(), format!("http://{bucket}{}", Bucket::PATH)]);
        }
        mirror.insert(0, self.program("chart-indexer"));
        self.add(MIRROR, mirror, &[("DATABASE_URL", database_url(MIRROR_DATABASE))]);
        let file = self.folder.0.join("haproxy.cfg");
        std::fs::write(&file, self.haproxy_configuration()).expect("a file");
        let front_proxies = [("FRONT_PROXIES", self.address(EDGE))];
        self.add("haproxy", words(&[haproxy_program(), "-db", "-f", &path(&file)]), &front_proxies);
        self.add_edge();
        self.add_purges();
        if self.bucket.is_some() {
            self.add_objects();
        }
    }

    fn add_objects(&mut self) {
        let (port, file) = (Bucket::PORT, self.folder.0.join("objects.cfg"));
        let configuration = format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 1m\n timeout server 1m\n\
             listen objects\n bind :{port}\n server s3 {}:{port}\n",
            self.address(S3)
        );
        std::fs::write(&file, configuration).expect("a file");
        self.add(OBJECTS, words(&[haproxy_program(), "-db", "-f", &path(&file)]), &[]);
    }

    /// The settings of the object store, if there is one.
    pub(super) fn object_variables(&self) -> Vec<(&'static str, String)> {
        if self.bucket.is_none() {
            return Vec::new();
        }
        let endpoint = format!("http://{}", self.socket_address(OBJECTS, Bucket::PORT));
        PrivateS3::variables(&endpoint).into()
    }

    fn add_edge(&mut self) {
        let folder = self.folder.0.join(EDGE);
        std::fs::create_dir(&folder).expect("a folder");
        let purger = format!("\"{}\"", self.address(PURGES));
        let configuration = varnish::configuration(&self.address("haproxy"), 8080, &purger);
        let command = varnish::command(&configuration, self.socket_address(EDGE, 8080), &folder);
        self.add(EDGE, command, &[]);
    }

    fn add_purges(&mut self) {
        let (edge, file) = (self.address(EDGE), self.folder.0.join("purges.cfg"));
        let configuration = format!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 1m\n timeout server 1m\n\
             frontend purges\n bind :8080\n tcp-request inspect-delay {PURGE_TIME}\n\
             tcp-request content accept if WAIT_END\n default_backend edge\n\
             backend edge\n server edge {edge}:8080\n"
        );
        std::fs::write(&file, configuration).expect("a file");
        self.add(PURGES, words(&[haproxy_program(), "-db", "-f", &path(&file)]), &[]);
    }

    fn add_redis(&mut self) {
        for (index, name) in REDIS.into_iter().enumerate() {
            let mut command = words(&["redis-server", "--protected-mode", "no", "--port", "6379"]);
            command.extend(words(&["--save", "", "--appendonly", "no"]));
            // A full synchronisation begins at once, and not 5 s after it was requested.
            command.extend(words(&["--repl-diskless-sync-delay", "0"]));
            if index == 1 {
                command.extend(words(&["--replicaof", &self.address(REDIS[0]), "6379"]));
            }
            self.add(name, command, &[]);
        }
    }

    fn add_search_nodes(&mut self, program: &str) {
        for name in NODES {
            let mut command = words(&[program, "--db-path", "data", "--http-addr", "0.0.0.0:7700"]);
            command.extend(words(&["--no-analytics", "--max-indexing-memory", "256MiB"]));
            command.extend(words(&["--max-indexing-threads", "1"]));
            self.add(name, command, &[]);
        }
    }

    /// Adds a replica of a database with further variables.
    pub(super) fn add_replica(
        &mut self,
        name: &'static str,
        database: &str,
        mut variables: Vec<(&str, String)>,
    ) {
        variables.extend([
            ("DATABASE_URL", database_url(database)),
            ("LISTEN", "0.0.0.0:8080".to_owned()),
            ("ADMIN_LISTEN", "0.0.0.0:9090".to_owned()),
            ("TRUSTED_PROXIES", SUBNET.to_owned()),
        ]);
        variables.extend(self.object_variables());
        self.add(name, vec![self.program("chart-index"), "serve".to_owned()], &variables);
    }

    /// `compose/haproxy/haproxy.cfg`, with these replicas as its servers.
    fn haproxy_configuration(&self) -> String {
        let file = workspace_root().join("compose/haproxy/haproxy.cfg");
        let configuration = std::fs::read_to_string(file).expect("a configuration");
        let original = ["replica-1", "replica-2"].map(|name| format!("    server {name} {name}.edge:8080\n"));
        let original = original.concat();
        assert!(configuration.contains(&original), "{original}");
        let servers = REPLICAS.map(|name| format!("    server {name} {}:8080\n", self.address(name)));
        configuration.replace(&original, &servers.concat())
    }

    /// The path of a program of the project.
    pub(super) fn program(&self, name: &str) -> String {
        path(&self.programs.as_ref().map_or_else(|| program(name), |folder| folder.join(name)))
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn path(path: &Path) -> String {
    path.to_str().expect("a readable path").to_owned()
}
