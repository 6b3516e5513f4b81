//! Where chart files lie: from the paths of the command line to the song folders that are read one by one.
//!
//! A library on disk is `alpha/<set id> <name>/…` and `beta/<pack id> <name>/<song>/…`. An archive stands for the
//! folder that it holds. Everything else is a folder without a source, known by its path below the library root.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chart_index_chartfile::{ChartFormat, archive, decode_file_name};
use walkdir::WalkDir;

/// How deep below a folder chart files are looked for.
const MAX_DEPTH: usize = 16;

/// One folder or archive to read, which holds one song folder, or several for the archive of a pack.
///
/// Their order is the one in which they take their chartsets, each of which the first that holds it keeps: folders
/// before archives, then by path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Whether it is an archive.
    pub(crate) is_archive: bool,
    /// Its path below the library root, `/` between its parts, an archive's without its extension.
    pub(crate) path: String,
    /// The folder or the archive.
    pub(crate) location: PathBuf,
    /// What the layout says that it is.
    pub(crate) layout: Layout,
}

impl Place {
    /// Its path below the library root with the extension of an archive: no other place of the library has it.
    pub(crate) fn full_path(&self) -> String {
        match self.location.extension().and_then(OsStr::to_str) {
            Some(extension) if self.is_archive => format!("{}.{extension}", self.path),
            _ => self.path.clone(),
        }
    }
}

/// What a place is in the layout of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    /// A set of the first game: all chart files below it are one chartset.
    AlphaSet,
    /// A song folder in a pack of the second game: all chart files below it are one chartset.
    BetaSong,
    /// The archive of a whole pack, or the chart files that lie directly in the folder of a pack.
    BetaPack,
    /// A folder outside the two games: the chart files directly in it are one chartset.
    Plain,
}

/// The song folders that a path of the command line stands for.
///
/// # Errors
/// The path does not exist or cannot be listed.
pub(crate) fn places(path: &Path) -> Result<Vec<Place>> {
    let path = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
    let library = Library { root: library_root(&path) };
    let mut found = BTreeSet::new();
    library.collect(&path, &mut found)?;
    Ok(found.into_iter().collect())
}

/// The library that a path lies in: the folder itself when it holds the folder of a game, else the folder above
/// the nearest game folder, else the folder that the path lies in.
fn library_root(path: &Path) -> PathBuf {
    if is_library(path) {
        return path.to_path_buf();
    }
    let game = path.ancestors().find(|folder| game_of(folder.file_name()).is_some());
    game.unwrap_or(path).parent().unwrap_or(path).to_path_buf()
}

fn is_library(folder: &Path) -> bool {
    folder.join("alpha").is_dir() || folder.join("beta").is_dir()
}

fn game_of(name: Option<&OsStr>) -> Option<Layout> {
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
    /// Adds the places at or below `path`, which is a folder or an archive in this library.
    fn collect(&self, path: &Path, found: &mut BTreeSet<Place>) -> Result<()> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<&OsStr> = below.iter().collect();
        match (game_of(parts.first().copied()), parts.len()) {
            (_, 0) => self.collect_root(path, found),
            (Some(_), 1) => self.collect_entries(path, found),
            (Some(Layout::AlphaSet), _) => {
                found.insert(self.place(&self.ancestor(&parts, 2), Layout::AlphaSet));
                Ok(())
            }
            (Some(_), 2) if path.is_dir() => {
                if holds_chart_files(path)? {
                    found.insert(self.place(path, Layout::BetaPack));
                }
                self.collect_entries(path, found)
            }
            (Some(_), 2) => {
                found.insert(self.place(path, Layout::BetaPack));
                Ok(())
            }
            (Some(_), _) => {
                found.insert(self.place(&self.ancestor(&parts, 3), Layout::BetaSong));
                Ok(())
            }
            (None, _) => self.collect_plain(path, found),
        }
    }

    /// The root itself: the folders of the games, and whatever else lies beside them.
    fn collect_root(&self, root: &Path, found: &mut BTreeSet<Place>) -> Result<()> {
        if holds_chart_files(root)? {
            found.insert(self.place(root, Layout::Plain));
        }
        self.collect_entries(root, found)
    }

    fn collect_entries(&self, folder: &Path, found: &mut BTreeSet<Place>) -> Result<()> {
        for entry in folders_and_archives(folder)? {
            self.collect(&entry, found)?;
        }
        Ok(())
    }

    /// Outside the games: every folder that directly holds chart files, and every archive.
    fn collect_plain(&self, path: &Path, found: &mut BTreeSet<Place>) -> Result<()> {
        // Not sorted: that would hold every file of a folder in memory.
        let mut last_folder = PathBuf::new();
        for entry in WalkDir::new(path).max_depth(MAX_DEPTH) {
            let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
            if !entry.file_type().is_file() {
                continue;
            }
            if is_archive(entry.path()) {
                found.insert(self.place(entry.path(), Layout::Plain));
            } else if let Some(folder) = entry.path().parent()
                && folder != last_folder
                && format_of(entry.path()).is_some()
            {
                found.insert(self.place(folder, Layout::Plain));
                folder.clone_into(&mut last_folder);
            }
        }
        Ok(())
    }

    /// The first `count` parts below the root: a path deep inside a song folder stands for the whole folder, so
    /// that a chartset is never read in part.
    fn ancestor(&self, parts: &[&OsStr], count: usize) -> PathBuf {
        parts.iter().take(count).fold(self.root.clone(), |path, part| path.join(part))
    }

    fn place(&self, location: &Path, layout: Layout) -> Place {
        let below = location.strip_prefix(&self.root).unwrap_or(location);
        let is_archive = is_archive(location);
        let named = if is_archive { below.with_extension("") } else { below.to_path_buf() };
        let parts: Vec<_> = named.iter().map(decode_file_name).collect();
        Place { is_archive, path: parts.join("/"), location: location.to_path_buf(), layout }
    }
}

