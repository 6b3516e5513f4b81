//! No cycles between the top-level modules of a crate: a scan of `crate::` paths outside comments and unit
//! tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use chart_index_tests::workspace_root;

#[test]
fn modules_do_not_import_each_other_in_a_cycle() {
    let crates = ["crates", "services"].iter().flat_map(|folder| entries(&workspace_root().join(folder)));
    let (mut count, mut cycles) = (0, BTreeSet::new());
    for path in crates {
        let imports = module_imports(&path.join("src"));
        let found = imports.keys().find_map(|module| path_back(&imports, module));
        let name = path.file_name().and_then(OsStr::to_str).expect("a name").to_owned();
        cycles.extend(found.map(|cycle| format!("{name}: {}", cycle.join(" -> "))));
        count += imports.len();
    }
    assert!(count > 50, "{count} modules");
    assert!(cycles.is_empty(), "{cycles:#?}");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    entries.map(|entry| entry.expect("a readable entry").path()).collect()
}

/// The modules that each module imports, by the first component of their paths.
fn module_imports(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let root = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|path| path.exists());
    let root = code(&root.expect("a crate root"));
    let modules: BTreeSet<String> = entries(source).iter().filter_map(|path| module_name(path)).collect();
    let reexports = reexports(&root);
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in entries(source) {
        let Some(module) = module_name(&path) else { continue };
        let imported = rust_files(&path).iter().flat_map(|file| crate_paths(&code(file))).collect::<Vec<_>>();
        let imported = imported.into_iter().map(|name| reexports.get(&name).cloned().unwrap_or(name));
        let others = imported.filter(|name| modules.contains(name) && *name != module);
        imports.entry(module.clone()).or_default().extend(others);
    }
    imports
}

fn module_name(path: &Path) -> Option<String> {
    let is_module = path.is_dir() || path.extension().is_some_and(|extension| extension == "rs");
    let name = path.file_stem()?.to_str()?;
    (is_module && !matches!(name, "lib" | "main")).then(|| name.to_owned())
}

fn rust_files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        return entries(path).iter().flat_map(|path| rust_files(path)).collect();
    }
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let is_test = path.file_stem().is_some_and(|name| name == "tests");
    if is_rust && !is_test { vec![path.to_owned()] } else { Vec::new() }
}

/// The text of a file without comments and unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a readable file");
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The first component after every `crate::`, or each of them in `crate::{a, b::c}`.
fn crate_paths(code: &str) -> Vec<String> {
    code.split("crate::").skip(1).flat_map(names).collect()
}

/// The name, or the first components in a list in braces, at the start of `code`.
fn names(code: &str) -> Vec<String> {
    let Some(list) = code.strip_prefix('{') else { return vec![identifier(code)] };
    let (mut names, mut depth, mut at_start) = (Vec::new(), 1, true);
    for (position, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' => at_start = depth == 1,
            _ if at_start && character.is_alphanumeric() => {
                names.push(identifier(&list[position..]));
                at_start = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn identifier(code: &str) -> String {
    code.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
}

/// The modules of the items that the crate root re-exports: `pub use module::{Item, Other};`.
fn reexports(root: &str) -> BTreeMap<String, String> {
    let uses = root.split("pub use ").skip(1).chain(root.split("pub(crate) use ").skip(1));
    let uses = uses.filter_map(|text| text.split_once("::"));
    uses.flat_map(|(module, items)| names(items).into_iter().map(|item| (item, module.to_owned()))).collect()
}

/// A path from a module back to itself.
fn path_back(imports: &BTreeMap<String, BTreeSet<String>>, start: &str) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut pending = vec![vec![start.to_owned()]];
    while let Some(path) = pending.pop() {
        for next in imports.get(&path[path.len() - 1]).into_iter().flatten() {
            let longer = [&path[..], std::slice::from_ref(next)].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                pending.push(longer);
            }
        }
    }
    None
}

#[test]
fn crate_paths_are_found() {
    let code = "use crate::a::B;\nuse crate::{c, d::{e, F}, G};\nfn f() -> crate::h::I {}";
    assert_eq!(crate_paths(code), ["a", "c", "d", "G", "h"]);
    let root = "mod a;\npub use a::{B, c};\npub use d::E;\n";
    let expected =
        [("B", "a"), ("c", "a"), ("E", "d")].map(|(item, module)| (item.to_owned(), module.to_owned()));
    assert_eq!(reexports(root), expected.into());
}
