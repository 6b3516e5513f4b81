//! What is left of a drill whose process was killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chart_index_tests::ComposeProject;

#[test]
#[ignore = "needs root: make test"]
fn leftovers_of_dead_processes_are_removed() {
    let (dead, living) = (dead_process(), std::process::id());
    let mut of_dead = Leftovers::of(dead);
    let mut of_living = Leftovers::of(living);
    ComposeProject::remove_leftovers();
    assert!(!of_dead.exists() && !of_dead.is_running(), "the owner is dead");
    assert!(of_living.exists() && of_living.is_running(), "the owner is this process");
}

/// A namespace, a process in it and a folder, named like those of a drill.
struct Leftovers {
    namespace: String,
    folder: PathBuf,
    process: Child,
}

impl Leftovers {
    fn of(owner: u32) -> Self {
        let namespace = format!("chart-index-drill-{owner}-test-service");
        let folder = std::env::temp_dir().join(&namespace);
        std::fs::create_dir(&folder).expect("a folder");
        let added = Command::new("ip").args(["netns", "add", &namespace]).status();
        assert!(added.is_ok_and(|status| status.success()), "a namespace");
        let process = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{namespace}"))
            .args(["sleep", "600"])
            .spawn()
            .expect("nsenter is installed");
        // It is in the namespace once it is `sleep`.
        let name = format!("/proc/{}/comm", process.id());
        while std::fs::read_to_string(&name).expect("it runs").trim() != "sleep" {
            std::thread::yield_now();
        }
        Self { namespace, folder, process }
    }

    fn exists(&self) -> bool {
        self.folder.exists() || Path::new("/run/netns").join(&self.namespace).exists()
    }

    fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("a state").is_none()
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let mut delete = Command::new("ip");
        let _ = delete.args(["netns", "delete", &self.namespace]).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The id of a process that has ended.
fn dead_process() -> u32 {
    let mut process = Command::new("true").spawn().expect("true starts");
    process.wait().expect("it ends");
    process.id()
}
