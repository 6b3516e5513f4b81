//! Root filesystems of Debian packages, made by mmdebstrap from the mirror that this machine uses. The
//! images of the drills are made of them: machines that run tests reach Debian's packages, but no registry of
//! images.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// The root filesystem of a base image.
#[derive(Debug)]
pub struct Base {
    /// The name of its archive.
    pub name: &'static str,
    /// Names of packages, separated by commas.
    pub packages: &'static str,
    /// Whether the packages are configured, with those that they need, so that a system can start. Unpacked is
    /// enough to run their programs.
    pub is_system: bool,
    /// Shell commands that run in the root folder.
    pub commands: &'static str,
}

impl Base {
    /// The tar archive of the root filesystem. It is made once, and cached where the tools of the project are.
    pub fn archive(&self) -> PathBuf {
        let sources = sources();
        let input = format!("{sources:?} {} {}", self.packages, self.commands);
        let digest = &blake3::hash(input.as_bytes()).to_hex()[..16];
        let folder = cache().join("images");
        let archive = folder.join(format!("{}-{digest}.tar", self.name));
        if !archive.is_file() {
            std::fs::create_dir_all(&folder).expect("a cache folder");
            self.remove_older(&folder);
            self.make(&archive, &sources);
        }
        archive
    }

    /// Makes the archive under another name first, since another run of the tests may do the same.
    fn make(&self, archive: &Path, sources: &[String]) {
        let unfinished = archive.with_extension(format!("{}.tar", std::process::id()));
        let mut command = Command::new("mmdebstrap");
        let (variant, hook) = if self.is_system { ("apt", "customize") } else { ("extract", "extract") };
        command.args([&format!("--variant={variant}"), &format!("--include={}", self.packages)]);
        command.arg(format!("--{hook}-hook=set -e; cd \"$1\"; {}", self.commands));
        run(command.arg(suite()).arg(&unfinished).args(sources));
        std::fs::rename(&unfinished, archive).expect("an archive");
    }

    fn remove_older(&self, folder: &Path) {
        for file in std::fs::read_dir(folder).expect("a folder").flatten() {
            let name = file.file_name().into_string().unwrap_or_default();
            if name.strip_prefix(self.name).is_some_and(|rest| rest.len() == "-0123456789abcdef.tar".len()) {
                std::fs::remove_file(file.path()).expect("an archive is removed");
            }
        }
    }
}

/// The release of Debian on this machine: programs that were built here need a glibc that is not older.
fn suite() -> String {
    let release = std::fs::read_to_string("/etc/os-release").expect("a file");
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    codename.expect("Debian").to_owned()
}

/// The sources of Debian packages on this machine. None if the lists of apt are missing: then mmdebstrap has a
/// default.
fn sources() -> Vec<String> {
    let format = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)";
    let filters = ["Origin: Debian", "Created-By: Packages", "Component: main"];
    let lines = run(Command::new("apt-get").args(["indextargets", "--format", format]).args(filters));
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// The folder in which the scripts cache their tools.
fn cache() -> PathBuf {
    if let Some(folder) = std::env::var_os("CHART_INDEX_CACHE") {
        return PathBuf::from(folder);
    }
    let home = || Path::new(&std::env::var_os("HOME").expect("HOME")).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("chart-index")
}
