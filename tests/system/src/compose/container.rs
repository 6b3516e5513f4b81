//! One container: a program of this machine in the namespace of its service, with the files that the compose
//! file mounts.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::description::{Healthcheck, Mount, ServiceDescription, Source};
use super::images::Image;
use crate::network::kill_processes;

/// Maximum time of a health check.
const CHECK_TIMEOUT_SECONDS: u32 = 10;

/// A service of a project, whether it runs or not. Dropping the value kills its processes.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) description: ServiceDescription,
    image: Image,
    namespace: String,
    folder: PathBuf,
    volumes: PathBuf,
    process: Option<Child>,
    name_server: Option<Child>,
}

impl Container {
    /// A container that is not started, with its files in this folder.
    pub(super) fn new(
        description: ServiceDescription,
        namespace: String,
        folder: PathBuf,
        volumes: PathBuf,
    ) -> Self {
        let image = Image::named(&description.image);
        std::fs::create_dir_all(folder.join("etc")).expect("a folder");
        let container =
            Self { description, image, namespace, folder, volumes, process: None, name_server: None };
        container.write_files();
        container
    }

    fn write_files(&self) {
        let (user, group) = self.user();
        let directory = self.working_directory().to_owned();
        let folders = self.image.folders.iter().chain([&directory]).filter(|folder| *folder != "/");
        let mut mounts: String = folders
            .map(|folder| format!("folder\t-\t{folder}\t{user}:{group}\n"))
            .collect::<Vec<_>>()
            .concat();
        let files = self.image.files.iter().map(|(source, target)| Mount {
            target: target.clone(),
            source: Source::Path(source.clone()),
            read_only: true,
        });
        for Mount { target, source, read_only } in self.description.mounts.iter().cloned().chain(files) {
            let options = if read_only { "ro" } else { "rw" };
            let line = match source {
                Source::Path(path) => {
                    assert!(path.exists(), "{}, mounted at {target}, does not exist", path.display());
                    format!("bind\t{}\t{target}\t{options}", path.display())
                }
                Source::Volume(name) => {
                    let path = self.volumes.join(name);
                    if !path.exists() {
                        self.create_volume(&path);
                    }
                    format!("bind\t{}\t{target}\t{options}", path.display())
                }
                Source::Tmpfs(options) if options.is_empty() => format!("tmpfs\t-\t{target}\tmode=1777"),
                Source::Tmpfs(options) => format!("tmpfs\t-\t{target}\t{options}"),
            };
            let _ = writeln!(mounts, "{line}");
        }
        std::fs::write(self.folder.join("mounts"), mounts).expect("a file");
        let name = self.image.user_name;
        let users = format!("root:x:0:0:root:/root:/bin/sh\n{name}:x:{user}:{group}:{name}:/:/bin/sh\n");
        for (file, content) in [
            ("passwd", users.as_str()),
            ("group", &format!("root:x:0:\n{name}:x:{group}:\n")),
            ("hosts", "127.0.0.1 localhost\n"),
            // As in containers of Docker.
            ("resolv.conf", "nameserver 127.0.0.11\noptions ndots:0\n"),
        ] {
            std::fs::write(self.folder.join("etc").join(file), content).expect("a file");
        }
    }

    fn working_directory(&self) -> &str {
        self.description.working_directory.as_ref().unwrap_or(&self.image.working_directory)
    }

    /// The folders of the named volumes.
    pub(super) fn volumes(&self) -> Vec<PathBuf> {
        let mounts = self.description.mounts.iter();
        let names = mounts.filter_map(|mount| match &mount.source {
            Source::Volume(name) => Some(self.volumes.join(name)),
            _ => None,
        });
        names.collect()
    }

    /// Creates an empty volume, which has the owner of the folder in the image, as engines do.
    pub(super) fn create_volume(&self, path: &Path) {
        let (user, group) = self.user();
        std::fs::create_dir_all(path).expect("a volume");
        std::os::unix::fs::chown(path, user.parse().ok(), group.parse().ok()).expect("an owner");
    }

    /// User and group, by number.
    fn user(&self) -> (String, String) {
        let user = self.description.user.as_ref().unwrap_or(&self.image.user);
        let (user, group) = user.split_once(':').unwrap_or((user, user));
        (user.to_owned(), group.to_owned())
    }

