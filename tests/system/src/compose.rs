//! docker-compose.yml on a Docker engine of the tests: services that are started, stopped, killed, frozen and
//! separated.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::MutexGuard;
use std::time::Duration;

use chart_index_tests::{within, workspace_root};
use serde_json::Value;
use tempfile::TempDir;

use crate::engine::{Engine, copy};
use crate::run;

/// Maximum time until a service is healthy, or a one-shot service has ended.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// Maximum lines of each log that a test prints when it fails.
const LOG_LINES: usize = 25;

/// Size of the disk of all volumes: the default of a tmpfs, a share of the memory.
const DISK_SIZE: &str = "50%";

/// Time between two questions to the engine.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The name of the project, with which those of its networks begin.
const PROJECT: &str = "chart-index";

/// A user of Redis with all permissions: drills change its configuration.
const REDIS_ADMINISTRATOR: &str = "drill";

/// A compose project in a copy of the files that it needs. Dropping the value removes all of it.
#[derive(Debug)]
pub struct ComposeProject {
    engine: MutexGuard<'static, Engine>,
    folder: TempDir,
    services: Vec<String>,
    variables: Vec<(String, String)>,
}

/// The result of an attempt to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// The other side accepts it.
    Open,
    /// There is an error.
    Refused,
    /// There is no response.
    Silent,
}

