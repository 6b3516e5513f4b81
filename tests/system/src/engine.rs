//! A Docker engine in namespaces of its own, with images of the names that docker-compose.yml has.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chart_index_tests::{PrivateMeilisearch, workspace_root};

use crate::base::Base;
use crate::{network, read, run, strip_programs};

/// What the images of src/images have in common.
const BASE: Base = Base {
    name: "compose",
    packages: "bash,ca-certificates,coreutils,curl,dash,findutils,grep,gzip,haproxy,\
               postgresql,prometheus-node-exporter,redis-server,sed,wget",
    is_system: false,
    commands: r"
# What is not needed, such as the compiler of queries, is most of the bytes.
rm -rf usr/lib/*/libLLVM* usr/lib/postgresql/*/lib/bitcode usr/lib/postgresql/*/lib/llvmjit*
rm -rf usr/share/doc usr/share/i18n usr/share/locale usr/share/man usr/share/perl* usr/lib/*/perl*
cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
mkdir -p usr/local/bin var/lib/postgresql/data
(cd usr/local/bin && ln -s ../../lib/postgresql/*/bin/* .)
printf '%s:x:%s:%s::/:/bin/sh\n' root 0 0 postgres 999 999 haproxy 99 99 redis 999 999 >etc/passwd
printf '%s:x:%s:\n' root 0 postgres 999 haproxy 99 >etc/group
chown 999:999 var/lib/postgresql/data",
};

/// A running engine. Dropping the value ends all of its containers and deletes its data, as does the end of
/// this process.
#[derive(Debug)]
pub(crate) struct Engine {
    script: Child,
    folder: PathBuf,
}

impl Engine {
    /// The engine of this process, which one caller has at a time: its services take most of two processors. It
    /// ends with the process.
    pub(crate) fn lock() -> MutexGuard<'static, Self> {
        static ENGINE: LazyLock<Mutex<Engine>> = LazyLock::new(|| Mutex::new(Engine::start()));
        // After a panic the next caller has its own containers.
        ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start() -> Self {
        let start = Instant::now();
        let folder = std::env::temp_dir().join(network::project_name(0));
        let mut script = Command::new(workspace_root().join("scripts/docker-engine"));
        script.arg("run").arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().expect("the script starts");
        let mut line = String::new();
        let output = script.stdout.take().expect("the output is piped");
        BufReader::new(output).read_line(&mut line).expect("UTF-8");
        assert!(!line.is_empty(), "the engine responds");
        let engine = Self { script, folder };
        engine.make_images();
        eprintln!("the engine and its images took {:.1?}", start.elapsed());
        engine
    }

    fn make_images(&self) {
        run(self.docker(&["import"]).arg(BASE.archive()).arg("base"));
        let contexts = self.folder.join("images");
        copy(&workspace_root().join("tests/system/src/images"), &contexts);
        complete_chart_index(&contexts.join("chart-index"));
        complete_meilisearch(&contexts.join("meilisearch"));
        for image in images() {
            let (name, _) = image.rsplit_once(':').expect("a version");
            let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
            let context = Some(contexts.join(name)).filter(|context| context.exists());
            let context = context.unwrap_or_else(|| contexts.join("monitoring"));
            run(self.docker(&["build", "--tag", &image]).arg(context));
        }
    }

    /// A command of the client.
    pub(crate) fn docker(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.args(arguments).env("DOCKER_HOST", self.host()).env("DOCKER_BUILDKIT", "0");
        command
    }

    /// What clients use as `DOCKER_HOST`.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.folder.join("docker.sock").display())
    }

    /// Moves this thread into the network namespace of the engine. Threads that it starts later are there as
    /// well.
    pub(crate) fn enter_network(&self) {
        network::enter(&self.process().join("ns/net"));
    }

    /// A command in the namespaces of the engine, in which its processes have the ids that it reports.
    pub(crate) fn command(&self, program: &[&str]) -> Command {
        let namespaces = self.process().join("ns");
        let mut command = Command::new("nsenter");
        for (kind, file) in [("net", "net"), ("mount", "mnt"), ("pid", "pid_for_children")] {
            command.arg(format!("--{kind}={}", namespaces.join(file).display()));
        }
        command.args(program);
        command
    }

    /// Leaves nothing free on the disk of all images, containers and volumes.
    pub(crate) fn fill_disk(&self) {
        let used = run(&mut self.command(&["df", "--output=used", "--block-size=1", &self.disk()]));
        self.resize_disk(used.lines().last().expect("a number").trim());
    }

    /// Sets the size of this disk, in bytes or as a share of the memory.
    pub(crate) fn resize_disk(&self, size: &str) {
        run(&mut self.command(&["mount", "--options", &format!("remount,size={size}"), &self.disk()]));
    }

    fn disk(&self) -> String {
        self.folder.join("data").to_str().expect("UTF-8").to_owned()
    }

    /// The folder in /proc of the process whose namespaces are those of the engine.
    fn process(&self) -> PathBuf {
        let id = std::fs::read_to_string(self.folder.join("pid")).expect("the engine runs");
        Path::new("/proc").join(id.trim())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// Adds the programs, and the last stage of the Dockerfile of this repository.
fn complete_chart_index(context: &Path) {
    strip_programs(&context.join("programs"));
    let stages = read("Dockerfile");
    let (_, last_stage) = stages.rsplit_once("\nFROM ").expect("a stage");
    let dockerfile = context.join("Dockerfile");
    let first_stages = std::fs::read_to_string(&dockerfile).expect("a file");
    std::fs::write(&dockerfile, format!("{first_stages}\nFROM {last_stage}")).expect("a file");
}

/// Adds the `meilisearch` on the PATH, if there is one.
fn complete_meilisearch(context: &Path) {
    let files = context.join("files");
    for folder in ["opt", "usr/local/bin"] {
        std::fs::create_dir_all(files.join(folder)).expect("a folder");
    }
    if let Some(program) = PrivateMeilisearch::program() {
        copy(&program, &files.join("usr/local/bin"));
    }
    // What .ci/meilisearch writes: its program needs these files.
    if Path::new("/opt/meilisearch/ld-musl-x86_64.so.1").exists() {
        copy(Path::new("/opt/meilisearch"), &files.join("opt"));
    }
}

/// The images of docker-compose.yml.
fn images() -> Vec<String> {
    let file = read("docker-compose.yml");
    let images = file.lines().filter_map(|line| line.trim().strip_prefix("image: "));
    // The default of a variable.
    let images = images.map(|image| image.rsplit(":-").next().unwrap_or(image).trim_end_matches('}'));
    images.map(str::to_owned).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// Copies a file or folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("--recursive").arg(from).arg(to));
}
