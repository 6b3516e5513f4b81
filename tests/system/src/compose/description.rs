//! What a compose file says about a service, in the forms that this repository uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

/// A service of a compose file.
#[derive(Debug, Clone)]
pub(super) struct ServiceDescription {
    /// The image without its tag, such as `redis`.
    pub(super) image: String,
    /// `entrypoint`, if it replaces that of the image.
    pub(super) entrypoint: Option<Vec<String>>,
    /// `command`, if it replaces that of the image.
    pub(super) command: Option<Vec<String>>,
    /// `environment` and the variables of all `env_file`s.
    pub(super) environment: BTreeMap<String, String>,
    /// `user`, as `uid:gid`.
    pub(super) user: Option<String>,
    pub(super) working_directory: Option<String>,
    pub(super) read_only: bool,
    pub(super) networks: Vec<String>,
    pub(super) mounts: Vec<Mount>,
    pub(super) dependencies: Vec<(String, Condition)>,
    pub(super) healthcheck: Healthcheck,
    /// `restart`, by default `no`.
    pub(super) restart: String,
    pub(super) stop_grace_period: Duration,
}

/// Something mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mount {
    /// The path in the container.
    pub(super) target: String,
    pub(super) source: Source,
    pub(super) read_only: bool,
}

/// Where a mount comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A file or folder of the host.
    Path(PathBuf),
    Volume(String),
    /// Memory, with these mount options.
    Tmpfs(String),
}

/// What has to hold of a dependency before a service starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Started,
    Healthy,
    Completed,
}

/// How the health of a service is checked.
#[derive(Debug, Clone)]
pub(super) enum Healthcheck {
    /// The check of the image is disabled.
    None,
    /// The check of the image.
    OfImage,
    /// A command with its arguments.
    Command(Vec<String>),
}

/// The subnets that a compose file fixes, by the name of the network.
pub(super) fn subnets(document: &Value) -> BTreeMap<String, Option<String>> {
    let subnet = |network: &Value| network["ipam"]["config"][0]["subnet"].as_str().map(str::to_owned);
    let mut networks: BTreeMap<_, _> =
        entries(&document["networks"]).map(|(name, network)| (name.clone(), subnet(network))).collect();
    networks.entry("default".to_owned()).or_default();
    networks
}

/// The services of a compose file in this folder.
pub(super) fn services(document: &Value, folder: &Path) -> BTreeMap<String, ServiceDescription> {
    let services = entries(&document["services"]);
    services.map(|(name, service)| (name.clone(), service_of(service, document, folder))).collect()
}

fn service_of(service: &Value, document: &Value, folder: &Path) -> ServiceDescription {
    let image = service["image"].as_str().unwrap_or("chart-index");
    let image = image.split(['@', ':']).next().unwrap_or_default();
    ServiceDescription {
        image: image.rsplit('/').next().unwrap_or_default().to_owned(),
        entrypoint: words(&service["entrypoint"]),
        command: words(&service["command"]),
        environment: environment(service, folder),
        user: text(&service["user"]),
        working_directory: text(&service["working_dir"]),
        read_only: service["read_only"] == true,
        networks: networks(&service["networks"]),
        mounts: mounts(service, document, folder),
        dependencies: dependencies(&service["depends_on"]),
        healthcheck: healthcheck(&service["healthcheck"]),
        restart: text(&service["restart"]).unwrap_or_else(|| "no".to_owned()),
        stop_grace_period: duration(&service["stop_grace_period"]).unwrap_or(Duration::from_secs(10)),
    }
}

fn entries(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(boolean) => Some(boolean.to_string()),
        _ => None,
    }
}

/// The texts of a list, or the only one.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().filter_map(text).collect(),
        value => text(value).into_iter().collect(),
    }
}

/// The words of a command. One that is written as a text has no quotes here.
fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => None,
        Value::String(command) => {
            assert!(!command.contains(['"', '\'']), "write as a list: {command}");
            Some(command.split_whitespace().map(str::to_owned).collect())
        }
        value => Some(texts(value)),
    }
}

fn environment(service: &Value, folder: &Path) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let files = match &service["env_file"] {
        Value::Array(files) => files.clone(),
        Value::Null => Vec::new(),
        file => vec![file.clone()],
    };
    for file in files {
        let path = folder.join(text(&file).or_else(|| text(&file["path"])).expect("a path"));
        if file["required"] != false || path.exists() {
            variables.extend(read_variables(&path));
        }
    }
    match &service["environment"] {
        Value::Array(list) => variables.extend(list.iter().filter_map(Value::as_str).filter_map(variable)),
        object => variables
            .extend(entries(object).map(|(name, value)| (name.clone(), text(value).unwrap_or_default()))),
    }
    variables
}

/// The variables of an env file: a line each, `#` starts a comment line.
pub(super) fn read_variables(path: &Path) -> Vec<(String, String)> {
    let content = std::fs::read_to_string(path);
    let content = content.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = content.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let value = value.trim_matches('"').trim_matches('\'');
    Some((name.to_owned(), value.to_owned()))
}

fn networks(value: &Value) -> Vec<String> {
    let names: Vec<_> = match value {
        Value::Object(networks) => networks.keys().cloned().collect(),
        value => texts(value),
    };
    if names.is_empty() { vec!["default".to_owned()] } else { names }
}

