//! A machine that systemd has started: a root filesystem of Debian packages, in namespaces of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use chart_index_system_tests::{Base, run};
use chart_index_tests::within;
use tempfile::TempDir;

/// Debian with the servers that the documents name.
const BASE: Base = Base {
    name: "machine",
    packages: "adduser,ca-certificates,curl,dbus,postgresql,redis-server,systemd,systemd-sysv",
    is_system: true,
    commands: "rm -rf usr/share/locale usr/lib/*/libLLVM* usr/lib/postgresql/*/lib/bitcode",
};

/// Starts systemd in a cgroup of its own: by default machines share one. The first process of a namespace,
/// whose end is that of all others, ends with standard input.
const START: &str = r#"
set -e
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    [ -f "$hierarchy/cgroup.procs" ] || continue
    mkdir "$hierarchy/$1"
    echo $$ >"$hierarchy/$1/cgroup.procs"
done
systemd-nspawn --quiet --directory="$2" --boot --register=no --keep-unit --private-network --console=pipe \
    </dev/null >/dev/null &
read -r _ || :
"#;

/// A running machine, which ends with the value.
pub(crate) struct Machine {
    process: Child,
    cgroup: String,
    root: TempDir,
    /// The first process in it.
    init: String,
}

impl Machine {
    /// Starts a machine without network, and waits until all services have started.
    pub(crate) async fn start() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        run(Command::new("tar").arg("-xf").arg(BASE.archive()).arg("-C").arg(root.path()));
        // Of a folder that only root may enter.
        run(Command::new("chmod").arg("755").arg(root.path()));
        let cgroup = format!("chart-index-machine-{}", std::process::id());
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", START, "sh"]);
        command.arg(&cgroup).arg(root.path()).stdin(Stdio::piped());
        let process = command.spawn().expect("unshare starts");
        let scopes = ["", "systemd/"]
            .map(|hierarchy| format!("/sys/fs/cgroup/{hierarchy}{cgroup}/payload/init.scope/cgroup.procs"));
        let first = async || {
            let processes = scopes.iter().find_map(|scope| std::fs::read_to_string(scope).ok())?;
            processes.lines().next().map(str::to_owned)
        };
        let (init, _) = within(Duration::from_secs(30), first).await;
        let machine = Self { process, cgroup, root, init };
        let has_started = async || {
            let state = machine.output("systemctl is-system-running --wait");
            matches!(&*String::from_utf8_lossy(&state.stdout), "running\n" | "degraded\n").then_some(())
        };
        within(Duration::from_mins(1), has_started).await;
        machine
    }

    /// A path in the machine, on this one.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn copy(&self, from: &Path, to: &str) {
        let to = self.path(to);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        run(Command::new("cp").arg("-r").arg(from).arg(to));
    }

    /// Runs shell commands in the machine, as root, in the folder /root.
    pub(crate) fn output(&self, script: &str) -> Output {
        self.command(script).output().expect("nsenter starts")
    }

    /// Runs shell commands that must succeed, and returns their output.
    pub(crate) fn run(&self, script: &str) -> String {
        run(&mut self.command(script))
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.init, "--all", "--", "sh", "-euc", &format!("cd; {script}")]);
        command
            .env_clear()
            .env("HOME", "/root")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

impl Drop for Machine {
    /// All processes and mounts of the machine end.
    fn drop(&mut self) {
        // It closes standard input first.
        let _ = self.process.wait();
        let pattern = format!("*/{}*", self.cgroup);
        let mut remove = Command::new("find");
        remove.args(["/sys/fs/cgroup", "-depth", "-type", "d", "-path", &pattern]);
        let _ = remove.args(["-exec", "rmdir", "{}", "+"]).status();
    }
}
