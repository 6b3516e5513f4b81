//! Reading one place: its files become chartset drafts, and what cannot be read becomes a reason.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use chart_index_chartfile::archive::{self, ArchivedFile, EntryError};
use chart_index_chartfile::{
    ChartFormat, IsStored, MAX_FILE_BYTES, decode_file_name, decode_skipping_stored_rox,
};
use chart_index_domain::limits::{MAX_CHART_FILE_BYTES, MAX_CHART_FILES, MAX_CHARTS};
use chart_index_domain::{
    ChartDraft, ChartsetDraft, ChartsetId, ChartsetTooLarge, PublicSource, SourceKind, SourceRef,
};
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::library::{Layout, Place, format_of};

/// How deep below a song folder its chart files may lie.
const MAX_DEPTH: usize = 8;

/// A song folder as it was read.
#[derive(Debug)]
pub(crate) struct SongFolder {
    /// The chartset that it stands for.
    pub(crate) id: ChartsetId,
    /// Whether files exist that cannot be read: the index keeps the chartset as it is.
    pub(crate) is_unreadable: bool,
    /// What the index is to hold of it; `None` when nothing in it can be indexed.
    pub(crate) draft: Option<ChartsetDraft>,
    /// What in it cannot be indexed, and why.
    pub(crate) refused: Vec<Refused>,
}

/// A file, or one chart of a file, that is not indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// The file, below the library root.
    pub(crate) file: String,
    /// Which chart of a file whose other charts are indexed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chart: Option<String>,
    /// Why.
    pub(crate) reason: String,
}

/// A chart file of a song folder: its path in the folder and its bytes.
pub(crate) struct ChartFile {
    pub(crate) name: String,
    pub(crate) content: Result<Vec<u8>, EntryError>,
}

/// The chartset that the files of a place which are in no folder of their own stand for. Known before the place is
/// read.
pub(crate) fn own_id(place: &Place) -> ChartsetId {
    Identity::of(place, "").id
}

/// The song folders in the files of a place. ROX files that are stored already are not made again.
pub(crate) fn decode(place: &Place, files: Vec<ChartFile>, is_stored: IsStored<'_>) -> Vec<SongFolder> {
    song_folders(place, files)
        .into_iter()
        .filter(|(_, files)| !files.is_empty())
        .map(|(below, files)| read_song_folder(&Identity::of(place, &below), files, is_stored))
        .collect()
}

/// Why a whole place cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    name: Option<String>,
    reason: String,
}

impl Unreadable {
    fn of(self, place: &Place) -> Refused {
        let file = self.name.map_or_else(|| place.path.clone(), |name| format!("{}/{name}", place.path));
        Refused { file, chart: None, reason: self.reason }
    }

    /// The song folder of a place that cannot be read: a file that exists and cannot be read leaves the chartset as
    /// the index has it, since what it held cannot be told from what it lost.
    pub(crate) fn song_folder(self, place: &Place) -> SongFolder {
        SongFolder { id: own_id(place), is_unreadable: true, draft: None, refused: vec![self.of(place)] }
    }

    fn too_large(error: ChartsetTooLarge) -> Self {
        Self { name: None, reason: error.to_string() }
    }
}

/// The chart files of a place with their bytes, ordered by name.
pub(crate) fn read(place: &Place) -> Result<Vec<ChartFile>, Unreadable> {
    if place.is_archive { archive_files(&place.location) } else { folder_files(place) }
}

fn folder_files(place: &Place) -> Result<Vec<ChartFile>, Unreadable> {
    let mut bytes = 0;
    let mut files = Vec::new();
    for (name, path) in list(place)? {
        let content = read_file(&path).map_err(|error| Unreadable {
            name: Some(name.clone()),
            reason: format!("cannot be read: {error}"),
        })?;
        bytes += content.as_ref().map_or(0, |content| content.len() as u64);
        check_bytes(bytes).map_err(Unreadable::too_large)?;
        files.push(ChartFile { name, content });
    }
    Ok(files)
}

/// The chart files of a folder by name, each with where it is. A folder with more of them than a chartset may have is
/// refused; its other files may be any number.
pub(crate) fn list(place: &Place) -> Result<Vec<(String, PathBuf)>, Unreadable> {
    let depth = if matches!(place.layout, Layout::AlphaSet | Layout::BetaSong) { MAX_DEPTH } else { 1 };
    let (mut files, mut count) = (Vec::new(), 0);
    for entry in WalkDir::new(&place.location).min_depth(1).max_depth(depth) {
        let entry = entry.map_err(|error| Unreadable { name: None, reason: error.to_string() })?;
        // Only regular files: a pipe would be waited for, a link may lead anywhere.
        if !entry.file_type().is_file() || format_of(entry.path()).is_none() {
            continue;
        }
        count += 1;
        if count <= MAX_CHART_FILES {
            let below = entry.path().strip_prefix(&place.location).unwrap_or(entry.path());
            let name = below.iter().map(decode_file_name).collect::<Vec<_>>().join("/");
            files.push((name, entry.into_path()));
        }
    }
    check_files(count).map_err(Unreadable::too_large)?;
    files.sort();
    Ok(files)
}

