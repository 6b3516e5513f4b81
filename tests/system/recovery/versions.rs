//! The programs before and after an upgrade: one version is this build, the other is built from the history.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chart_index_system_tests::run;
use chart_index_tests::{indexer_command, workspace_root};

const MIGRATIONS: &str = "crates/store/migrations/";

/// The migration of a later version. It locks a table that lookups read, not lists: many searches that wait for
/// a second are rejected.
const LATER_MIGRATION: [(&str, &str); 2] = [
    ("9999_later.up.sql", "ALTER TABLE charts ADD COLUMN later text NOT NULL DEFAULT '';"),
    ("9999_later.down.sql", "ALTER TABLE charts DROP COLUMN later;"),
];

/// The file with the format of the search index.
const INDEX_FORMAT: &str = "crates/search/src/index_state.rs";

/// Two versions of the programs, of which the newer one has one more migration.
pub(crate) struct Versions {
    pub(crate) old: Programs,
    pub(crate) new: Programs,
}

impl Versions {
    /// Builds the version before the newest migration, which is upgraded to this one, in the folder
    /// `CHART_INDEX_CACHE`, outside of the checkout. This takes minutes the first time.
    pub(crate) fn build() -> Self {
        let cache = cache_folder().join("versions");
        let commit = commit_before_the_newest_migration();
        println!("upgrade: from {commit} to this version");
        let source = cache.join(&commit);
        if !source.is_dir() {
            extract(&commit, &cache.join("incomplete"));
            fs::rename(cache.join("incomplete"), &source).expect("the source is complete");
        }
        Self { old: Programs::build(&source, &cache), new: Programs { folder: None } }
    }

    /// This version, and one with a later migration and the next format of the search index.
    pub(crate) fn this_and_a_later_one() -> Self {
        let cache = cache_folder().join("versions");
        let source = cache.join("later");
        extract("HEAD", &source);
        for (name, statement) in LATER_MIGRATION {
            fs::write(source.join(MIGRATIONS).join(name), statement).expect("the source can be changed");
        }
        let file = source.join(INDEX_FORMAT);
        let code = fs::read_to_string(&file).expect("the source can be read");
        let (before, rest) = code.split_once("FORMAT: u32 = ").expect("a format");
        let (format, after) = rest.split_once(';').expect("a format");
        let next = format.parse::<u32>().expect("a number") + 1;
        fs::write(&file, format!("{before}FORMAT: u32 = {next};{after}")).expect("the source can be changed");
        Self { old: Programs { folder: None }, new: Programs::build(&source, &cache) }
    }
}

/// The programs of one version.
pub(crate) struct Programs {
    /// `None` for this build.
    folder: Option<PathBuf>,
}

impl Programs {
    fn build(source: &Path, cache: &Path) -> Self {
        let target = cache.join("target");
        run(Command::new("cargo")
            .args(["build", "--locked", "--workspace", "--bins"])
            .current_dir(source)
            .env("CARGO_TARGET_DIR", &target)
            // Half the disk.
            .env("CARGO_PROFILE_DEV_DEBUG", "0"));
        Self { folder: Some(target.join("debug")) }
    }

    /// The path of `chart-index`; `None` for that of this build.
    pub(crate) fn server(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join("chart-index"))
    }

    /// A command of `chart-indexer` on a database, not started.
    pub(crate) fn indexer(&self, database_url: &str, arguments: &[&str]) -> Command {
        match &self.folder {
            None => indexer_command(database_url, arguments),
            Some(folder) => {
                let mut command = Command::new(folder.join("chart-indexer"));
                command.args(arguments).env("DATABASE_URL", database_url);
                command
            }
        }
    }
}

/// Writes the files of a commit into a new folder.
fn extract(commit: &str, folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("a folder in CHART_INDEX_CACHE");
    let archive = folder.join("source.tar");
    git(&["archive", "--output", archive.to_str().expect("a readable path"), commit]);
    // With the current time: cargo does not rebuild files that are older than their build.
    run(Command::new("tar").arg("--touch").arg("-xf").arg(&archive).arg("-C").arg(folder));
}

/// The newest commit that lacks the newest migration and has all others as they are now.
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
