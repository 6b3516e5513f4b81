//! Finds the inputs of an ingest: the folders and archives that are read as a unit.
//!
//! A library is a folder with `alpha/<set id> <name>/…` and `beta/<pack id> <name>/<song>/…`. An archive
//! (`.olz`, `.osz`, `.qp`, `.smzip`, `.zip`) is equivalent to the folder that it contains. Any other folder has
//! no source and is identified by its path below the library root.
//!
//! An archive in a set, in a song folder or in another archive is a chartset of its own, whose id is the same
//! whether it is in a folder or in an archive: in `alpha` its own name names the set.
//!
//! This table is also the test `documented_layouts_are_right`. `>` separates an archive from a path in it; set
//! and pack ids are the digits at the start of a folder's name; "id from" is what [`ChartsetId`] is derived
//! from.
//!
//! | File | Input | Layout | Id from | Source |
//! |---|---|---|---|---|
//! | `alpha/5 name/a.osu` | `alpha/5 name` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/5 name/sub/a.osu` | `alpha/5 name` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/5 name.osz > a.osu` | `alpha/5 name` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/5 name.osz > wrapper/a.osu` | `alpha/5 name` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/no id/a.osu` | `alpha/no id` | `AlphaSet` | path `alpha/no id` | none |
//! | `alpha/no id.osz > a.osu` | `alpha/no id` | `AlphaSet` | path `alpha/no id` | none |
//! | `beta/7 pack/song/a.sm` | `beta/7 pack/song` | `BetaSong` | pack 7, folder `song` | pack 7 |
//! | `beta/7 pack/song.zip > a.sm` | `beta/7 pack/song` | `BetaSong` | pack 7, folder `song` | pack 7 |
//! | `beta/7 pack.zip > song/a.sm` | `beta/7 pack` | `BetaPack` | pack 7, folder `song` | pack 7 |
//! | `beta/7 pack.zip > wrapper/song/a.sm` | `beta/7 pack` | `BetaPack` | pack 7, folder `song` | pack 7 |
//! | `beta/7 pack/a.sm` | `beta/7 pack` | `BetaPack` | pack 7, folder `` | pack 7 |
//! | `beta/no id/song/a.sm` | `beta/no id/song` | `BetaSong` | path `beta/no id/song` | none |
//! | `other/a.osu` | `other` | `Plain` | path `other` | none |
//! | `other/sub/a.osu` | `other/sub` | `Plain` | path `other/sub` | none |
//! | `other/set.osz > a.osu` | `other/set` | `Plain` | path `other/set` | none |
//! | `other/set.osz > b/a.osu, c/a.osu` | `other/set` | `Plain` | path `other/set/b`, path `other/set/c` | none |
//! | `alpha/5 name.qp > a.qua` | `alpha/5 name` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/5 name.OLZ > a.osu` | `alpha/5 name` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/sets/5 name.osz > a.osu` | `alpha/sets` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/sets.zip > 5 name.osz > a.osu` | `alpha/sets` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/sets.zip > wrapper/5 name.osz > wrapper/a.osu` | `alpha/sets` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/sets/more.zip > 5 name.osz > a.osu` | `alpha/sets` | `AlphaSet` | set 5 | set 5 |
//! | `alpha/5 name/no id.osz > a.osu` | `alpha/5 name` | `AlphaSet` | path `alpha/5 name/no id` | none |
//! | `alpha/5 name.zip > no id.osz > a.osu` | `alpha/5 name` | `AlphaSet` | path `alpha/5 name/no id` | none |
//! | `beta/7 pack.zip > song.smzip > a.sm` | `beta/7 pack` | `BetaPack` | pack 7, folder `song` | pack 7 |
//! | `beta/7 pack.zip > wrapper/song.zip > wrapper/a.sm` | `beta/7 pack` | `BetaPack` | pack 7, folder `song` | pack 7 |
//! | `beta/7 pack/song/old.zip > a.sm` | `beta/7 pack/song` | `BetaSong` | pack 7, folder `song/old` | pack 7 |
//! | `beta/7 pack/song.zip > old.zip > a.sm` | `beta/7 pack/song` | `BetaSong` | pack 7, folder `song/old` | pack 7 |
//! | `other/sets/set.osz > b/a.osu, c/a.osu` | `other/sets/set` | `Plain` | path `other/sets/set/b`, path `other/sets/set/c` | none |
//! | `other/sets.zip > set.osz > b/a.osu, c/a.osu` | `other/sets` | `Plain` | path `other/sets/set/b`, path `other/sets/set/c` | none |

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chart_index_chartfile::decode_file_name;
use chart_index_chartfile::local_files::{chart_format, is_archive};
use chart_index_domain::{ChartsetId, PublicSource, SourceKind, SourceRef};
use chart_index_telemetry::print;
use tracing::Level;
use walkdir::WalkDir;

