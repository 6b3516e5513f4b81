//! The rendered objects of an overlay, and access to their parts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

/// Kinds with pods, and where the template of these is.
const WORKLOADS: &[(&str, &str)] = &[
    ("Deployment", "/spec/template"),
    ("StatefulSet", "/spec/template"),
    ("Job", "/spec/template"),
    ("CronJob", "/spec/jobTemplate/spec/template"),
];

pub(crate) struct Objects<'a> {
    pub(super) overlay: &'a str,
    objects: &'a [Value],
}

/// An object with pods.
#[derive(Clone, Copy)]
pub(crate) struct Workload<'a> {
    pub(super) object: &'a Value,
    pub(super) template: &'a Value,
}

impl<'a> Objects<'a> {
    pub(crate) fn new(overlay: &'a str, objects: &'a [Value]) -> Self {
        Self { overlay, objects }
    }

    pub(super) fn all(&self) -> &'a [Value] {
        self.objects
    }

    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// The object of this kind and name.
    pub(super) fn find(&self, kind: &str, wanted: &str) -> Option<&'a Value> {
        self.of_kind(kind).find(|object| name(object) == wanted)
    }

    /// The objects with pods.
    pub(super) fn workloads(&self) -> Vec<Workload<'a>> {
        let of = |object: &'a Value| {
            let (_, path) = WORKLOADS.iter().find(|(kind, _)| object["kind"] == *kind)?;
            Some(Workload { object, template: object.pointer(path).unwrap_or(&Value::Null) })
        };
        self.objects.iter().filter_map(of).collect()
    }

    /// The workloads that run one of the programs.
    pub(crate) fn programs(&self) -> Vec<Workload<'a>> {
        let programs = |workload: &Workload<'a>| {
            workload
                .containers()
                .iter()
                .any(|container| text(&container["command"][0]).starts_with("/usr/local/bin/"))
        };
        self.workloads().into_iter().filter(programs).collect()
    }

    /// The deployments of `chart-index serve`.
    pub(super) fn replicas(&self) -> Vec<Workload<'a>> {
        let serves = |workload: &Workload<'a>| {
            workload
                .containers()
                .iter()
                .any(|container| text(&container["command"][0]).ends_with("/chart-index"))
        };
        self.workloads().into_iter().filter(serves).collect()
    }

    /// The variables of a container, also those from `ConfigMap`s.
    pub(crate) fn variables(&self, container: &'a Value) -> BTreeMap<&'a str, &'a str> {
        let mut variables = BTreeMap::new();
        for source in array(&container["envFrom"]) {
            let map = self.find("ConfigMap", text(&source["configMapRef"]["name"]));
            let data = map.and_then(|map| map["data"].as_object());
            variables.extend(data.into_iter().flatten().map(|(name, value)| (name.as_str(), text(value))));
        }
        variables
            .extend(array(&container["env"]).iter().map(|one| (text(&one["name"]), text(&one["value"]))));
        variables
    }
}

impl<'a> Workload<'a> {
    /// Its kind and name, for messages.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", text(&self.object["kind"]), name(self.object))
    }

    pub(super) fn pod(&self) -> &'a Value {
        &self.template["spec"]
    }

    pub(crate) fn containers(&self) -> Vec<&'a Value> {
        let kinds = ["initContainers", "containers"];
        kinds.iter().flat_map(|kind| array(&self.template["spec"][kind])).collect()
    }

    pub(super) fn labels(&self) -> &'a Value {
        &self.template["metadata"]["labels"]
    }

    /// Whether a selector with `matchLabels` alone selects its pods.
    pub(super) fn is_selected_by(&self, selector: &Value) -> bool {
        let Some(wanted) = selector["matchLabels"].as_object() else { return false };
        wanted.iter().all(|(label, value)| self.labels()[label] == *value)
    }

    /// Whether it serves all the time.
    pub(super) fn is_permanent(&self) -> bool {
        matches!(text(&self.object["kind"]), "Deployment" | "StatefulSet")
    }
}

pub(super) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// A string; empty where there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An array; empty where there is none.
pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Bytes of a quantity such as `512Mi`.
pub(super) fn bytes(quantity: &Value) -> Option<u64> {
    let quantity = text(quantity);
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)];
    let (unit, factor) = units.iter().find(|(unit, _)| quantity.ends_with(unit))?;
    Some(quantity.strip_suffix(unit)?.parse::<u64>().ok()? * factor)
}

/// Whether a list holds addresses and blocks of addresses alone.
pub(super) fn are_networks(list: &str) -> bool {
    list.split(',').all(|network| {
        let (address, length) = network.split_once('/').unwrap_or((network, "0"));
        address.parse::<IpAddr>().is_ok() && length.parse::<u8>().is_ok_and(|length| length <= 128)
    })
}
