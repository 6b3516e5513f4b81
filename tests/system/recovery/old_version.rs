//! An earlier version of the programs, built from the history of the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use chart_index_tests::workspace_root;

const MIGRATIONS: &str = "crates/store/migrations/";

/// The programs of the newest commit that lacks the newest migration and has all others as they are now.
pub(crate) struct OldVersion {
    pub(crate) commit: String,
    folder: PathBuf,
}

impl OldVersion {
    /// Builds the programs in the folder `CHART_INDEX_CACHE`, outside of the checkout. This takes minutes the first time.
    pub(crate) fn build() -> Self {
        let commit = commit_before_the_newest_migration();
        let cache = cache_folder().join("versions");
        let source = cache.join(&commit);
        if !source.is_dir() {
            extract(&commit, &cache.join("incomplete"));
            std::fs::rename(cache.join("incomplete"), &source).expect("the source is complete");
        }
        let target = cache.join("target");
        run(Command::new("cargo")
            .args(["build", "--locked", "--workspace", "--bins"])
            .current_dir(&source)
            .env("CARGO_TARGET_DIR", &target)
            // Half the disk.
            .env("CARGO_PROFILE_DEV_DEBUG", "0"));
        Self { commit, folder: target.join("debug") }
    }

    /// The path of a program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Writes the files of a commit into a new folder.
fn extract(commit: &str, folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).expect("a folder in CHART_INDEX_CACHE");
    let archive = folder.join("source.tar");
    git(&["archive", "--output", archive.to_str().expect("a readable path"), commit]);
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(folder));
}

fn commit_before_the_newest_migration() -> String {
    let mut needed = migrations("HEAD");
    let newest = needed.iter().map(|line| version(line)).max().expect("migrations");
    needed.retain(|line| version(line) != newest);
    let commits = git(&["rev-list", "--first-parent", "HEAD", "--", MIGRATIONS]);
    let mut parents = commits.lines().map(|commit| format!("{commit}^"));
    let parent = parents.find(|parent| migrations(parent) == needed);
    let parent = parent.unwrap_or_else(|| {
        panic!(
            "no commit has the migrations before {newest}: a complete clone has one, a shallow clone may not"
        )
    });
    git(&["rev-parse", &parent]).trim().to_owned()
}

/// The migrations of a commit: the content and the path of each file.
fn migrations(commit: &str) -> BTreeSet<String> {
    git(&["ls-tree", commit, MIGRATIONS]).lines().map(str::to_owned).collect()
}

/// The number that the file name of a migration begins with.
fn version(line: &str) -> u32 {
    let name = line.rsplit('/').next().and_then(|name| name.split('_').next());
    name.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no version: {line}"))
}

fn cache_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let user = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let folder = variable("CHART_INDEX_CACHE").or_else(|| Some(user()?.join("chart-index"))).expect("a home");
    assert!(!folder.starts_with(workspace_root()), "{} is outside of the checkout", folder.display());
    folder
}

fn git(arguments: &[&str]) -> String {
    run(Command::new("git").args(arguments).current_dir(workspace_root()))
}

/// Runs a command that has to succeed, and returns its standard output.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A command of the old `chart-indexer` on a database, not started.
pub(crate) fn old_indexer(version: &OldVersion, database_url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(version.program("chart-indexer"));
    command.args(arguments).env("DATABASE_URL", database_url).env_remove("REDIS_URL");
    command
}
