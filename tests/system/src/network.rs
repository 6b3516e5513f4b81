//! Network namespaces: one for each service, and one for the host, which has a bridge for each network.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// How the names of all namespaces and folders begin; the process id of the owner follows.
const PREFIX: &str = "chart-index-drill-";

/// The addresses of clients: the host namespace accepts all of 198.18.0.0/16, a range for benchmarks
/// (RFC 2544).
const CLIENTS: &str = "198.18.0.0/16";

/// The namespace of the test process, in [`Networks::deliver`].
pub const HOST: &str = "";

/// A hardware address that no interface has.
const LOST: &str = "02:ff:ff:ff:ff:ff";

/// The namespaces of a project. Dropping the value deletes them.
#[derive(Debug)]
pub struct Networks {
    name: String,
    services: Vec<String>,
    interfaces: Vec<Interface>,
}

/// The interface of a service on a network.
#[derive(Debug)]
struct Interface {
    service: String,
    network: String,
    address: Ipv4Addr,
    hardware_address: String,
    /// The end in the host namespace, a port of the bridge.
    port: String,
    /// The end in the namespace of the service.
    device: String,
}

/// A network: its bridge and the address of the host.
struct Network {
    bridge: String,
    gateway: Ipv4Addr,
    prefix_length: u8,
}

/// A name for the namespaces of a project of this process.
pub fn project_name(number: u32) -> String {
    format!("{PREFIX}{}-{number}", std::process::id())
}

impl Networks {
    /// Creates the namespaces of these services, each with the networks that it is on.
    pub fn create(
        name: &str,
        services: &BTreeMap<String, Vec<String>>,
        subnets: &BTreeMap<String, Option<String>>,
    ) -> Self {
        let networks: BTreeMap<_, _> = (0_u8..)
            .zip(subnets)
            .map(|(number, (network, subnet))| (network.clone(), Network::new(number, subnet.as_deref())))
            .collect();
        let networks_of_services = Self {
            name: name.to_owned(),
            services: services.keys().cloned().collect(),
            interfaces: interfaces(services, &networks),
        };
        networks_of_services.build(&networks);
        networks_of_services
    }

    fn build(&self, networks: &BTreeMap<String, Network>) {
        ip(&["netns", "add", &self.host()]);
        let mut host = vec!["link set lo up".to_owned(), format!("route add local {CLIENTS} dev lo")];
        for Network { bridge, gateway, prefix_length } in networks.values() {
            host.push(format!("link add {bridge} type bridge"));
            host.push(format!("addr add {gateway}/{prefix_length} dev {bridge}"));
            host.push(format!("link set {bridge} address {} up", hardware_address(*gateway)));
        }
        for service in &self.services {
            ip(&["netns", "add", &self.namespace(service)]);
        }
        for interface in &self.interfaces {
            let Interface { service, network, address, hardware_address, port, device } = interface;
            let namespace = self.namespace(service);
            let bridge = &networks[network].bridge;
            host.push(format!(
                "link add {port} type veth peer name {device} address {hardware_address} netns {namespace}"
            ));
            host.push(format!("link set {port} master {bridge}"));
            host.push(format!(
                "neigh replace {address} lladdr {hardware_address} dev {bridge} nud permanent"
            ));
        }
        batch(&self.host(), &host);
        for service in &self.services {
            batch(&self.namespace(service), &self.commands_of(service, networks));
        }
    }