/// The maximum depth at which chart files are searched below a folder outside the two games.
const MAX_DEPTH: usize = 16;

/// A folder or archive that is read as a unit: one song folder, or several in the archive of a pack or in an
/// archive outside the two games.
///
/// Inputs are processed in their order, folders before archives, then by path. Of several inputs with the same
/// chartset id the first one is ingested.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Input {
    pub(crate) is_archive: bool,
    /// The path below the library root, with `/` between its components and without the extension of an
    /// archive.
    pub(crate) path: String,
    /// The folder or archive on disk.
    pub(crate) location: PathBuf,
    /// What its place in the library means.
    pub(crate) layout: Layout,
}

/// The meaning of a path in a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    /// A set of the first game: all chart files below it are one chartset.
    AlphaSet,
    /// A song folder in a pack of the second game: all chart files below it are one chartset.
    BetaSong,
    /// The archive of a whole pack, or the chart files directly in the folder of a pack.
    BetaPack,
    /// A folder outside the two games: the chart files directly in it are one chartset.
    Plain,
}

/// A song folder in an input. Those of the input itself come before those of the archives in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FolderInInput {
    /// The path of the archive in the input that it is in, with the extension. `None` if it is in the input
    /// itself.
    pub(crate) archive: Option<String>,
    /// The path in the input, without the extensions of archives. Empty for the input itself.
    pub(crate) path: String,
}

/// What a song folder is stored under.
pub(crate) struct SongFolderIdentity {
    pub(crate) id: ChartsetId,
    /// The path below the library root, with `/` between its components.
    pub(crate) path: String,
    /// The set or pack that the folder belongs to.
    pub(crate) source: Option<PublicSource>,
    /// Whether the folder is a set of the first game.
    pub(crate) is_alpha: bool,
}

impl Input {
    /// The path below the library root, with the extension of an archive. Unique within the library.
    pub(crate) fn full_path(&self) -> String {
        match self.location.extension().and_then(OsStr::to_str) {
            Some(extension) if self.is_archive => format!("{}.{extension}", self.path),
            _ => self.path.clone(),
        }
    }

    /// Identifies a song folder in this input.
    pub(crate) fn identify(&self, folder: &FolderInInput) -> SongFolderIdentity {
        let path = joined(&self.path, &folder.path);
        let parts: Vec<&str> = path.splitn(3, '/').collect();
        let is_nested_set = self.layout == Layout::AlphaSet && folder.archive.is_some();
        let named = if is_nested_set { path.rsplit('/').next() } else { parts.get(1).copied() };
        let reference = SourceRef::from_folder_name(named.unwrap_or_default());
        let is_alpha = self.layout == Layout::AlphaSet;
        let (id, kind) = match (self.layout, &reference) {
            (Layout::Plain, _) | (_, None) => {
                return SongFolderIdentity { id: ChartsetId::from_path(&path), path, source: None, is_alpha };
            }
            (Layout::AlphaSet, Some(set)) => (ChartsetId::from_alpha_set(set), SourceKind::AlphaSet),
            (Layout::BetaSong | Layout::BetaPack, Some(pack)) => {
                let song = parts.get(2).copied().unwrap_or_default();
                (ChartsetId::from_beta_song(pack, song), SourceKind::BetaPack)
            }
        };
        let source = reference.map(|reference| PublicSource { kind, reference });
        SongFolderIdentity { id, path, source, is_alpha }
    }
}