    /// Starts the program. `arguments` replace the command.
    pub(super) fn start(&mut self, arguments: Option<&[String]>) {
        assert!(self.process.is_none(), "{} is running", self.namespace);
        let log = File::options().create(true).append(true).open(self.log_path()).expect("a log");
        let mut command = self.command(arguments);
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        self.process = Some(command.spawn().expect("nsenter is installed"));
    }

    /// Runs the program to its end.
    pub(super) fn run(&self, arguments: &[String]) -> Output {
        self.command(Some(arguments)).output().expect("nsenter is installed")
    }

    fn command(&self, arguments: Option<&[String]>) -> Command {
        let arguments = arguments.map(<[String]>::to_vec);
        let command = arguments.as_ref().or(self.description.command.as_ref());
        let program = self.image.program(self.description.entrypoint.as_ref(), command);
        let (user, group) = self.user();
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.namespace))
            .args(["unshare", "--mount", "sh"])
            .arg(chart_index_tests::workspace_root().join("tests/system/src/compose/launch.sh"))
            .arg(&self.folder)
            .args([&user, &group, &self.description.read_only.to_string(), self.working_directory()])
            .args(self.environment())
            .args(program)
            .stdin(Stdio::null());
        command
    }

    fn environment(&self) -> Vec<String> {
        let of_image = self.image.environment.iter().map(|(name, value)| (name, value));
        let variables = of_image.chain(&self.description.environment);
        variables.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// A command in the running container, as the same user.
    pub(super) fn exec(&self, program: &[String]) -> Command {
        let process = self.process.as_ref().expect("the container runs").id().to_string();
        let (user, group) = self.user();
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &process, "--mount", "--net", "--root", "--"])
            .args(["setpriv", "--reuid", &user, "--regid", &group, "--clear-groups", "--"])
            .args(["env", "-i"])
            .args(self.environment())
            .args(program)
            .stdin(Stdio::null());
        command
    }

    /// Whether there is no health check, or it succeeds now.
    pub(super) fn is_healthy(&self) -> bool {
        let check = match &self.description.healthcheck {
            Healthcheck::None => return true,
            Healthcheck::OfImage => match &self.image.healthcheck {
                Some(check) => check,
                None => return true,
            },
            Healthcheck::Command(check) => check,
        };
        let timeout = ["timeout".to_owned(), CHECK_TIMEOUT_SECONDS.to_string()];
        let mut command = self.exec(&[&timeout, check.as_slice()].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// The exit code, if the program has ended: 128 and more for signals, as shells report it.
    pub(super) fn exit_code(&mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let status =
            self.process.as_mut().expect("the container was started").try_wait().expect("a state")?;
        self.process = None;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }

    /// Sends the signal with which engines stop a container.
    pub(super) fn terminate(&self) {
        self.signal(self.image.stop_signal);
    }

    /// Sends a signal to the program.
    pub(super) fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("the container runs").id().to_string();
        let status = Command::new("kill").args(["-s", signal, &process]).status().expect("kill starts");
        assert!(status.success(), "{} gets {signal}", self.namespace);
    }

    /// Kills all processes of the container, the name server included.
    pub(super) fn kill(&mut self) {
        let processes = [self.process.take(), self.name_server.take()];
        for mut process in processes.into_iter().flatten() {
            let _ = process.kill();
            let _ = process.wait();
        }
        kill_processes(&self.namespace);
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Everything that the program has written.
    pub(super) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Makes these names resolve, and no others: the name server of the container is at 127.0.0.11, as in
    /// Docker.
    pub(super) fn set_names(&mut self, hosts: &str) {
        let path = self.folder.join("names");
        std::fs::write(&path, hosts).expect("a file");
        if let Some(server) = &self.name_server {
            let status = Command::new("kill").args(["-s", "HUP", &server.id().to_string()]).status();
            assert!(status.is_ok_and(|status| status.success()), "the name server runs");
            return;
        }
        let server = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{}", self.namespace))
            .args([
                "setpriv",
                "--pdeathsig",
                "KILL",
                "dnsmasq",
                "--keep-in-foreground",
                "--conf-file=/dev/null",
            ])
            .args(["--user=root", "--pid-file=", "--listen-address=127.0.0.11", "--bind-interfaces"])
            .args(["--no-resolv", "--no-hosts", "--local=/#/", "--cache-size=0", "--local-ttl=600"])
            .arg(format!("--addn-hosts={}", path.display()))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("dnsmasq is installed");
        self.name_server = Some(server);
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.kill();
    }
}
