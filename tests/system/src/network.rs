//! Network namespaces: one for each service, and one for the host, which has the bridge between them.

use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// How the names of all namespaces and folders begin; the process id of the owner follows.
const PREFIX: &str = "chart-index-history-";

/// The addresses of services.
pub const SUBNET: &str = "172.31.0.0/24";

/// The address of the host.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 1);

/// The addresses of clients: the host namespace accepts all of 198.18.0.0/16, a range for benchmarks
/// (RFC 2544).
const CLIENTS: &str = "198.18.0.0/16";

/// The namespace of the test process, in [`Network::deliver`].
pub const HOST: &str = "";

/// A hardware address that no interface has.
const LOST: &str = "02:ff:ff:ff:ff:ff";

/// The namespaces of a project. Dropping the value deletes them.
#[derive(Debug)]
pub struct Network {
    name: String,
    services: Vec<&'static str>,
}

/// A name for the namespaces of a project of this process.
pub fn project_name(number: u32) -> String {
    format!("{PREFIX}{}-{number}", std::process::id())
}

impl Network {
    /// Creates the namespaces of these services.
    pub fn create(name: &str, services: Vec<&'static str>) -> Self {
        let network = Self { name: name.to_owned(), services };
        network.build();
        network
    }

    fn build(&self) {
        ip(&["netns", "add", &self.host()]);
        let mut host = vec![
            "link set lo up".to_owned(),
            format!("route add local {CLIENTS} dev lo"),
            "link add bridge0 type bridge".to_owned(),
            format!("addr add {GATEWAY}/24 dev bridge0"),
            format!("link set bridge0 address {} up", hardware_address(GATEWAY)),
        ];
        for (number, service) in self.services.iter().enumerate() {
            let (namespace, address) = (self.namespace(service), self.address(service));
            let hardware = hardware_address(address);
            ip(&["netns", "add", &namespace]);
            host.push(format!(
                "link add port{number} type veth peer name eth0 address {hardware} netns {namespace}"
            ));
            host.push(format!("link set port{number} master bridge0 up"));
            host.push(neighbour(address, &hardware, "bridge0"));
        }
        batch(&self.host(), &host);
        for service in &self.services {
            batch(&self.namespace(service), &self.commands_of(service));
        }
    }

    /// The commands that configure the namespace of a service. Neighbours are permanent: without ARP, packets
    /// to a service that does not respond are lost without an error, as they are behind a router.
    fn commands_of(&self, service: &str) -> Vec<String> {
        let mut commands = vec![
            "link set lo up".to_owned(),
            format!("addr add {}/24 dev eth0", self.address(service)),
            "link set eth0 up".to_owned(),
        ];
        let peers = self.services.iter().filter(|peer| **peer != service).map(|peer| self.address(peer));
        for peer in peers.chain([GATEWAY]) {
            commands.push(neighbour(peer, &hardware_address(peer), "eth0"));
        }
        commands.push(format!("route add {CLIENTS} via {GATEWAY}"));
        commands
    }

    /// The namespace of a service.
    pub fn namespace(&self, service: &str) -> String {
        format!("{}-{service}", self.name)
    }

    fn host(&self) -> String {
        format!("{}.host", self.name)
    }

    /// Moves this thread into the namespace of the host. Threads that it starts later are there as well.
    pub fn enter_host(&self) {
        enter(&Path::new("/run/netns").join(self.host()));
    }

    /// The address of a service.
    pub fn address(&self, service: &str) -> Ipv4Addr {
        let number = self.services.iter().position(|name| *name == service);
        let number = number.unwrap_or_else(|| panic!("no such service: {service}"));
        Ipv4Addr::from_bits(GATEWAY.to_bits() + 1 + u32::try_from(number).expect("few services"))
    }

    /// Delivers what a service sends to an address to this service, which must have the address as well.
    /// Without a service the packets are lost, without any response to the sender.
    pub fn deliver(&self, from: &str, address: Ipv4Addr, to: Option<&str>) {
        let hardware = to.map_or_else(|| LOST.to_owned(), |to| hardware_address(self.address(to)));
        let is_host = from == HOST;
        let (namespace, device) =
            if is_host { (self.host(), "bridge0") } else { (self.namespace(from), "eth0") };
        batch(&namespace, &[neighbour(address, &hardware, device)]);
    }

    /// Gives a further address to a service.
    pub fn add_address(&self, service: &str, address: Ipv4Addr) {
        batch(&self.namespace(service), &[format!("addr add {address}/32 dev eth0")]);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for service in &self.services {
            delete(&self.namespace(service));
        }
        delete(&self.host());
    }
}

/// The command that sends packets for an address to this hardware address.
fn neighbour(address: Ipv4Addr, hardware: &str, device: &str) -> String {
    format!("neigh replace {address} lladdr {hardware} dev {device} nud permanent")
}

/// A locally administered hardware address that follows from the address.
fn hardware_address(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// Once in a process, deletes the namespaces of dead test processes, with the processes in them, and their
/// folders.
pub fn sweep_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(sweep);
}

fn sweep() {
    let namespaces = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for entry in namespaces.filter(|entry| owner_is_dead(entry.file_name().to_str())) {
        let namespace = entry.file_name().to_str().expect("our name").to_owned();
        kill_processes(&namespace);
        delete(&namespace);
    }
    let folders = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in folders.filter(|entry| owner_is_dead(entry.file_name().to_str())) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

/// Whether a namespace belongs to a test process that no longer exists.
fn owner_is_dead(name: Option<&str>) -> bool {
    let owner = name.and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
    owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists())
}

/// Kills the processes in a namespace of a history, and waits until they have ended.
pub fn kill_processes(namespace: &str) {
    loop {
        let listed = Command::new("ip").args(["netns", "pids", namespace]).output().expect("ip is installed");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let processes: Vec<_> = listed.split_whitespace().collect();
        if processes.is_empty() {
            return;
        }
        // Those that have ended meanwhile are an error of kill, and gone.
        let _ = Command::new("kill").arg("-KILL").args(processes).stderr(Stdio::null()).status();
    }
}

/// Moves this thread into a network namespace.
pub(crate) fn enter(namespace: &Path) {
    let namespace = File::open(namespace).expect("the namespace");
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .expect("the thread may change its namespace");
}

fn delete(namespace: &str) {
    let _ = Command::new("ip").args(["netns", "delete", namespace]).stderr(Stdio::null()).status();
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().expect("ip is installed");
    assert!(status.success(), "ip {arguments:?}");
}

/// Runs commands of `ip` in a namespace.
fn batch(namespace: &str, commands: &[String]) {
    let mut process = Command::new("ip")
        .args(["-n", namespace, "-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("ip is installed");
    let mut input = process.stdin.take().expect("the input is piped");
    input.write_all((commands.join("\n") + "\n").as_bytes()).expect("ip reads");
    drop(input);
    assert!(process.wait().expect("ip ends").success(), "{namespace}: {commands:#?}");
}
