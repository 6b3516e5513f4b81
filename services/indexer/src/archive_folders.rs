//! Finds the song folders in an archive and in the archives in it, as if each were the folder that it contains.

use std::collections::BTreeMap;

use chart_index_chartfile::Refusal;
use chart_index_chartfile::archive::ArchivedFile;

use crate::library::{FolderInInput, Layout};

/// A chart file, or an archive in an input that cannot be read.
pub(crate) struct ChartFile {
    /// The song folder that it belongs to.
    pub(crate) folder: FolderInInput,
    /// The path in the song folder, with `/` between its components. Empty if the song folder is an archive
    /// that cannot be read.
    pub(crate) name: String,
    /// The bytes of the file, or why they are missing.
    pub(crate) content: Result<Vec<u8>, Refusal>,
}

/// Assigns the files of an archive, which is `root` and has this layout, to song folders.
pub(crate) fn place(layout: Layout, root: &FolderInInput, mut files: Vec<ArchivedFile>) -> Vec<ChartFile> {
    strip_wrapping_folder(layout, &mut files);
    let (mut placed, mut archives) = (Vec::new(), BTreeMap::<String, Vec<ArchivedFile>>::new());
    for file in files {
        match file.archive {
            None => placed.push(place_file(layout, root, file)),
            Some(archive) => {
                archives.entry(archive).or_default().push(ArchivedFile { archive: None, ..file });
            }
        }
    }
    for (archive, files) in archives {
        placed.extend(place(layout.nested(), &root.nested(&archive), files));
    }
    placed
}

fn place_file(layout: Layout, root: &FolderInInput, file: ArchivedFile) -> ChartFile {
    let ArchivedFile { path, content, .. } = file;
    let split = match layout {
        Layout::AlphaSet | Layout::BetaSong => None,
        Layout::BetaPack => path.split_once('/'),
        Layout::Plain => path.rsplit_once('/'),
    };
    let (folder, name) = split.unwrap_or(("", &path));
    ChartFile { folder: root.subfolder(folder), name: name.to_owned(), content }
}

/// Removes the folder that contains everything in an archive, if there is one: most archives have it, and it is
/// equivalent to the archive itself. In the archive of a pack it is a song folder unless there are further
/// folders or archives in it.
fn strip_wrapping_folder(layout: Layout, files: &mut [ArchivedFile]) {
    let Some((first, _)) = files.first().and_then(|file| entry_path(file).split_once('/')) else { return };
    let wrapping = format!("{first}/");
    let min_depth = usize::from(layout == Layout::BetaPack);
    let is_wrapped = |file: &ArchivedFile| {
        let path = entry_path(file).strip_prefix(&wrapping);
        path.is_some_and(|path| path.matches('/').count() + usize::from(file.archive.is_some()) >= min_depth)
    };
    if files.iter().all(is_wrapped) {
        for file in files {
            file.archive.as_mut().unwrap_or(&mut file.path).drain(..wrapping.len());
        }
    }
}

/// The path of the entry of the archive that is the file, or the archive with the file.
fn entry_path(file: &ArchivedFile) -> &str {
    file.archive.as_ref().unwrap_or(&file.path)
}
