//! What is left of a history whose process was killed.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chart_index_system_tests::network;

#[test]
#[ignore = "needs root: make test-system"]
fn leftovers_of_dead_processes_are_removed() {
    // Now, so that no history on another thread removes what this test creates.
    network::sweep_once();
    let mut of_dead = Leftovers::of(NO_PROCESS);
    let mut of_living = Leftovers::of(std::process::id());
    network::sweep();
    assert!(!of_dead.exists(), "the owner is dead");
    // It leaves the namespace a moment before it ends.
    let ended = of_dead.process.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(SIGKILL), "{ended}");
    assert!(of_living.exists() && of_living.is_running(), "the owner is this process");
}

/// Above the ids of processes, so that none ever has it.
const NO_PROCESS: u32 = u32::MAX;
const SIGKILL: i32 = 9;

/// A namespace, a process in it and a folder, named like those of a history.
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
            .args(["sleep", "60"])
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
