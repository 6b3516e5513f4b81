//! The `kubectl` commands of the documentation, without a cluster: `kubectl` accepts their arguments, and what
//! they name is in the overlays, or created by operators or by other commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use chart_index_system_tests::{code_blocks, inline_code, ping_as_operator, read};
use chart_index_tests::{program_command, workspace_root};
use serde_json::{Value, json};

use super::objects::{Objects, array, name, text};
use super::references::secret_files;
use super::rendered;
use crate::documents::PAGES;

/// Flags whose value is the next argument. That of others follows a `=`.
const FLAGS_WITH_VALUES: &[&str] =
    &["--namespace", "--container", "--image", "--overrides", "--timeout", "--selector", "-f", "-k"];

/// Programs of images that this repository does not build, by the name of the container.
const PROGRAMS: &[(&str, &[&str])] =
    &[("library", &["tar"]), ("meilisearch", &["sh"]), ("postgres", &["psql"]), ("redis", &["sh"])];

/// What `kubectl` prints when it accepts the arguments, and then has neither a server nor the file that another
/// command writes.
const WITHOUT_A_CLUSTER: &[&str] =
    &["connection refused", "was refused", "no such file", "no objects passed"];

#[test]
fn kubectl_accepts_every_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let configuration = folder.path().join("kubeconfig");
    let context = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "none",
        "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
        "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "none", "user": {}}],
    });
    fs::write(&configuration, context.to_string()).expect("a configuration");
    let calls = documented_calls();
    assert!(calls.len() > 25, "{calls:#?}");
    for arguments in calls {
        let run = Command::new(workspace_root().join("scripts/deployment"))
            .arg("kubectl")
            .args(&arguments)
            .current_dir(workspace_root())
            .env("KUBECONFIG", &configuration)
            .stdin(Stdio::null())
            .output()
            .expect("the script starts");
        let errors = String::from_utf8_lossy(&run.stderr);
        let is_accepted = run.status.success() || WITHOUT_A_CLUSTER.iter().any(|end| errors.contains(end));
        assert!(is_accepted, "kubectl {arguments:?}\n{errors}");
    }
}

#[test]
fn commands_name_what_exists() {
    let rendered = ["production", "recovery"].map(rendered).concat();
    let objects = Objects::new("production", &rendered);
    let calls: Vec<Call> = documented_calls().iter().map(|arguments| Call::parse(arguments)).collect();
    let cluster = ClusterState::new(&objects, &calls);
    let unknown: Vec<_> = calls.iter().flat_map(|call| cluster.unknown(call)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// Whether `chart-indexer` has this subcommand with these flags.
fn is_subcommand<'a>(arguments: impl Iterator<Item = &'a str>) -> bool {
    let mut command = program_command("chart-indexer");
    command.args(arguments).arg("--help").output().expect("the program is built").status.success()
}

/// The arguments of each call of `kubectl` on the pages. The shell itself reads the commands, without any other
/// program on its path.
fn documented_calls() -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recorder = folder.path().join("kubectl");
    fs::write(&recorder, "#!/bin/sh\nprintf '%s\\0' \"$@\" '' >>\"$CALLS\"\n").expect("a script");
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).expect("a program");
    let mut calls = Vec::new();
    for page in PAGES {
        let page = read(page);
        let blocks = code_blocks(&page, "sh").into_iter().map(str::to_owned);
        for code in blocks.chain(inline_code(&page)).filter(|code| code.contains("kubectl ")) {
            calls.extend(recorded_calls(folder.path(), &with_arguments(&code)));
        }
    }
    calls
}

fn recorded_calls(folder: &Path, code: &str) -> Vec<Vec<String>> {
    let record = folder.join("calls");
    fs::write(&record, "").expect("a file");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", code]).current_dir(folder).env_clear().env("PATH", folder).env("CALLS", &record);
    // Other programs are not found.
    let output = shell.stdin(Stdio::null()).output().expect("a shell");
    let calls = fs::read_to_string(&record).expect("UTF-8");
    let calls: Vec<_> =
        calls.split_terminator("\0\0").map(|call| call.split('\0').map(str::to_owned).collect()).collect();
    assert!(!calls.is_empty(), "{code}\n{}", String::from_utf8_lossy(&output.stderr));
    calls
}

/// A command of the runbook with harmless arguments.
fn with_arguments(code: &str) -> String {
    code.replace("AS_OPERATOR", &ping_as_operator()).replace("COMMAND", "verify").replace("/PATH", "/health")
}

/// A call of `kubectl`.
#[derive(Debug, Default)]
struct Call {
    arguments: Vec<String>,
    verb: String,
    /// Without the verb and flags.
    words: Vec<String>,
    flags: BTreeMap<String, String>,
    /// What runs in a container.
    program: Vec<String>,
}