impl FolderInInput {
    /// The folder at this path in the folder. Empty for the folder itself.
    pub(crate) fn subfolder(&self, path: &str) -> Self {
        Self { path: joined(&self.path, path), ..self.clone() }
    }

    /// The archive at this path in a folder or archive.
    pub(crate) fn nested(&self, archive: &str) -> Self {
        let name = archive.rsplit_once('.').map_or(archive, |(name, _)| name);
        let in_archive = self.archive.as_deref().unwrap_or_default();
        Self { archive: Some(joined(in_archive, archive)), path: joined(&self.path, name) }
    }
}

impl Layout {
    /// What an archive in an input is: in a pack a song.
    pub(crate) const fn nested(self) -> Self {
        match self {
            Self::BetaPack => Self::BetaSong,
            other => other,
        }
    }
}

/// Joins two paths, of which either may be empty.
fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.is_empty() { format!("{folder}{path}") } else { format!("{folder}/{path}") }
}

/// Finds the inputs at or below a path of the command line, in order. A folder below it that cannot be listed
/// is an input, which is refused when it is read.
///
/// # Errors
/// The path does not exist, or cannot be listed.
pub(crate) fn find_inputs(path: &Path) -> Result<Vec<Input>> {
    let path = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
    let library = Library { root: library_root(&path) };
    let mut found = BTreeSet::new();
    if path.is_dir() {
        std::fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
    }
    library.collect(&path, &mut found);
    Ok(found.into_iter().collect())
}

/// The root of the library that contains `path`: the folder itself if it has a game's folder, else the parent
/// of the nearest game folder above, else the parent folder.
fn library_root(path: &Path) -> PathBuf {
    if is_library(path) {
        return path.to_path_buf();
    }
    let game = path.ancestors().find(|folder| game_layout(folder.file_name()).is_some());
    game.unwrap_or(path).parent().unwrap_or(path).to_path_buf()
}

fn is_library(folder: &Path) -> bool {
    folder.join("alpha").is_dir() || folder.join("beta").is_dir()
}

/// The layout of the entries of a game's folder.
fn game_layout(name: Option<&OsStr>) -> Option<Layout> {
    match name?.to_str()? {
        "alpha" => Some(Layout::AlphaSet),
        "beta" => Some(Layout::BetaPack),
        _ => None,
    }
}

struct Library {
    root: PathBuf,
}

impl Library {
    /// Adds the inputs at or below `path`, a folder or file in this library.
    fn collect(&self, path: &Path, found: &mut BTreeSet<Input>) {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<&OsStr> = relative.iter().collect();
        match (game_layout(parts.first().copied()), parts.len()) {
            // The games, other folders, and chart files directly in the root.
            (_, 0) => self.collect_entries(path, Some(Layout::Plain), found),
            (Some(_), 1) => self.collect_entries(path, None, found),
            (Some(_), 2) if is_chart(path) => warn_of_charts_in(&self.ancestor(&parts, 1)),
            (Some(Layout::BetaPack), 3) if is_chart(path) => {
                found.insert(self.input(&self.ancestor(&parts, 2), Layout::BetaPack));
            }
            (Some(Layout::AlphaSet), _) => {
                found.insert(self.input(&self.ancestor(&parts, 2), Layout::AlphaSet));
            }
            (Some(_), 2) if path.is_dir() => self.collect_entries(path, Some(Layout::BetaPack), found),
            (Some(_), 2) => {
                found.insert(self.input(path, Layout::BetaPack));
            }
            (Some(_), _) => {
                found.insert(self.input(&self.ancestor(&parts, 3), Layout::BetaSong));
            }
            (None, _) => self.collect_plain(path, found),
        }
    }