/// The format of a chart file by its name; `None` for other files and for junk.
pub(crate) fn format_of(path: &Path) -> Option<ChartFormat> {
    ChartFormat::from_path(&decode_file_name(path.file_name()?))
}

pub(crate) fn is_archive(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| archive::is_archive(&decode_file_name(name)));
    named && path.is_file()
}

fn holds_chart_files(folder: &Path) -> Result<bool> {
    let any = || -> std::io::Result<bool> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if format_of(&path).is_some() && path.is_file() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    any().with_context(|| format!("cannot list {}", folder.display()))
}

/// The folders and archives in a folder by name. The other entries, of which there may be any number, are not held in
/// memory.
fn folders_and_archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() || is_archive(&path) || kind.is_symlink() && path.is_dir() {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    };
    list().with_context(|| format!("cannot list {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library of empty files at the given paths, and the places that a path in it stands for.
    fn places_of(files: &[&str], path: &str) -> Vec<(String, Layout)> {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let file = root.path().join("library").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let found = places(&root.path().join("library").join(path)).unwrap();
        found.into_iter().map(|place| (place.path, place.layout)).collect()
    }

    const LIBRARY: &[&str] = &[
        "alpha/1 one/a.osu",
        "alpha/1 one/sub/b.osu",
        "alpha/2 two.osz",
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
    fn a_library_root_stands_for_all_its_song_folders() {
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
        assert_eq!(places_of(LIBRARY, ""), expected.map(|(path, layout)| (path.to_owned(), layout)));
    }

    #[test]
    fn a_path_inside_a_library_is_known_by_the_same_path() {
        use Layout::{AlphaSet, BetaPack, BetaSong, Plain};
        for (path, expected) in [
            ("alpha/1 one", vec![("alpha/1 one", AlphaSet)]),
            ("alpha/1 one/sub", vec![("alpha/1 one", AlphaSet)]),
            ("alpha/1 one/a.osu", vec![("alpha/1 one", AlphaSet)]),
            ("alpha/2 two.osz", vec![("alpha/2 two", AlphaSet)]),
            ("beta/3 pack/song", vec![("beta/3 pack/song", BetaSong)]),
            ("beta/3 pack/other.zip", vec![("beta/3 pack/other", BetaSong)]),
            ("beta/4 pack.zip", vec![("beta/4 pack", BetaPack)]),
            ("else", vec![("else/where", Plain), ("else/archive", Plain)]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(path, layout)| (path.to_owned(), layout)).collect();
            assert_eq!(places_of(LIBRARY, path), expected, "{path}");
        }
    }

    #[test]
    fn folders_come_before_archives_of_the_same_path() {
        let files = ["alpha/1 one.osz", "alpha/1 one/a.osu", "alpha/0 none.osz"];
        let expected = ["alpha/1 one", "alpha/0 none", "alpha/1 one"];
        let found: Vec<_> = places_of(&files, "").into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_path_that_does_not_exist_is_an_error() {
        assert!(places(Path::new("/nowhere/at/all")).is_err());
    }
}
