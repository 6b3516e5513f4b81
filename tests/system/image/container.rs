//! Runs programs of the image as a container engine does, as far as that is possible without one.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Mounts what a container has and starts the program by exec, so that the process becomes that of the program.
/// Its root filesystem is read-only. `chroot` makes it a process of the user, which leaves it no capabilities.
const START: &str = r#"
set -e
network=$1 user=$2 root=$3
shift 3
if [ "$network" = own ]; then ip link set lo up; fi
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
while [ "$1" != -- ]; do
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
    shift 2
done
shift
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" --groups= "$root" "$@"
"#;

/// The image that the tests have built.
pub(crate) struct Image {
    pub(crate) root: PathBuf,
    /// The root filesystem of its base.
    pub(crate) base: PathBuf,
    /// Its configuration, in the form of Docker.
    pub(crate) configuration: Value,
}

/// How a program is run.
#[derive(Default)]
pub(crate) struct Container<'a> {
    /// Environment variables in addition to those of the image.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// Files and folders of the host, and their paths in the container.
    pub(crate) mounts: &'a [(&'a Path, &'a str)],
    pub(crate) network: Network,
}

#[derive(Default, Clone, Copy)]
pub(crate) enum Network {
    /// The network of the host.
    #[default]
    Host,
    /// A loopback interface of its own and nothing else.
    Own,
    /// The network of the container with this process.
    Of(u32),
}

impl Image {
    /// A command that runs a program of the image with the configuration of the image.
    pub(crate) fn command(&self, program: &[&str], container: &Container<'_>) -> Command {
        let (mut command, network) = match container.network {
            Network::Host => (Command::new("unshare"), "host"),
            Network::Own => {
                let mut command = Command::new("unshare");
                command.arg("--net");
                (command, "own")
            }
            Network::Of(process) => {
                let mut command = Command::new("nsenter");
                command.args([&format!("--net=/proc/{process}/ns/net"), "--", "unshare"]);
                (command, "other")
            }
        };
        command.args(["--mount", "--", "sh", "-c", START, "sh", network]);
        command.arg(self.configuration["User"].as_str().expect("a user")).arg(&self.root);
        for (source, target) in container.mounts {
            self.make_mount_point(source, target);
            command.arg(source).arg(target);
        }
        command.arg("--").args(program).env_clear();
        for variable in self.texts("Env") {
            let (name, value) = variable.split_once('=').expect("a variable with a value");
            command.env(name, value);
        }
        command.envs(container.variables.iter().copied());
        command
    }

    /// The program that the image starts, with its arguments.
    pub(crate) fn default_program(&self) -> Vec<&str> {
        [self.texts("Entrypoint"), self.texts("Cmd")].concat()
    }

    pub(crate) fn health_check(&self) -> Vec<&str> {
        let check = texts(&self.configuration["Healthcheck"]["Test"]);
        assert_eq!(check[0], "CMD", "a shell would have to be in the image");
        check[1..].to_vec()
    }

    fn make_mount_point(&self, source: &Path, target: &str) {
        let target = self.root.join(target.trim_start_matches('/'));
        if source.is_dir() {
            std::fs::create_dir_all(target).expect("a folder");
        } else if !target.is_file() {
            std::fs::write(target, "").expect("a file");
        }
    }

    fn texts(&self, part: &str) -> Vec<&str> {
        texts(&self.configuration[part])
    }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("an array").iter().map(|value| value.as_str().expect("a text")).collect()
}