    /// Adds the inputs in a folder, and with a layout the folder itself if it has chart files directly in it.
    fn collect_entries(&self, folder: &Path, layout: Option<Layout>, found: &mut BTreeSet<Input>) {
        match list(folder) {
            Ok((has_charts, entries)) => {
                match layout {
                    Some(layout) if has_charts => drop(found.insert(self.input(folder, layout))),
                    None if has_charts => warn_of_charts_in(folder),
                    _ => (),
                }
                for entry in entries {
                    self.collect(&entry, found);
                }
            }
            // To be refused.
            Err(_) => drop(found.insert(self.input(folder, layout.unwrap_or(Layout::Plain)))),
        }
    }

    /// Adds every archive, and every folder with chart files directly in it, outside the games.
    fn collect_plain(&self, path: &Path, found: &mut BTreeSet<Input>) {
        // Not sorted by the directory walk, which would hold all files of a folder in memory.
        let mut last_folder = PathBuf::new();
        for entry in WalkDir::new(path).max_depth(MAX_DEPTH) {
            let entry = match entry {
                Ok(entry) => entry,
                // To be refused.
                Err(error) => {
                    found.insert(self.input(error.path().unwrap_or(path), Layout::Plain));
                    continue;
                }
            };
            if !entry.file_type().is_file() {
                continue;
            }
            if is_archive(entry.path()) {
                found.insert(self.input(entry.path(), Layout::Plain));
            } else if let Some(folder) = entry.path().parent()
                && folder != last_folder
                && chart_format(entry.path()).is_some()
            {
                found.insert(self.input(folder, Layout::Plain));
                folder.clone_into(&mut last_folder);
            }
        }
    }

    /// The first `count` components below the root: a path inside a song folder selects the whole folder, so
    /// that a chartset is never ingested in part.
    fn ancestor(&self, parts: &[&OsStr], count: usize) -> PathBuf {
        parts.iter().take(count).fold(self.root.clone(), |path, part| path.join(part))
    }

    fn input(&self, location: &Path, layout: Layout) -> Input {
        let relative = location.strip_prefix(&self.root).unwrap_or(location);
        let is_archive = is_archive(location);
        let named = if is_archive { relative.with_extension("") } else { relative.to_path_buf() };
        let parts: Vec<_> = named.iter().map(decode_file_name).collect();
        Input { is_archive, path: parts.join("/"), location: location.to_path_buf(), layout }
    }
}

fn is_chart(path: &Path) -> bool {
    chart_format(path).is_some() && path.is_file()
}

/// Warns of chart files in the folder of a game: neither a set nor a pack has them.
fn warn_of_charts_in(game: &Path) {
    let game = game.display();
    print(
        Level::WARN,
        format_args!("chart files directly in {game} are not read: move them to folders in it"),
    );
}