fn check_files(count: usize) -> Result<(), ChartsetTooLarge> {
    ChartsetTooLarge::check("chart files", count as u64, MAX_CHART_FILES as u64)
}

fn check_bytes(bytes: u64) -> Result<(), ChartsetTooLarge> {
    ChartsetTooLarge::check("bytes of chart files", bytes, MAX_CHART_FILE_BYTES)
}

/// The bytes of a file, or the refusal of one that is too large to be a chart.
fn read_file(path: &Path) -> std::io::Result<Result<Vec<u8>, EntryError>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    // The decoder refuses what is longer than its limit, so the rest of the file need not be read.
    Ok(Ok(bytes))
}

fn archive_files(path: &Path) -> Result<Vec<ChartFile>, Unreadable> {
    let unreadable = |reason: String| Unreadable { name: None, reason };
    let file = File::open(path).map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    let files =
        archive::read_chart_files(BufReader::new(file)).map_err(|refusal| unreadable(refusal.to_string()))?;
    Ok(files.into_iter().map(|ArchivedFile { path, content }| ChartFile { name: path, content }).collect())
}

/// Splits the files of a place into song folders, by their path below the place (empty for the place itself).
fn song_folders(place: &Place, mut files: Vec<ChartFile>) -> BTreeMap<String, Vec<ChartFile>> {
    if place.is_archive {
        strip_wrapping_folder(place.layout, &mut files);
    }
    let mut folders: BTreeMap<String, Vec<ChartFile>> = BTreeMap::new();
    for mut file in files {
        let below = match place.layout {
            Layout::AlphaSet | Layout::BetaSong => None,
            Layout::BetaPack => file.name.split_once('/'),
            Layout::Plain => file.name.rsplit_once('/'),
        };
        let folder = match below.map(|(folder, name)| (folder.to_owned(), name.to_owned())) {
            Some((folder, name)) => {
                file.name = name;
                folder
            }
            None => String::new(),
        };
        folders.entry(folder).or_default().push(file);
    }
    folders
}

/// Most archives hold one folder, which stands for the archive itself. In the archive of a pack that folder is
/// only taken away when there are song folders inside it.
fn strip_wrapping_folder(layout: Layout, files: &mut [ChartFile]) {
    let Some(first) = files.first().and_then(|file| file.name.split_once('/')) else { return };
    let wrapping = format!("{}/", first.0);
    let needed_below = usize::from(layout == Layout::BetaPack);
    let wraps = |file: &ChartFile| {
        file.name.strip_prefix(&wrapping).is_some_and(|below| below.matches('/').count() >= needed_below)
    };
    if files.iter().all(wraps) {
        for file in files {
            file.name.drain(..wrapping.len());
        }
    }
}

/// What a song folder is called and belongs to.
struct Identity {
    id: ChartsetId,
    path: String,
    exact: Option<PublicSource>,
    /// Whether it is a set of the first game.
    is_alpha: bool,
}

impl Identity {
    fn of(place: &Place, below: &str) -> Self {
        let path = if below.is_empty() { place.path.clone() } else { format!("{}/{below}", place.path) };
        let parts: Vec<&str> = path.splitn(3, '/').collect();
        let folder = parts.get(1).copied().unwrap_or_default();
        let reference = SourceRef::from_folder_name(folder);
        let is_alpha = place.layout == Layout::AlphaSet;
        let (id, kind) = match (place.layout, &reference) {
            (Layout::Plain, _) | (_, None) => {
                return Self { id: ChartsetId::from_path(&path), path, exact: None, is_alpha };
            }
            (Layout::AlphaSet, Some(set)) => (ChartsetId::from_alpha_set(set), SourceKind::AlphaSet),
            (Layout::BetaSong | Layout::BetaPack, Some(pack)) => {
                let song = parts.get(2).copied().unwrap_or_default();
                (ChartsetId::from_beta_song(pack, song), SourceKind::BetaPack)
            }
        };
        let exact = reference.map(|reference| PublicSource { kind, reference });
        Self { id, path, exact, is_alpha }
    }

