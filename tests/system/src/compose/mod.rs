//! Runs the services of docker-compose.yml without a container engine: each in a network namespace of its own,
//! as the user and with the environment, command line and files that the compose file names.
//!
//! What differs from an engine: the programs and the root filesystem are those of this machine, without limits
//! on memory and CPU time. Needs root, iproute2, dnsmasq and the overlay filesystem.

mod container;
mod description;
mod images;
mod interpolation;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use chart_index_tests::{within, workspace_root};
use serde_json::Value;

use self::container::Container;
use self::description::Condition;
use crate::network::{self, Networks};

/// Maximum time until a service is healthy, and until a one-shot service ends.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// A user of Redis with all permissions: drills change its configuration.
const REDIS_ADMINISTRATOR: &str = "drill";

/// Time between two health checks while a service starts. Engines wait for the `interval` of the check.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A compose project whose services run in network namespaces. Dropping the value ends all of its processes and
/// deletes its namespaces and files.
#[derive(Debug)]
pub struct ComposeProject {
    // Dropped in this order: no process is left when the namespaces and files are deleted.
    containers: BTreeMap<String, RefCell<Container>>,
    networks: Networks,
    _folder: ProjectFolder,
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

#[derive(Debug)]
struct ProjectFolder(PathBuf);

impl Drop for ProjectFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl ComposeProject {
    /// Runs a test on a thread in the host namespace of a project with these services, which are not started
    /// yet. The variables are those that the compose file interpolates.
    pub fn run(services: &[&str], variables: &[(&str, &str)], test: impl AsyncFnOnce(Self) + Send) {
        Self::remove_leftovers_once();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let project = Self::create(services, variables);
                project.networks.enter_host();
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(test(project));
            });
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        });
    }

    /// Calls [`remove_leftovers`](Self::remove_leftovers) unless this process has called it here before.
    pub fn remove_leftovers_once() {
        static ONCE: Once = Once::new();
        ONCE.call_once(Self::remove_leftovers);
    }

    /// Ends the processes and deletes the namespaces and folders of projects whose test process is dead.
    pub fn remove_leftovers() {
        network::sweep();
    }

    fn create(services: &[&str], variables: &[(&str, &str)]) -> Self {
        static PROJECTS: AtomicU32 = AtomicU32::new(0);
        let name = network::project_name(PROJECTS.fetch_add(1, Ordering::Relaxed));
        let folder = ProjectFolder(std::env::temp_dir().join(&name));
        std::fs::create_dir(&folder.0).expect("a folder");
        let (document, directory) = document(&folder.0.join("secrets"), variables);
        let mut descriptions = description::services(&document, &directory);
        descriptions.retain(|name, _| services.contains(&name.as_str()));
        assert_eq!(descriptions.len(), services.len(), "the compose file has all of {services:?}");
        let networks: BTreeMap<_, _> =
            descriptions.iter().map(|(name, service)| (name.clone(), service.networks.clone())).collect();
        let networks = Networks::create(&name, &networks, &description::subnets(&document));
        let volumes = folder.0.join("volumes");
        let containers = descriptions.into_iter().map(|(name, description)| {
            let (namespace, files) = (networks.namespace(&name), folder.0.join(&name));
            (name, RefCell::new(Container::new(description, namespace, files, volumes.clone())))
        });
        Self { containers: containers.collect(), networks, _folder: folder }
    }

    /// Starts all services in the order of their dependencies, and waits until each is healthy or has
    /// completed.
    pub async fn up(&self) {
        let mut done = BTreeSet::new();
        while done.len() < self.containers.len() {
            let next = self.containers.keys().find(|name| {
                let dependencies = self.dependencies(name);
                !done.contains(*name) && dependencies.iter().all(|(name, _)| done.contains(name))
            });
            let name = next.expect("the dependencies have no cycle").clone();
            self.start(&name).await;
            done.insert(name);
        }
    }

    /// The dependencies of a service within this project.
    fn dependencies(&self, service: &str) -> Vec<(String, Condition)> {
        let dependencies = self.container(service).borrow().description.dependencies.clone();
        dependencies.into_iter().filter(|(name, _)| self.containers.contains_key(name)).collect()
    }

    /// Whether other services wait for the end of this one, or its restart policy says that it ends.
    fn is_one_shot(&self, service: &str) -> bool {
        let awaited = self
            .containers
            .keys()
            .any(|name| self.dependencies(name).contains(&(service.to_owned(), Condition::Completed)));
        awaited || matches!(self.restart_policy(service).as_str(), "no" | "false")
    }

    /// Starts a service, and waits until it is healthy or has completed.
    pub async fn start(&self, service: &str) {
        self.launch(service);
        let started = Instant::now();
        if self.is_one_shot(service) {
            let code = self.exit_code(service, START_TIMEOUT).await;
            assert_eq!(code, 0, "{service}: {}", self.log(service));
        } else {
            self.wait_until_healthy(service).await;
        }
        eprintln!("{service} took {:.1?} to start", started.elapsed());
    }

    /// Starts a service without waiting.
    pub fn launch(&self, service: &str) {
        self.networks.set_connected(service, true);
        self.container(service).borrow_mut().start(None);
        self.update_names();
    }

    /// Waits until the health check of a service succeeds; returns at once if it has none.
    pub async fn wait_until_healthy(&self, service: &str) {
        let start = Instant::now();
        while !self.container(service).borrow().is_healthy() {
            let ended = self.container(service).borrow_mut().exit_code();
            let waited = start.elapsed();
            assert!(ended.is_none(), "{service} ended with {ended:?}: {}", self.log(service));
            assert!(waited < START_TIMEOUT, "{service} is not healthy: {}", self.log(service));
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    async fn exit_code(&self, service: &str, timeout: Duration) -> i32 {
        let (code, _) = within(timeout, async || self.container(service).borrow_mut().exit_code()).await;
        self.disconnect(service);
        code
    }

    /// Stops a service as engines do, which must end within its grace period; returns the exit code.
    pub async fn stop(&self, service: &str) -> i32 {
        self.container(service).borrow().terminate();
        let grace = self.container(service).borrow().description.stop_grace_period;
        self.exit_code(service, grace).await
    }

    /// Kills all processes of a service. Its address no longer responds, and its name no longer resolves.
    pub fn kill(&self, service: &str) {
        self.container(service).borrow_mut().kill();
        self.disconnect(service);
    }

    fn disconnect(&self, service: &str) {
        self.networks.set_connected(service, false);
        self.update_names();
    }

    /// Pauses a service that is a single process.
    pub fn freeze(&self, service: &str) {
        self.container(service).borrow().signal("STOP");
    }

    /// Resumes a frozen service.
    pub fn thaw(&self, service: &str) {
        self.container(service).borrow().signal("CONT");
    }

    /// Loses all packets between these services, without any response to the sender. Other connections are not
    /// affected.
    pub fn partition(&self, services: &[&str]) {
        self.networks.set_partitioned(services, true);
    }

    /// Ends a partition.
    pub fn heal(&self, services: &[&str]) {
        self.networks.set_partitioned(services, false);
    }

    /// Deletes the content of the volumes of a service that is not running.
    pub fn empty_volumes(&self, service: &str) {
        let container = self.container(service).borrow();
        assert!(!container.is_running(), "{service} is running");
        for volume in container.volumes() {
            std::fs::remove_dir_all(&volume).expect("the volume is deleted");
            container.create_volume(&volume);
        }
    }

    /// Runs the program of a service that is not running with other arguments, like `docker compose run`.
    pub fn run_once(&self, service: &str, arguments: &[&str]) -> Output {
        self.networks.set_connected(service, true);
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        self.container(service).borrow().run(&arguments)
    }

    /// Runs a command in a running service, like `docker compose exec`; returns its output.
    pub fn exec(&self, service: &str, program: &[&str]) -> String {
        let program: Vec<_> = program.iter().map(ToString::to_string).collect();
        let output = self.container(service).borrow().exec(&program).output().expect("nsenter is installed");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{service}: {program:?}: {error}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Whether a service can connect to another one, or what happens instead.
    pub fn connect(&self, from: &str, to: &str, port: u16) -> Connection {
        let script = format!("exec 3<>/dev/tcp/{to}/{port}");
        let program = ["timeout", "1", "bash", "-c", &script].map(str::to_owned);
        let status = self.container(from).borrow().exec(&program).stderr(Stdio::null()).status();
        match status.expect("nsenter is installed").code() {
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

    /// The address of a service, for clients in the host namespace.
    pub fn address(&self, service: &str, port: u16) -> SocketAddr {
        SocketAddr::from((self.networks.address(service), port))
    }

    /// Addresses that clients in the host namespace may have.
    pub fn client_address(number: u16) -> Ipv4Addr {
        Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + u32::from(number))
    }

    /// Everything that a service has written to its log.
    pub fn log(&self, service: &str) -> String {
        self.container(service).borrow().log()
    }

    /// The restart policy of a service; `no` by default.
    pub fn restart_policy(&self, service: &str) -> String {
        self.container(service).borrow().description.restart.clone()
    }

    /// The variables with which a service runs.
    pub fn environment(&self, service: &str) -> BTreeMap<String, String> {
        self.container(service).borrow().description.environment.clone()
    }

    fn container(&self, service: &str) -> &RefCell<Container> {
        self.containers.get(service).unwrap_or_else(|| panic!("no such service: {service}"))
    }

    /// Updates the names that containers resolve to those of the running services on their networks.
    fn update_names(&self) {
        for (name, container) in &self.containers {
            let neighbours = self.networks.neighbours(name).into_iter();
            let running = neighbours.filter(|(_, service)| self.container(service).borrow().is_running());
            let hosts: Vec<_> = running.map(|(address, service)| format!("{address} {service}\n")).collect();
            container.borrow_mut().set_names(&hosts.concat());
        }
    }
}

/// The compose file with its variables replaced, and its folder. `COMPOSE_FILE` may name another file. Secrets
/// are generated in a folder of the project.
fn document(secrets: &Path, variables: &[(&str, &str)]) -> (Value, PathBuf) {
    let file = std::env::var_os("COMPOSE_FILE");
    let file = file.map_or_else(|| workspace_root().join("docker-compose.yml"), PathBuf::from);
    let folder = file.parent().expect("a folder").to_path_buf();
    output_of(Command::new(folder.join("scripts/compose")).arg("secrets").arg(secrets));
    append_administrator(&secrets.join("redis_users"));
    let rendered =
        output_of(Command::new(workspace_root().join("scripts/deployment")).arg("compose").arg(&file));
    let mut document = serde_json::from_slice(&rendered).expect("JSON");
    let secrets = ("SECRETS", secrets.to_str().expect("a readable path"));
    let variables = variables.iter().chain([&secrets]);
    let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    interpolation::interpolate(&mut document, &variables);
    (document, folder)
}

/// Adds a user to the ACL file of Redis who may do everything: drills change its configuration.
fn append_administrator(users: &Path) {
    let content = std::fs::read_to_string(users).expect("a file");
    std::fs::write(users, format!("{content}user {REDIS_ADMINISTRATOR} on nopass ~* &* +@all\n"))
        .expect("a file");
}

fn output_of(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("the script starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