impl Call {
    fn parse(arguments: &[String]) -> Self {
        let mut call = Self { arguments: arguments.to_vec(), ..Self::default() };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.split_once('=') {
                _ if argument == "--" => call.program = rest.by_ref().cloned().collect(),
                Some((flag, value)) if flag.starts_with("--") => {
                    call.flags.insert(flag.into(), value.into());
                }
                _ if FLAGS_WITH_VALUES.contains(&argument.as_str()) => {
                    call.flags.insert(argument.clone(), rest.next().cloned().unwrap_or_default());
                }
                _ if argument.starts_with('-') => {}
                _ if call.verb.is_empty() => call.verb.clone_from(argument),
                _ => call.words.push(argument.clone()),
            }
        }
        call
    }

    /// The object that it creates, as `kind/name`.
    fn created(&self) -> Option<String> {
        match (self.verb.as_str(), &self.words[..]) {
            ("run", [name]) => Some(format!("pod/{name}")),
            ("create", [kind, .., name]) => Some(format!("{kind}/{name}")),
            _ => None,
        }
    }

    /// The kinds and the objects that it names, these as `kind/name`.
    fn named(&self) -> (Vec<&str>, Vec<String>) {
        let (mut kinds, mut objects) = (Vec::new(), Vec::new());
        let words = match self.verb.as_str() {
            "exec" | "logs" | "debug" | "port-forward" => {
                objects.extend(
                    self.words
                        .first()
                        .map(|word| if word.contains('/') { word.clone() } else { format!("pod/{word}") }),
                );
                &[][..]
            }
            "rollout" => &self.words[1..],
            "delete" | "describe" | "get" | "wait" => &self.words[..],
            _ => &[][..],
        };
        for word in words {
            match kinds.last() {
                _ if word.contains('/') => objects.push(word.clone()),
                Some(kind) => objects.push(format!("{kind}/{word}")),
                None => kinds.extend(word.split(',')),
            }
        }
        objects.extend(self.flags.get("--from").cloned());
        (kinds, objects)
    }
}

/// A container in which a command runs.
struct Container<'a> {
    container: &'a Value,
    /// The files with secrets.
    files: BTreeSet<String>,
}

/// What commands may name.
struct ClusterState<'a> {
    objects: &'a Objects<'a>,
    /// The containers of the pods of each object, by `kind/name`.
    containers: BTreeMap<String, Vec<Container<'a>>>,
    /// The containers of pods that an operator or a command creates.
    others: BTreeMap<String, &'static str>,
}

impl<'a> ClusterState<'a> {
    fn new(objects: &'a Objects<'a>, calls: &[Call]) -> Self {
        let mut state = Self { objects, containers: BTreeMap::new(), others: BTreeMap::new() };
        for object in objects.all() {
            state.containers.insert(title(object), Vec::new());
        }
        for workload in objects.workloads() {
            let containers = || {
                let of = |container| Container { container, files: secret_files(&workload, container) };
                workload.containers().into_iter().map(of).collect::<Vec<_>>()
            };
            state.containers.insert(title(workload.object), containers());
            if workload.object["kind"] == "StatefulSet" {
                for number in 0..workload.object["spec"]["replicas"].as_u64().unwrap_or_default() {
                    let pod = format!("{}-{number}", name(workload.object));
                    for claim in array(&workload.object["spec"]["volumeClaimTemplates"]) {
                        state.containers.insert(format!("pvc/{}-{pod}", name(claim)), Vec::new());
                    }
                    state.containers.insert(format!("pod/{pod}"), containers());
                }
            }
        }
        for cluster in objects.of_kind("Cluster") {
            let instances = 1..=cluster["spec"]["instances"].as_u64().unwrap_or_default();
            let pods = instances.map(|number| format!("pod/{}-{number}", name(cluster)));
            let services = ["rw", "ro", "r"].map(|service| format!("service/{}-{service}", name(cluster)));
            state.others.extend(pods.chain(services).map(|title| (title, "postgres")));
        }
        state.others.extend(calls.iter().filter_map(Call::created).map(|title| (title, "library")));
        state
    }