    /// The chart without the ids of the first game, where a `.qua` file outside of that game names some: other games
    /// with numbers of their own write this format.
    fn checked_ids(&self, format: ChartFormat, mut chart: ChartDraft) -> ChartDraft {
        if format == ChartFormat::Qua && !self.is_alpha {
            chart.declared_source = None;
            chart.alpha_beatmap_id = None;
        }
        chart
    }
}

/// The files that exist and cannot be read, with the reason.
fn unreadable_files(identity: &Identity, files: &[ChartFile]) -> Vec<Refused> {
    let unreadable = files.iter().filter_map(|file| match &file.content {
        Err(reason @ EntryError::Unreadable { .. }) => Some((file, reason)),
        _ => None,
    });
    unreadable
        .map(|(file, reason)| Refused {
            file: format!("{}/{}", identity.path, file.name),
            chart: None,
            reason: reason.to_string(),
        })
        .collect()
}

fn read_song_folder(identity: &Identity, files: Vec<ChartFile>, is_stored: IsStored<'_>) -> SongFolder {
    let unreadable = unreadable_files(identity, &files);
    if !unreadable.is_empty() {
        return SongFolder { id: identity.id, is_unreadable: true, draft: None, refused: unreadable };
    }
    let mut refused = Vec::new();
    let draft = check_size(&files)
        .and_then(|()| decode_files(identity, files, is_stored, &mut refused))
        .unwrap_or_else(|too_large| {
            refused.push(Refused { file: identity.path.clone(), chart: None, reason: too_large.to_string() });
            None
        });
    SongFolder { id: identity.id, is_unreadable: false, draft, refused }
}

fn check_size(files: &[ChartFile]) -> Result<(), ChartsetTooLarge> {
    check_files(files.len())?;
    check_bytes(files.iter().flat_map(|file| &file.content).map(|content| content.len() as u64).sum())
}