    /// The commands that configure the namespace of a service. Neighbours are permanent: without ARP, packets
    /// to a service that does not respond are lost without an error, as they are behind a router.
    fn commands_of(&self, service: &str, networks: &BTreeMap<String, Network>) -> Vec<String> {
        let mut commands = vec!["link set lo up".to_owned()];
        for interface in self.interfaces.iter().filter(|interface| interface.service == service) {
            let Interface { network, address, device, .. } = interface;
            let Network { gateway, prefix_length, .. } = &networks[network];
            commands.push(format!("addr add {address}/{prefix_length} dev {device}"));
            commands.push(format!("link set {device} up"));
            let gateway_hardware = hardware_address(*gateway);
            commands.push(format!(
                "neigh replace {gateway} lladdr {gateway_hardware} dev {device} nud permanent"
            ));
            for peer in
                self.interfaces.iter().filter(|peer| peer.network == *network && peer.service != service)
            {
                let Interface { address, hardware_address, .. } = peer;
                commands.push(format!(
                    "neigh replace {address} lladdr {hardware_address} dev {device} nud permanent"
                ));
            }
        }
        if let Some(first) = self.interfaces.iter().find(|interface| interface.service == service) {
            commands.push(format!("route add {CLIENTS} via {}", networks[&first.network].gateway));
        }
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

    /// The address of a service on its first network.
    pub fn address(&self, service: &str) -> Ipv4Addr {
        let first = self.interfaces.iter().find(|interface| interface.service == service);
        first.unwrap_or_else(|| panic!("no such service: {service}")).address
    }

    /// Connects a service to its networks, or disconnects it: packets to it are lost.
    pub fn set_connected(&self, service: &str, connected: bool) {
        let state = if connected { "up" } else { "down" };
        let ports = self.interfaces.iter().filter(|interface| interface.service == service);
        batch(
            &self.host(),
            &ports.map(|interface| format!("link set {} {state}", interface.port)).collect::<Vec<_>>(),
        );
    }

    /// Delivers what a service sends to an address to this service, which must have the address as well.
    /// Without a service the packets are lost, without any response to the sender. Both are on the first
    /// network.
    pub fn deliver(&self, from: &str, address: Ipv4Addr, to: Option<&str>) {
        let hardware = to.map_or_else(|| LOST.to_owned(), |to| hardware_address(self.address(to)));
        let is_host = from == HOST;
        let (namespace, device) =
            if is_host { (self.host(), "bridge0") } else { (self.namespace(from), "eth0") };
        batch(&namespace, &[format!("neigh replace {address} lladdr {hardware} dev {device} nud permanent")]);
    }

    /// Gives a further address to a service on the first network.
    pub fn add_address(&self, service: &str, address: Ipv4Addr) {
        batch(&self.namespace(service), &[format!("addr add {address}/32 dev eth0")]);
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for service in &self.services {
            delete(&self.namespace(service));
        }
        delete(&self.host());
    }
}

impl Network {
    fn new(number: u8, subnet: Option<&str>) -> Self {
        let subnet = subnet.map_or_else(|| format!("172.31.{number}.0/24"), str::to_owned);
        let (first, prefix_length) = subnet.split_once('/').expect("a subnet");
        let first: Ipv4Addr = first.parse().expect("an address");
        Self {
            bridge: format!("bridge{number}"),
            gateway: Ipv4Addr::from_bits(first.to_bits() + 1),
            prefix_length: prefix_length.parse().expect("a prefix length"),
        }
    }
}

fn interfaces(
    services: &BTreeMap<String, Vec<String>>,
    networks: &BTreeMap<String, Network>,
) -> Vec<Interface> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for (service, joined) in services {
        for (number, network) in joined.iter().enumerate() {
            let gateway =
                networks.get(network).unwrap_or_else(|| panic!("no such network: {network}")).gateway;
            let members = interfaces.iter().filter(|interface| interface.network == *network).count();
            let member = u32::try_from(members + 1).expect("few services");
            let address = Ipv4Addr::from_bits(gateway.to_bits() + member);
            interfaces.push(Interface {
                service: service.clone(),
                network: network.clone(),
                address,
                hardware_address: hardware_address(address),
                port: format!("port{}", interfaces.len()),
                device: format!("eth{number}"),
            });
        }
    }
    interfaces
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

/// Kills the processes in a namespace of the drills, and waits until they have ended.
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