/// Whether a folder has chart files directly in it, and the folders and archives in it, sorted. Other files are
/// not held in memory.
fn list(folder: &Path) -> std::io::Result<(bool, Vec<PathBuf>)> {
    let (mut has_charts, mut found) = (false, Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() || is_archive(&path) || kind.is_symlink() && path.is_dir() {
            found.push(path);
        } else if is_chart(&path) {
            has_charts = true;
        }
    }
    found.sort();
    Ok((has_charts, found))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use chart_index_chartfile::ChartFormat;

    use super::*;
    use crate::{input_files, song_folder};

    const CHART: &str = "osu file format v14\n\n[General]\nMode: 3\n\n[Difficulty]\nCircleSize:4\n\n[TimingPoints]\n\
                         0,500,4,1,0,100,1,0\n\n[HitObjects]\n64,192,1000,1,0,0:0:0:0:\n";
    const QUA: &str = "Mode: Keys4\nTimingPoints:\n- Bpm: 120\nHitObjects:\n- Lane: 1\n";
    const SIMFILE: &str = "#BPMS:0=120;#NOTES:dance-single::Hard:1:0:1000;";

    /// The content of a file, or of an archive with these entries: `a.osu, b/a.osu` or `set.osz > a.osu`.
    fn content(path: &str, entries: Option<&str>) -> Vec<u8> {
        let Some(entries) = entries else {
            return match chart_format(Path::new(path)) {
                Some(ChartFormat::Sm) => SIMFILE.into(),
                Some(ChartFormat::Qua) => QUA.into(),
                _ => CHART.into(),
            };
        };
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let nested = entries.split_once(" > ");
        let entries = nested.map_or_else(|| entries.split(", ").collect(), |(archive, _)| vec![archive]);
        for entry in entries {
            archive.start_file(entry, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(&content(entry, nested.map(|(_, entries)| entries))).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    /// Writes a file, or an archive: `set.osz > a.osu, b/a.osu`.
    fn write(root: &Path, file: &str) {
        let (path, entries) =
            file.split_once(" > ").map_or((file, None), |(path, entries)| (path, Some(entries)));
        let location = root.join(path);
        std::fs::create_dir_all(location.parent().unwrap()).unwrap();
        std::fs::write(location, content(path, entries)).unwrap();
    }

    fn quoted(text: &str) -> &str {
        text.split('`').nth(1).unwrap_or_else(|| panic!("{text} is not quoted"))
    }

    fn number(text: &str) -> SourceRef {
        let digits = text.split([' ', ',']).nth(1).unwrap();
        SourceRef::from_number(digits.parse().unwrap()).unwrap()
    }

    /// `set 5`, ``pack 7, folder `song` `` or ``path `other` ``.
    fn documented_id(text: &str) -> ChartsetId {
        match text.split(' ').next().unwrap() {
            "set" => ChartsetId::from_alpha_set(&number(text)),
            "pack" => ChartsetId::from_beta_song(&number(text), quoted(text)),
            "path" => ChartsetId::from_path(quoted(text)),
            _ => panic!("{text}"),
        }
    }

    fn documented_source(text: &str) -> Option<PublicSource> {
        let kind = match text.split(' ').next().unwrap() {
            "set" => SourceKind::AlphaSet,
            "pack" => SourceKind::BetaPack,
            "none" => return None,
            _ => panic!("{text}"),
        };
        Some(PublicSource { kind, reference: number(text) })
    }

    #[test]
    fn documented_layouts_are_right() {
        let rows = include_str!("library.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
        let mut count = 0;
        for row in rows {
            let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
            let [file, path, layout, ids, source] = cells[..] else { panic!("{row}") };
            let root = tempfile::tempdir().unwrap();
            // The second file makes the folder a library, whatever the first one is.
            std::fs::create_dir_all(root.path().join("alpha")).unwrap();
            write(root.path(), file.trim_end_matches('`'));
            let inputs = find_inputs(root.path()).unwrap();
            let [input] = &inputs[..] else { panic!("{row}: {inputs:?}") };
            assert_eq!(
                (input.path.as_str(), format!("{:?}", input.layout)),
                (quoted(path), quoted(layout).into())
            );
            let Ok(files) = input_files::read(input) else { panic!("{row}") };
            let folders = song_folder::decode(input, files, &|_| false);
            let drafts: Vec<_> = folders.into_iter().map(|folder| folder.draft.unwrap()).collect();
            let found: Vec<ChartsetId> = drafts.iter().map(|draft| draft.id).collect();
            let ids = ids.split(", path").enumerate().map(|(index, id)| match index {
                0 => documented_id(id),
                _ => documented_id(&format!("path{id}")),
            });
            assert_eq!(found, ids.collect::<Vec<_>>(), "{row}");
            assert!(drafts.iter().all(|draft| draft.exact_source == documented_source(source)), "{row}");
            count += 1;
        }
        assert_eq!(count, 30);
    }

    /// The inputs at or below `path` in a library of empty files.
    fn inputs_of(files: &[&str], path: &str) -> Vec<(String, Layout)> {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let file = root.path().join("library").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let found = find_inputs(&root.path().join("library").join(path)).unwrap();
        found.into_iter().map(|input| (input.path, input.layout)).collect()
    }

    const LIBRARY: &[&str] = &[
        "alpha/1 one/a.osu",
        "alpha/1 one/sub/b.osu",
        "alpha/2 two.osz",
        "alpha/loose.osu",
        "beta/loose.sm",
        "beta/3 pack/song/a.sm",
        "beta/3 pack/other.zip",
        "beta/3 pack/loose.ssc",
        "beta/3 pack/banner.png",
        "beta/4 pack.zip",
        "else/where/a.qua",
        "else/where/b.qua",
        "else/archive.osz",
        "notes.txt",
    ];

    #[test]
    fn library_root_has_folders_before_archives() {
        use Layout::{AlphaSet, BetaPack, BetaSong, Plain};
        let expected = [
            ("alpha/1 one", AlphaSet),
            ("beta/3 pack", BetaPack),
            ("beta/3 pack/song", BetaSong),
            ("else/where", Plain),
            ("alpha/2 two", AlphaSet),
            ("beta/3 pack/other", BetaSong),
            ("beta/4 pack", BetaPack),
            ("else/archive", Plain),
        ];
        assert_eq!(inputs_of(LIBRARY, ""), expected.map(|(path, layout)| (path.to_owned(), layout)));
    }

    #[test]
    fn path_inside_a_library_selects_the_same_inputs() {
        use Layout::{AlphaSet, BetaPack, BetaSong, Plain};
        for (path, expected) in [
            ("alpha/1 one", vec![("alpha/1 one", AlphaSet)]),
            ("alpha/1 one/sub", vec![("alpha/1 one", AlphaSet)]),
            ("alpha/1 one/a.osu", vec![("alpha/1 one", AlphaSet)]),
            ("alpha/2 two.osz", vec![("alpha/2 two", AlphaSet)]),
            ("beta/3 pack/song", vec![("beta/3 pack/song", BetaSong)]),
            ("beta/3 pack/other.zip", vec![("beta/3 pack/other", BetaSong)]),
            ("beta/3 pack/loose.ssc", vec![("beta/3 pack", BetaPack)]),
            ("alpha/loose.osu", vec![]),
            ("beta/loose.sm", vec![]),
            ("beta/4 pack.zip", vec![("beta/4 pack", BetaPack)]),
            ("else", vec![("else/where", Plain), ("else/archive", Plain)]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(path, layout)| (path.to_owned(), layout)).collect();
            assert_eq!(inputs_of(LIBRARY, path), expected, "{path}");
        }
    }

    #[test]
    fn folders_come_before_archives_of_the_same_path() {
        let files = ["alpha/1 one.osz", "alpha/1 one/a.osu", "alpha/0 none.osz"];
        let expected = ["alpha/1 one", "alpha/0 none", "alpha/1 one"];
        let found: Vec<_> = inputs_of(&files, "").into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, expected);
    }

    /// Its path is too long, which holds for every user.
    #[test]
    fn folder_that_cannot_be_listed_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let half = ["x".repeat(255).as_str(); 8].join("/");
        for parent in [root.path().to_owned(), root.path().join(&half)] {
            let made = std::process::Command::new("mkdir").args(["-p", &half]).current_dir(parent).status();
            assert!(made.unwrap().success());
        }
        write(root.path(), "other/a.osu");
        write(root.path(), "alpha/5 name/a.osu");
        let inputs = find_inputs(root.path()).unwrap();
        let readable: Vec<&str> = inputs
            .iter()
            .filter(|input| input_files::read(input).is_ok())
            .map(|input| input.path.as_str())
            .collect();
        assert_eq!((inputs.len(), readable), (3, vec!["alpha/5 name", "other"]));
        let gone = root.path().join("beta/7 gone");
        let (library, mut found) = (Library { root: root.path().to_owned() }, BTreeSet::new());
        library.collect_entries(&gone, Some(Layout::BetaPack), &mut found);
        assert!(found.iter().all(|input| input_files::read(input).is_err()) && found.len() == 1);
    }

    #[test]
    fn missing_path_is_an_error() {
        assert!(find_inputs(Path::new("/nowhere/at/all")).is_err());
    }
}
