//! The files of the image.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::container::Image;
use crate::run;

pub(crate) const PROGRAMS: [&str; 2] = ["chart-index", "chart-indexer"];

/// The libraries that the programs may need, which distroless cc has.
const LIBRARIES: [&str; 4] = ["ld-linux-", "libc.so.6", "libgcc_s.so.1", "libm.so.6"];

/// A file of a root filesystem.
struct File {
    /// The path, relative to the root.
    path: String,
    /// The type as `find` names it, such as `f` for a regular file and `d` for a folder.
    kind: String,
    mode: u32,
    owner: String,
}

/// Checks that the image has the programs and nothing else in addition to its base, and nothing that raises
/// privileges.
pub(crate) fn check(image: &Image) {
    let expected: BTreeSet<String> = PROGRAMS.iter().map(|name| format!("usr/local/bin/{name}")).collect();
    let (files, base) = (files(&image.root), files(&image.base));
    let of_base: BTreeSet<&str> = base.iter().map(|file| file.path.as_str()).collect();
    let added = files.iter().filter(|file| file.kind != "d" && !of_base.contains(file.path.as_str()));
    assert_eq!(paths(added), expected);
    for file in files.iter().filter(|file| expected.contains(&file.path)) {
        assert_eq!((file.mode, file.owner.as_str()), (0o755, "0:0"), "{}", file.path);
    }
    let regular = || files.iter().filter(|file| file.kind == "f");
    // glibc and its loader are executable. Without a program to load they are of no use.
    let executable = regular().filter(|file| file.mode & 0o111 != 0 && !file.path.starts_with("lib"));
    assert_eq!(paths(executable), expected);
    assert_eq!(paths(regular().filter(|file| file.mode & 0o6000 != 0)), BTreeSet::new(), "setuid or setgid");
    for name in PROGRAMS {
        check_program(&program(image, name));
    }
}

/// Checks that a program is stripped, and needs only libraries that the base has.
fn check_program(program: &Path) {
    let sections = run(Command::new("readelf").args(["--sections", "--wide"]).arg(program));
    assert!(sections.contains(" .text "), "{sections}");
    for section in [" .symtab ", " .debug_info ", " .debug_line "] {
        assert!(!sections.contains(section), "{}: {sections}", program.display());
    }
    let dynamic = run(Command::new("readelf").args(["--dynamic", "--wide"]).arg(program));
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let needed: Vec<_> = needed.filter_map(|line| line.split_once('[')?.1.strip_suffix(']')).collect();
    assert!(needed.contains(&"libc.so.6"), "{dynamic}");
    for library in needed {
        assert!(LIBRARIES.iter().any(|known| library.starts_with(known)), "{}: {library}", program.display());
    }
}

/// Checks that the programs contain none of these paths of the build machine.
pub(crate) fn check_paths(image: &Image, paths: &[&Path]) {
    for name in PROGRAMS {
        let bytes = std::fs::read(program(image, name)).expect("a program");
        for path in paths {
            let path = path.to_str().expect("UTF-8");
            let found = bytes.windows(path.len()).any(|window| window == path.as_bytes());
            assert!(!found, "{name} contains {path}");
        }
    }
}

/// The size of both programs.
pub(crate) fn program_bytes(image: &Image) -> u64 {
    PROGRAMS.iter().map(|name| program(image, name).metadata().expect("a program").len()).sum()
}

fn program(image: &Image, name: &str) -> PathBuf {
    image.root.join("usr/local/bin").join(name)
}

fn paths<'a>(files: impl Iterator<Item = &'a File>) -> BTreeSet<String> {
    files.map(|file| file.path.clone()).collect()
}

fn files(root: &Path) -> Vec<File> {
    let mut find = Command::new("find");
    let listed = run(find.arg(root).args(["-mindepth", "1", "-printf", "%y %m %U:%G %P\\n"]));
    let file = |line: &str| {
        let mut parts = line.splitn(4, ' ').map(str::to_owned);
        let mut part = || parts.next().expect("four parts");
        let (kind, mode, owner, path) = (part(), part(), part(), part());
        File { path, kind, mode: u32::from_str_radix(&mode, 8).expect("an octal number"), owner }
    };
    listed.lines().map(file).collect()
}
