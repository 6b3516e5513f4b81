//! A process in the network namespace of its service.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chart_index_system_tests::network::kill_processes;

/// A program that a history kills, freezes and starts again, with all processes that it starts.
#[derive(Debug)]
pub(crate) struct Process {
    namespace: String,
    folder: PathBuf,
    command: Vec<String>,
    variables: Vec<(String, String)>,
    child: Option<Child>,
}

impl Process {
    /// A program that is not started. Its working directory is a folder with the name of the service.
    pub(crate) fn new(name: &str, namespace: String, folder: &Path, command: Vec<String>) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self { namespace, folder, command, variables: Vec::new(), child: None }
    }

    pub(crate) fn with_variables(mut self, variables: &[(&str, String)]) -> Self {
        self.variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self
    }

    /// The command of the next start.
    pub(crate) fn set_command(&mut self, command: Vec<String>) {
        self.command = command;
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts the program unless it is running.
    pub(crate) fn start(&mut self) {
        if self.is_running() {
            return;
        }
        let log = File::options().create(true).append(true).open(self.log_path()).expect("a log");
        let child = in_namespace(&self.namespace, &self.command)
            .current_dir(&self.folder)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("nsenter is installed"));
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|status| status.is_none()))
    }

    /// Kills all processes in the namespace of the service (SIGKILL), and waits for their end.
    pub(crate) fn kill(&mut self) {
        kill_processes(&self.namespace);
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Pauses all processes in the namespace of the service (SIGSTOP), or resumes them.
    pub(crate) fn set_frozen(&self, frozen: bool) {
        signal(&self.namespace, if frozen { "STOP" } else { "CONT" });
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command in a network namespace.
pub(crate) fn in_namespace(namespace: &str, words: &[String]) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg("--").args(words).stdin(Stdio::null());
    command
}

/// Sends a signal to all processes in a namespace.
pub(crate) fn signal(namespace: &str, signal: &str) {
    // A process may start another one between the listing and the signal.
    for _ in 0..2 {
        let listed = Command::new("ip").args(["netns", "pids", namespace]).output().expect("ip is installed");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let _ = Command::new("kill")
            .args(["-s", signal])
            .args(listed.split_whitespace())
            .stderr(Stdio::null())
            .status();
    }
}

/// Variables with which the clock of a program is ahead by this, such as `+15s`, or behind.
pub(crate) fn clock(offset: &str) -> [(&'static str, String); 3] {
    [
        ("LD_PRELOAD", faketime_library().to_str().expect("a readable path").to_owned()),
        ("FAKETIME", offset.to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// Deletes what that library has left of processes that were killed: a later one with the same number may be
/// that of another user.
pub(crate) fn delete_clocks() {
    for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("faketime_shm_").or_else(|| name.strip_prefix("sem.faketime_sem_"));
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// The library that fakes the clock. Not its wrapper, which leaves a semaphore behind when it is killed.
fn faketime_library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file()).expect("faketime is installed")
}
