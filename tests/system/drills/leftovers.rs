//! What is left of the engine of a drill: nothing.

use std::process::Command;

use chart_index_system_tests::Engine;

#[test]
#[ignore = "needs root: make test-system"]
fn engine_leaves_nothing() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let name = format!("chart-index-leftovers-{}", std::process::id());
    let folder = parent.path().join(&name);
    let engine = Engine::start_in(folder.clone());
    let process = engine.process();
    assert!(process.exists());
    // Closes a pipe, as the end of this process does.
    drop(engine);
    assert!(!process.exists() && !folder.exists());
    let cgroups =
        Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output().expect("find starts");
    assert!(cgroups.stdout.is_empty(), "{cgroups:?}");
}