/// The chartset in the files; `None` when nothing in them can be indexed.
fn decode_files(
    identity: &Identity,
    mut files: Vec<ChartFile>,
    is_stored: IsStored<'_>,
    refused: &mut Vec<Refused>,
) -> Result<Option<ChartsetDraft>, ChartsetTooLarge> {
    // The first file that has a chart is the one that counts. An `.ssc` says more of a chart than the `.sm` that
    // lies beside it for older versions of the game, which is also the order in which that game reads them.
    files.sort_by_cached_key(|file| {
        let (stem, extension) = file.name.rsplit_once('.').unwrap_or((&file.name, ""));
        (stem.to_owned(), extension.eq_ignore_ascii_case("sm"), extension.to_owned())
    });
    let mut seen = HashSet::new();
    let mut charts: Vec<ChartDraft> = Vec::new();
    for file in files {
        let path = format!("{}/{}", identity.path, file.name);
        let refuse =
            |chart, reason: &dyn Display| Refused { file: path.clone(), chart, reason: reason.to_string() };
        let Some(format) = ChartFormat::from_path(&file.name) else { continue };
        match file.content.and_then(|bytes| Ok(decode_skipping_stored_rox(format, &bytes, is_stored)?)) {
            Err(refusal) => refused.push(refuse(None, &refusal)),
            Ok(decoded) => {
                refused.extend(
                    decoded.skipped.iter().map(|left| refuse(Some(left.chart.clone()), &left.reason)),
                );
                let fresh = decoded.charts.into_iter().filter(|chart| seen.insert(chart.hash));
                charts.extend(fresh.map(|chart| identity.checked_ids(format, chart)));
                ChartsetTooLarge::check("charts", charts.len() as u64, MAX_CHARTS as u64)?;
            }
        }
    }
    if charts.is_empty() {
        return Ok(None);
    }
    let (id, path, exact) = (identity.id, identity.path.clone(), identity.exact.clone());
    let draft = ChartsetDraft { id, path, exact_source: exact, charts };
    draft.check_limits()?;
    Ok(Some(draft))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    const OSU: &str = "osu file format v14\n\n[General]\nMode: 3\n\n[Metadata]\nTitle:Test\nBeatmapID:7\n\
                       BeatmapSetID:9\n\n[Difficulty]\nCircleSize:4\n\n[TimingPoints]\n0,500,4,1,0,100,1,0\n\n\
                       [HitObjects]\n64,192,1000,1,0,0:0:0:0:\n";
    const QUA: &str =
        "Mode: Keys4\nMapId: 7\nMapSetId: 9\nTimingPoints:\n- Bpm: 120\nHitObjects:\n- Lane: 1\n";

    fn read_place(place: &Place) -> Vec<SongFolder> {
        match read(place) {
            Ok(files) => decode(place, files, &|_| false),
            Err(unreadable) => vec![unreadable.song_folder(place)],
        }
    }

    /// What is read from a library of these files below `path`.
    fn read_library(files: &[(&str, &[u8])], path: &str) -> Vec<SongFolder> {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let places = crate::library::places(&root.path().join(path)).unwrap();
        places.iter().flat_map(read_place).collect()
    }

    /// An archive of these files, stored as they are; in the last one a byte differs from its checksum.
    fn damaged_archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, content) in files {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        let mut archive = writer.finish().unwrap().into_inner();
        let (_, last) = files.last().unwrap();
        let at = archive.windows(last.len()).rposition(|window| window == last.as_bytes()).unwrap();
        archive[at + 3] ^= 1;
        archive
    }

    #[test]
    fn an_unreadable_entry_leaves_the_chartset_as_it_is() {
        let archive = damaged_archive(&[("a.osu", OSU), ("b.txt", "text"), ("c.qua", QUA)]);
        let folders = read_library(&[("alpha/1 one.osz", &archive)], "");
        let [folder] = &folders[..] else { panic!("{folders:?}") };
        assert!(folder.draft.is_none());
        let [refused] = &folder.refused[..] else { panic!("{folder:?}") };
        assert_eq!(refused.file, "alpha/1 one/c.qua");
        assert!(refused.reason.starts_with("cannot be read: "), "{refused:?}");
    }

    #[test]
    fn an_unreadable_entry_concerns_its_own_song_folder_only() {
        let archive = damaged_archive(&[("one/a.osu", OSU), ("two/a.osu", OSU), ("two/b.qua", QUA)]);
        let folders = read_library(&[("beta/3 pack.zip", &archive)], "");
        let drafts: Vec<_> =
            folders.iter().map(|folder| folder.draft.as_ref().map(|draft| &draft.path)).collect();
        assert_eq!(drafts, [Some(&"beta/3 pack/one".to_owned()), None]);
    }

    #[test]
    fn an_entry_that_is_no_chart_is_refused_and_the_rest_counts() {
        let files = [("alpha/1 one/a.osu", OSU.as_bytes()), ("alpha/1 one/b.qua", b"Mode: Keys300\n")];
        let folders = read_library(&files, "");
        assert_eq!((folders[0].draft.as_ref().unwrap().charts.len(), folders[0].refused.len()), (1, 1));
    }

    #[test]
    fn a_qua_file_names_ids_of_the_first_game_only_in_that_game() {
        for (file, content, declares) in [
            ("alpha/no id/a.qua", QUA, true),
            ("alpha/1 one/a.qua", QUA, true),
            ("beta/3 pack/song/a.qua", QUA, false),
            ("else/a.qua", QUA, false),
            ("beta/3 pack/song/a.osu", OSU, true),
            ("else/a.osu", OSU, true),
        ] {
            // The second file makes the folder a library, whatever the first is.
            let files = [(file, content.as_bytes()), ("alpha/.keep/none", b"".as_slice())];
            let folders = read_library(&files, "");
            let chart = &folders[0].draft.as_ref().unwrap().charts[0];
            assert_eq!(
                (chart.declared_source.is_some(), chart.alpha_beatmap_id.is_some()),
                (declares, declares),
                "{file}"
            );
        }
    }

    #[test]
    #[cfg(unix)]
    fn names_that_are_not_utf_8_are_read() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        // "夜明けの航路" in Shift-JIS.
        let name: &[u8] = b"\x96\xe9\x96\xbe\x82\xaf\x82\xcc\x8dq\x98H";
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("beta/3 pack").join(OsStr::from_bytes(name));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(OsStr::from_bytes(&[name, b".osu"].concat())), OSU).unwrap();
        let archive = root.path().join("alpha").join(OsStr::from_bytes(&[b"5 ", name, b".osz"].concat()));
        std::fs::create_dir_all(archive.parent().unwrap()).unwrap();
        std::fs::write(archive, "no archive").unwrap();
        let places = crate::library::places(root.path()).unwrap();
        let folders: Vec<_> = places.iter().flat_map(read_place).collect();
        let drafts: Vec<_> =
            folders.iter().flat_map(|folder| &folder.draft).map(|draft| &draft.path).collect();
        assert_eq!(drafts, ["beta/3 pack/夜明けの航路"]);
        let refused: Vec<_> =
            folders.iter().flat_map(|folder| &folder.refused).map(|each| &each.file).collect();
        assert_eq!(refused, ["alpha/5 夜明けの航路"]);
    }
}