impl ComposeProject {
    /// Runs a test on a thread in the network of the engine, with these services, which are not started yet.
    /// The variables are those that the compose file interpolates.
    pub fn run(services: &[&str], variables: &[(&str, &str)], test: impl AsyncFnOnce(Self) + Send) {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let project = Self::create(services, variables);
                project.engine.enter_network();
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(test(project));
            });
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        });
    }

    fn create(services: &[&str], variables: &[(&str, &str)]) -> Self {
        let variables = [("COMPOSE_PROJECT_NAME", PROJECT)].iter().chain(variables);
        let project = Self {
            engine: Engine::lock(),
            folder: copy_of_files(),
            services: services.iter().map(ToString::to_string).collect(),
            variables: variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        project.run_script("scripts/compose", &["secrets"]);
        project.append_administrator();
        project
    }

    /// Adds a user to the ACL file of Redis who may do everything: drills change its configuration.
    fn append_administrator(&self) {
        let users = self.folder().join("compose/secrets/redis_users");
        let content = std::fs::read_to_string(&users).expect("a file");
        let content = format!("{content}user {REDIS_ADMINISTRATOR} on nopass ~* &* +@all\n");
        std::fs::write(users, content).expect("a file");
    }

    /// The folder of the compose file.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a program in the folder of the compose file with the variables of the project; returns its standard
    /// output.
    pub fn run_script(&self, program: &str, arguments: &[&str]) -> String {
        run(&mut self.command(program, arguments))
    }

    /// Runs a command line in the folder of the compose file; returns its standard output. `docker compose` is
    /// that of this machine, without a terminal.
    pub fn run_shell(&self, command: &str) -> String {
        let compose = self.compose(&[]);
        let program = [compose.get_program()].into_iter().chain(compose.get_args());
        let program = program.map(|part| part.to_str().expect("UTF-8")).collect::<Vec<_>>().join(" ");
        let command = command.replace("docker compose exec", "docker compose exec -T");
        let command = command.replace("docker compose run", "docker compose run -T");
        self.run_script("sh", &["-ec", &command.replace("docker compose", &program)])
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder()).env_clear();
        command.envs(["HOME", "PATH"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs([("DOCKER_HOST", self.engine.host()), ("DOCKER_BUILDKIT", "0".to_owned())]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn compose(&self, arguments: &[&str]) -> Command {
        let has_plugin = self.engine.docker(&["compose", "version"]).output();
        if has_plugin.is_ok_and(|output| output.status.success()) {
            return self.command("docker", &[&["compose"], arguments].concat());
        }
        self.command("docker-compose", arguments)
    }

    fn docker(&self, arguments: &[&str]) -> String {
        run(&mut self.engine.docker(arguments)).trim_end().to_owned()
    }

    /// Starts all services, and waits until each is healthy or has completed.
    pub async fn up(&self) {
        let services: Vec<_> = self.services.iter().map(String::as_str).collect();
        run(&mut self.compose(&[&["up", "--detach", "--no-build"], &services[..]].concat()));
        for service in services {
            self.wait_until_healthy(service).await;
        }
    }

    /// Starts a service that was stopped or deleted, and waits until it is healthy or has completed.
    pub async fn start(&self, service: &str) {
        let container = self.find_container(service);
        if container.is_empty() {
            run(&mut self.compose(&["up", "--detach", "--no-build", "--no-deps", service]));
        } else {
            self.docker(&["start", &container]);
        }
        self.wait_until_healthy(service).await;
    }

    /// Waits until a service is healthy; if it has no health check, until it has completed.
    pub async fn wait_until_healthy(&self, service: &str) {
        let check = async || {
            let state = self.inspect(service)["State"].take();
            match (state["Status"].as_str()?, state["Health"]["Status"].as_str()) {
                ("running", Some("healthy")) => return Some(()),
                ("running" | "restarting", Some("starting")) | ("running", None) => {}
                ("exited", _) if state["ExitCode"] == 0 => return Some(()),
                _ => panic!("{service}: {state}\n{}", self.log(service)),
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            None
        };
        within(START_TIMEOUT, check).await;
    }

    /// Stops a service within its grace period; returns the exit code.
    pub fn stop(&self, service: &str) -> i64 {
        self.docker(&["stop", &self.container(service)]);
        self.inspect(service)["State"]["ExitCode"].as_i64().expect("a number")
    }

    /// Kills a service, which stays down until it is started.
    pub fn kill(&self, service: &str) {
        self.docker(&["kill", &self.container(service)]);
    }

    /// Kills the process of a service, and waits until the engine has restarted it.
    pub async fn crash(&self, service: &str) {
        let before = self.inspect(service);
        let process = before["State"]["Pid"].to_string();
        run(&mut self.engine.command(&["kill", "-s", "KILL", &process]));
        let restarted = async || {
            let now = self.inspect(service);
            if now["RestartCount"] != before["RestartCount"] && now["State"]["Status"] == "running" {
                return Some(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            None
        };
        within(START_TIMEOUT, restarted).await;
    }

    /// Pauses all processes of a service.
    pub fn freeze(&self, service: &str) {
        self.docker(&["pause", &self.container(service)]);
    }

    /// Resumes a frozen service.
    pub fn thaw(&self, service: &str) {
        self.docker(&["unpause", &self.container(service)]);
    }

    /// Loses all packets between two services, without any response to the sender. Other connections are not
    /// affected.
    pub fn partition(&self, services: [&str; 2]) {
        self.set_partitioned(services, "--append");
    }

    /// Ends a partition.
    pub fn heal(&self, services: [&str; 2]) {
        self.set_partitioned(services, "--delete");
    }

    fn set_partitioned(&self, [one, other]: [&str; 2], action: &str) {
        let networks = self.inspect(other)["NetworkSettings"]["Networks"].take();
        for network in networks.as_object().expect("networks").values() {
            let address = network["IPAddress"].as_str().expect("an address");
            self.filter_packets(one, action, address);
        }
    }

    /// Removes a service from a network.
    pub fn disconnect(&self, service: &str, network: &str) {
        self.docker(&["network", "disconnect", &format!("{PROJECT}_{network}"), &self.container(service)]);
    }

    /// Connects a service with a network again, under these names.
    pub fn reconnect(&self, service: &str, network: &str, aliases: &[&str]) {
        let aliases: Vec<_> = aliases.iter().flat_map(|alias| ["--alias", alias]).collect();
        let (network, container) = (format!("{PROJECT}_{network}"), self.container(service));
        self.docker(&[&["network", "connect"], &aliases[..], &[&network, &container]].concat());
    }

    /// Loses all packets between a service and a server outside of the project.
    pub fn partition_from(&self, service: &str, server: IpAddr) {
        self.filter_packets(service, "--append", &server.to_string());
    }

    /// Ends the partition of a service from a server.
    pub fn heal_from(&self, service: &str, server: IpAddr) {
        self.filter_packets(service, "--delete", &server.to_string());
    }

    fn filter_packets(&self, service: &str, action: &str, other: &str) {
        let process = self.inspect(service)["State"]["Pid"].to_string();
        for (chain, side) in [("INPUT", "--source"), ("OUTPUT", "--destination")] {
            let iptables = ["iptables", action, chain, side, other, "--jump", "DROP"];
            let namespace = ["nsenter", "--target", &process, "--net"];
            run(&mut self.engine.command(&[&namespace[..], &iptables].concat()));
        }
    }

    /// Leaves no free space on the disk of all volumes.
    pub fn fill_disk(&self) {
        self.engine.fill_disk();
    }

    /// Deletes the container of a service, with its volumes.
    pub fn delete(&self, service: &str) {
        let container = self.inspect(service);
        self.docker(&["rm", "--force", container["Id"].as_str().expect("an id")]);
        let mounts = container["Mounts"].as_array().expect("mounts");
        for volume in mounts.iter().filter_map(|mount| mount["Name"].as_str()) {
            self.docker(&["volume", "rm", volume]);
        }
    }

    /// Runs the program of a service with other arguments in a container of its own, and asserts that it
    /// succeeds; returns its log.
    pub fn run_once(&self, service: &str, arguments: &[&str]) -> String {
        let name = "once";
        let once = ["run", "--detach", "--no-deps", "--name", name, service];
        run(&mut self.compose(&[&once, arguments].concat()));
        let code = self.docker(&["wait", name]);
        let log = log_of(&self.engine, name);
        self.docker(&["rm", name]);
        assert_eq!(code, "0", "{service} {arguments:?}: {log}");
        log
    }

    /// Runs a command in a running service; returns its output.
    pub fn exec(&self, service: &str, program: &[&str]) -> String {
        self.docker(&[&["exec", &self.container(service)], program].concat())
    }

    /// Whether a service can connect to another one, or what happens instead.
    pub fn connect(&self, from: &str, to: &str, port: u16) -> Connection {
        let script = format!("exec 3<>/dev/tcp/{to}/{port}");
        let exec = ["exec", &self.container(from), "timeout", "1", "bash", "-c", &script];
        let output = self.engine.docker(&exec).output().expect("docker is installed");
        match output.status.code() {
            Some(0) => Connection::Open,
            // What `timeout` exits with.
            Some(124) => Connection::Silent,
            _ => Connection::Refused,
        }
    }

    /// Runs `redis-cli` in the service `redis`, as a user who may do everything.
    pub fn redis_cli(&self, command: &[&str]) -> String {
        let login = ["redis-cli", "--no-auth-warning", "--user", REDIS_ADMINISTRATOR, "--pass", "any"];
        self.exec("redis", &[&login, command].concat())
    }

    /// The address of a service that clients of its first network have: HAProxy is on `published`, replicas
    /// trust those on `edge`.
    pub fn address(&self, service: &str, port: u16) -> SocketAddr {
        let networks = self.inspect(service)["NetworkSettings"]["Networks"].take();
        let of = |network: &str| networks[format!("{PROJECT}_{network}")]["IPAddress"].as_str();
        let address = of("published").or_else(|| of("edge")).expect("an address on one of these networks");
        SocketAddr::new(address.parse().expect("an address"), port)
    }

    /// Addresses that clients in the network of the engine may have.
    pub fn client_address(number: u16) -> Ipv4Addr {
        Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + u32::from(number))
    }

    /// Everything that a service has written to its log.
    pub fn log(&self, service: &str) -> String {
        log_of(&self.engine, &self.container(service))
    }

    /// What the engine says about the container of a service.
    pub fn inspect(&self, service: &str) -> Value {
        let output = self.docker(&["inspect", &self.container(service)]);
        serde_json::from_str::<Value>(&output).expect("JSON")[0].take()
    }

    fn container(&self, service: &str) -> String {
        let container = self.find_container(service);
        assert!(!container.is_empty(), "{service} has no container");
        container
    }

    /// The id of the container of a service; empty if it has none.
    fn find_container(&self, service: &str) -> String {
        self.containers(&[&format!("service={service}"), "oneoff=False"])
    }

    /// Prints the ends of the logs of these containers.
    fn print_logs(&self, containers: &str) {
        for container in containers.lines() {
            let name = self.engine.docker(&["inspect", "--format={{.Name}}", container]).output();
            let name = name.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            let log = log_of(&self.engine, container);
            let lines: Vec<_> = log.lines().collect();
            let end = &lines[lines.len().saturating_sub(LOG_LINES)..];
            eprintln!("the log of {}: {}", name.unwrap_or_default().trim(), end.join("\n  "));
        }
    }

    /// The ids of the containers with these labels, whether they run or not.
    pub fn containers(&self, labels: &[&str]) -> String {
        let mut command = self.engine.docker(&["ps", "--all", "--quiet"]);
        command.args(labels.iter().map(|label| format!("--filter=label=com.docker.compose.{label}")));
        let output = command.output().expect("docker is installed");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }
}

impl Drop for ComposeProject {
    fn drop(&mut self) {
        // A drill may have filled it.
        self.engine.resize_disk(DISK_SIZE);
        let containers = self.containers(&[]);
        if std::thread::panicking() {
            self.print_logs(&containers);
        }
        let remove: Vec<_> = ["rm", "--force"].into_iter().chain(containers.lines()).collect();
        let _ = self.engine.docker(&remove).output();
        let _ = self.compose(&["down", "--volumes"]).output();
    }
}

/// A copy of the files that `make up` needs, without those that it writes.
fn copy_of_files() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["Makefile", "compose", "docker-compose.yml", "monitoring", "scripts"] {
        copy(&workspace_root().join(name), folder.path());
    }
    let _ = std::fs::remove_dir_all(folder.path().join("compose/secrets"));
    std::fs::write(folder.path().join("compose/local.env"), "").expect("a file");
    folder
}

/// Everything that a container has written to its log.
fn log_of(engine: &Engine, container: &str) -> String {
    let output = engine.docker(&["logs", container]).output().expect("docker is installed");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}