    /// What the call names and does not exist.
    fn unknown(&self, call: &Call) -> Vec<String> {
        let (kinds, objects) = call.named();
        let mut unknown = Vec::new();
        let is_kind = |kind: &str| {
            let with_others = ["backup", "pod", "pvc"].contains(&kind);
            with_others || self.containers.keys().any(|title| title.split('/').next() == Some(kind))
        };
        unknown.extend(kinds.iter().filter(|kind| !is_kind(kind)).map(|kind| format!("kind {kind}")));
        let exists = |title: &&String| {
            is_placeholder(title) || self.containers.contains_key(*title) || self.others.contains_key(*title)
        };
        unknown.extend(objects.iter().filter(|title| !exists(title)).cloned());
        let namespaces = || self.objects.of_kind("Namespace").map(name);
        let namespace =
            call.flags.get("--namespace").filter(|namespace| !namespaces().any(|one| one == **namespace));
        unknown.extend(namespace.map(|namespace| format!("namespace {namespace}")));
        let selector = call.flags.get("--selector").filter(|selector| !self.has_label(selector));
        unknown.extend(selector.map(|selector| format!("label {selector}")));
        if unknown.is_empty() {
            unknown.extend(objects.first().and_then(|title| self.unknown_in_pod(call, title)));
        }
        unknown.into_iter().map(|unknown| format!("{:?}: {unknown}", call.arguments)).collect()
    }

    fn has_label(&self, selector: &str) -> bool {
        let (label, value) = selector.split_once('=').unwrap_or((selector, ""));
        self.objects.all().iter().any(|object| object["metadata"]["labels"][label] == value)
    }

    /// The container, program, file, database or port that the call names and that its pod does not have.
    fn unknown_in_pod(&self, call: &Call, title: &str) -> Option<String> {
        let wanted = call.flags.get("--container").or(call.flags.get("--target"));
        if let Some(container) = self.others.get(title) {
            return unknown_in_other(self.objects, call, container);
        }
        let all: Vec<&Container> = match self.containers.get(title) {
            Some(containers) => containers.iter().collect(),
            None => self.containers.values().flatten().collect(),
        };
        let is_wanted = |one: &&&Container| wanted.is_none_or(|wanted| one.container["name"] == **wanted);
        let Some(container) = all.iter().find(is_wanted) else {
            return wanted.map(|wanted| format!("container {wanted}"));
        };
        container.unknown(call)
    }
}

/// The same of a pod that is in no overlay.
fn unknown_in_other(objects: &Objects, call: &Call, container: &str) -> Option<String> {
    let wanted = call.flags.get("--container").filter(|wanted| *wanted != container);
    let database = |name: &&String| {
        let clusters = || objects.of_kind("Cluster");
        container == "postgres"
            && !clusters().any(|one| one["spec"]["bootstrap"]["initdb"]["database"] == ***name)
    };
    let database = call.program.get(1).filter(database).map(|name| format!("database {name}"));
    let program = call.program.first().filter(|program| !has_program(container, program));
    let program = program.map(|program| format!("program {program}"));
    wanted.map(|wanted| format!("container {wanted}")).or(program).or(database)
}

impl Container<'_> {
    fn unknown(&self, call: &Call) -> Option<String> {
        let ports = array(&self.container["ports"]);
        let is_port = |port: &str| {
            ports.iter().any(|one| port.parse::<u64>().is_ok_and(|port| one["containerPort"] == port))
        };
        let requested = call.program.iter().flat_map(|word| word.split("http://127.0.0.1:").skip(1));
        let requested = requested.filter_map(|rest| rest.split('/').next());
        let forwarded = call.words.get(1).filter(|_| call.verb == "port-forward").map(String::as_str);
        let port = requested.chain(forwarded).find(|port| !is_port(port)).map(|port| format!("port {port}"));
        let is_lost = |path: &&str| path.starts_with("/run/secrets/") && !self.files.contains(*path);
        let is_separator = |letter: char| letter.is_whitespace() || "()\"'".contains(letter);
        let mut words = call.program.iter().flat_map(|word| word.split(is_separator));
        let file = words.find(is_lost).map(|path| format!("file {path}"));
        self.unknown_program(&call.program).or(file).or(port)
    }

    fn unknown_program(&self, command: &[String]) -> Option<String> {
        let (program, arguments) = command.split_first()?;
        if !text(&self.container["command"][0]).starts_with("/usr/local/bin/") {
            let is_known = has_program(text(&self.container["name"]), program);
            return (!is_known).then(|| format!("program {program}"));
        }
        if !text(&self.container["command"][0]).ends_with(&format!("/{program}")) {
            return Some(format!("program {program}"));
        }
        (!is_subcommand(arguments.iter().map(String::as_str))).then(|| command.join(" "))
    }
}

fn has_program(container: &str, program: &str) -> bool {
    PROGRAMS.iter().any(|(of, programs)| *of == container && programs.contains(&program))
}

/// Whether the name is for the reader to replace, as in `job/NAME`.
fn is_placeholder(title: &str) -> bool {
    title.rsplit('/').next().is_some_and(|name| name.chars().all(|letter| letter.is_ascii_uppercase()))
}

/// The kind and the name, as commands name an object.
fn title(object: &Value) -> String {
    format!("{}/{}", text(&object["kind"]).to_lowercase(), name(object))
}