fn mounts(service: &Value, document: &Value, folder: &Path) -> Vec<Mount> {
    let volumes = service["volumes"].as_array().into_iter().flatten().map(|volume| volume_of(volume, folder));
    let tmpfs = texts(&service["tmpfs"]).into_iter().map(|tmpfs| {
        let (target, options) = tmpfs.split_once(':').unwrap_or((&tmpfs, ""));
        Mount { target: target.to_owned(), source: Source::Tmpfs(options.to_owned()), read_only: false }
    });
    let secrets = files(service, document, "secrets", folder);
    let configs = files(service, document, "configs", folder);
    let mut mounts: Vec<_> = volumes.chain(tmpfs).chain(secrets).chain(configs).collect();
    // Parents before what is mounted below them.
    mounts.sort_unstable();
    mounts
}

fn volume_of(volume: &Value, folder: &Path) -> Mount {
    if let Some(short) = volume.as_str() {
        let mut parts = short.split(':');
        let (source, target) = (parts.next().unwrap_or_default(), parts.next().expect("a target"));
        let read_only = parts.next().is_some_and(|options| options.split(',').any(|option| option == "ro"));
        return Mount { target: target.to_owned(), source: source_of(source, folder), read_only };
    }
    let source = match volume["type"].as_str() {
        Some("tmpfs") => Source::Tmpfs(
            text(&volume["tmpfs"]["size"]).map_or_else(String::new, |size| format!("size={size}")),
        ),
        _ => source_of(volume["source"].as_str().expect("a source"), folder),
    };
    let target = text(&volume["target"]).expect("a target");
    Mount { target, source, read_only: volume["read_only"] == true }
}

fn source_of(source: &str, folder: &Path) -> Source {
    if source.starts_with(['.', '/']) {
        Source::Path(folder.join(source))
    } else {
        Source::Volume(source.to_owned())
    }
}

/// The files of `secrets` or `configs`.
fn files(service: &Value, document: &Value, kind: &str, folder: &Path) -> Vec<Mount> {
    let used = service[kind].as_array().into_iter().flatten();
    used.map(|file| {
        let name = text(file).or_else(|| text(&file["source"])).expect("a source");
        let default = if kind == "secrets" { format!("/run/secrets/{name}") } else { format!("/{name}") };
        let target = match text(&file["target"]) {
            Some(target) if target.starts_with('/') => target,
            Some(target) => format!("/run/secrets/{target}"),
            None => default,
        };
        let path =
            text(&document[kind][&name]["file"]).unwrap_or_else(|| panic!("{kind} {name} has no file"));
        Mount { target, source: Source::Path(folder.join(path)), read_only: true }
    })
    .collect()
}

fn dependencies(value: &Value) -> Vec<(String, Condition)> {
    match value {
        Value::Object(services) => services
            .iter()
            .map(|(name, dependency)| (name.clone(), condition(dependency["condition"].as_str())))
            .collect(),
        value => texts(value).into_iter().map(|name| (name, Condition::Started)).collect(),
    }
}

fn condition(condition: Option<&str>) -> Condition {
    match condition {
        Some("service_healthy") => Condition::Healthy,
        Some("service_completed_successfully") => Condition::Completed,
        Some("service_started") | None => Condition::Started,
        Some(other) => panic!("no such condition: {other}"),
    }
}

fn healthcheck(value: &Value) -> Healthcheck {
    if value["disable"] == true {
        return Healthcheck::None;
    }
    let shell = |command: String| Healthcheck::Command(vec!["/bin/sh".to_owned(), "-c".to_owned(), command]);
    match &value["test"] {
        Value::Null => Healthcheck::OfImage,
        Value::String(command) => shell(command.clone()),
        test => match texts(test).split_first() {
            Some((kind, command)) if kind == "CMD" => Healthcheck::Command(command.to_vec()),
            Some((kind, command)) if kind == "CMD-SHELL" => shell(command.join(" ")),
            _ => Healthcheck::None,
        },
    }
}

/// A duration such as `1m30s`, `500ms` or `10s`.
fn duration(value: &Value) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = value.as_str()?;
    while !rest.is_empty() {
        let unit_at = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, after) = rest.split_at(unit_at);
        let unit_end = after.find(|character: char| character.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            other => panic!("no such unit: {other}"),
        };
        total += Duration::from_millis(number.parse::<u64>().ok()? * milliseconds);
        rest = after;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, milliseconds) in [("1m30s", 90_000), ("500ms", 500), ("10s", 10_000), ("1h", 3_600_000)] {
            assert_eq!(duration(&json!(text)), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(duration(&Value::Null), None);
    }

    #[test]
    fn short_and_long_forms_mean_the_same() {
        let document = json!({ "secrets": { "a": { "file": "./secrets/a" } } });
        let short = json!({
            "image": "docker.io/library/redis:7@sha256:00", "command": "redis-server /r.conf",
            "volumes": ["./r.conf:/r.conf:ro", "data:/data"], "secrets": ["a"], "depends_on": ["b"],
            "environment": ["A=1"], "networks": ["x"], "healthcheck": { "test": ["CMD", "true"] },
        });
        let long = json!({
            "image": "redis", "command": ["redis-server", "/r.conf"],
            "volumes": [
                { "type": "bind", "source": "./r.conf", "target": "/r.conf", "read_only": true },
                { "type": "volume", "source": "data", "target": "/data" },
            ],
            "secrets": [{ "source": "a" }], "depends_on": { "b": { "condition": "service_started" } },
            "environment": { "A": 1 }, "networks": { "x": {} }, "healthcheck": { "test": ["CMD", "true"] },
        });
        let folder = Path::new("/project");
        let (short, long) = (service_of(&short, &document, folder), service_of(&long, &document, folder));
        assert_eq!(format!("{short:?}"), format!("{long:?}"));
        let secret = Mount {
            target: "/run/secrets/a".into(),
            source: Source::Path("/project/./secrets/a".into()),
            read_only: true,
        };
        assert!(short.mounts.contains(&secret), "{:?}", short.mounts);
    }
}
