//! Decodes the chart files of an input into chartset drafts, one per song folder.

use std::collections::BTreeMap;

use chart_index_chartfile::archive::EntryError;
use chart_index_chartfile::{ChartFormat, DecodedFile, IsStored, RefusedChart, decode_skipping_stored_rox};
use chart_index_domain::limits::MAX_CHARTS;
use chart_index_domain::{ChartDraft, ChartsetDraft, ChartsetId, ChartsetTooLarge, DistinctCharts};
use serde::{Deserialize, Serialize};

use crate::input_files::{ChartFile, InputError, check_bytes, check_files};
use crate::library::{Input, Layout, SongFolderIdentity};
use crate::refusal_kind::RefusalKind;

#[derive(Debug)]
pub(crate) struct SongFolder {
    pub(crate) id: ChartsetId,
    /// Whether there are files that cannot be read, in which case the stored chartset is left unchanged.
    pub(crate) is_unreadable: bool,
    /// The chartset; `None` if nothing in the folder can be indexed.
    pub(crate) draft: Option<ChartsetDraft>,
    /// What cannot be indexed.
    pub(crate) refused: Vec<RefusedFile>,
}

/// A file, or one chart of a file, that is not indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedFile {
    /// The path of the file below the library root.
    pub(crate) file: String,
    /// The chart, if other charts of the file are indexed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chart: Option<String>,
    pub(crate) kind: RefusalKind,
    /// What is wrong, with details.
    pub(crate) reason: String,
}

impl RefusedFile {
    fn new(file: String, kind: RefusalKind, reason: String) -> Self {
        Self { file, chart: None, kind, reason }
    }
}

impl SongFolder {
    /// Whether there are chart files, none of which can be indexed.
    pub(crate) const fn is_refused(&self) -> bool {
        self.draft.is_none() && !self.refused.is_empty()
    }

    /// The song folder of an input that cannot be read. The stored chartset is left unchanged, since it is
    /// unknown whether the files still have its charts.
    pub(crate) fn unreadable(input: &Input, error: InputError) -> Self {
        let file = error.file.map_or_else(|| input.path.clone(), |name| format!("{}/{name}", input.path));
        let refused = vec![RefusedFile::new(file, error.kind, error.reason)];
        Self { id: input.identify("").id, is_unreadable: true, draft: None, refused }
    }
}

/// Decodes the files of an input, without encoding ROX files that are already stored.
pub(crate) fn decode(input: &Input, files: Vec<ChartFile>, is_stored: IsStored<'_>) -> Vec<SongFolder> {
    group_by_folder(input, files)
        .into_iter()
        .filter(|(_, files)| !files.is_empty())
        .map(|(subfolder, files)| decode_song_folder(&input.identify(&subfolder), files, is_stored))
        .collect()
}

/// Groups the files of an input by song folder: its path in the input, or empty for the input itself. The
/// files' names become relative to the song folder.
fn group_by_folder(input: &Input, mut files: Vec<ChartFile>) -> BTreeMap<String, Vec<ChartFile>> {
    if input.is_archive {
        strip_wrapping_folder(input.layout, &mut files);
    }
    let mut folders: BTreeMap<String, Vec<ChartFile>> = BTreeMap::new();
    for mut file in files {
        let split = match input.layout {
            Layout::AlphaSet | Layout::BetaSong => None,
            Layout::BetaPack => file.name.split_once('/'),
            Layout::Plain => file.name.rsplit_once('/'),
        };
        let folder = match split.map(|(folder, name)| (folder.to_owned(), name.to_owned())) {
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

/// Removes the folder that contains all files of an archive, if there is one: most archives have it, and it is
/// equivalent to the archive itself. In the archive of a pack it is a song folder unless there are further
/// folders in it.
fn strip_wrapping_folder(layout: Layout, files: &mut [ChartFile]) {
    let Some(first) = files.first().and_then(|file| file.name.split_once('/')) else { return };
    let wrapping = format!("{}/", first.0);
    let min_depth = usize::from(layout == Layout::BetaPack);
    let is_wrapped = |file: &ChartFile| {
        file.name.strip_prefix(&wrapping).is_some_and(|name| name.matches('/').count() >= min_depth)
    };
    if files.iter().all(is_wrapped) {
        for file in files {
            file.name.drain(..wrapping.len());
        }
    }
}

fn decode_song_folder(
    identity: &SongFolderIdentity,
    files: Vec<ChartFile>,
    is_stored: IsStored<'_>,
) -> SongFolder {
    let unreadable = unreadable_files(identity, &files);
    if !unreadable.is_empty() {
        return SongFolder { id: identity.id, is_unreadable: true, draft: None, refused: unreadable };
    }
    let mut refused = Vec::new();
    let draft = check_size(&files)
        .and_then(|()| decode_files(identity, files, is_stored, &mut refused))
        .unwrap_or_else(|too_large| {
            let (file, reason) = (identity.path.clone(), too_large.to_string());
            refused.push(RefusedFile::new(file, RefusalKind::ChartsetTooLarge, reason));
            None
        });
    SongFolder { id: identity.id, is_unreadable: false, draft, refused }
}

/// The files that cannot be read, with the reasons.
fn unreadable_files(identity: &SongFolderIdentity, files: &[ChartFile]) -> Vec<RefusedFile> {
    let unreadable = files.iter().filter_map(|file| match &file.content {
        Err(reason @ EntryError::Unreadable { .. }) => Some((file, reason)),
        _ => None,
    });
    unreadable
        .map(|(file, reason)| {
            let path = format!("{}/{}", identity.path, file.name);
            RefusedFile::new(path, RefusalKind::from(reason), reason.to_string())
        })
        .collect()
}

fn check_size(files: &[ChartFile]) -> Result<(), ChartsetTooLarge> {
    check_files(files.len())?;
    check_bytes(files.iter().flat_map(|file| &file.content).map(|content| content.len() as u64).sum())
}

/// The chartset of the files; `None` if nothing in them can be indexed.
fn decode_files(
    identity: &SongFolderIdentity,
    mut files: Vec<ChartFile>,
    is_stored: IsStored<'_>,
    refused: &mut Vec<RefusedFile>,
) -> Result<Option<ChartsetDraft>, ChartsetTooLarge> {
    sort_by_precedence(&mut files);
    let mut charts = DistinctCharts::default();
    for file in files {
        let decoded = decode_file(identity, file, is_stored, refused);
        for chart in decoded {
            charts.add(chart);
        }
        ChartsetTooLarge::check("charts", charts.len() as u64, MAX_CHARTS as u64)?;
    }
    if charts.is_empty() {
        return Ok(None);
    }
    let (id, path, exact_source) = (identity.id, identity.path.clone(), identity.source.clone());
    let draft = ChartsetDraft { id, path, exact_source, charts: charts.into_charts() };
    draft.check_limits()?;
    Ok(Some(draft))
}

/// The charts of a file. Adds what cannot be indexed to `refused`, unless the name is not that of a chart file.
fn decode_file(
    identity: &SongFolderIdentity,
    file: ChartFile,
    is_stored: IsStored<'_>,
    refused: &mut Vec<RefusedFile>,
) -> Vec<ChartDraft> {
    let Some(format) = ChartFormat::from_path(&file.name) else { return Vec::new() };
    let path = format!("{}/{}", identity.path, file.name);
    match file.content.and_then(|bytes| Ok(decode_skipping_stored_rox(format, &bytes, is_stored)?)) {
        Err(refusal) => {
            refused.push(RefusedFile::new(path, RefusalKind::from(&refusal), refusal.to_string()));
            Vec::new()
        }
        Ok(DecodedFile { charts, refused: refused_charts }) => {
            refused.extend(refused_charts.into_iter().map(|RefusedChart { chart, reason }| RefusedFile {
                file: path.clone(),
                chart: Some(chart),
                kind: RefusalKind::from(&reason),
                reason: reason.to_string(),
            }));
            charts.into_iter().map(|chart| without_foreign_ids(identity, format, chart)).collect()
        }
    }
}

/// Sorts files so that the first one with a chart provides its metadata: an `.ssc`, which has more metadata,
/// before the `.sm` of the same name for older versions of the game. The game itself prefers the `.ssc`, too.
fn sort_by_precedence(files: &mut [ChartFile]) {
    files.sort_by_cached_key(|file| {
        let (stem, extension) = file.name.rsplit_once('.').unwrap_or((&file.name, ""));
        (stem.to_owned(), extension.eq_ignore_ascii_case("sm"), extension.to_owned())
    });
}

/// Removes the ids from a `.qua` chart outside the first game: other games with ids of their own write this
/// format.
fn without_foreign_ids(
    identity: &SongFolderIdentity,
    format: ChartFormat,
    mut chart: ChartDraft,
) -> ChartDraft {
    if format == ChartFormat::Qua && !identity.is_alpha {
        chart.declared_source = None;
        chart.alpha_beatmap_id = None;
    }
    chart
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::input_files;
    use crate::library::find_inputs;

    const OSU: &str = "osu file format v14\n\n[General]\nMode: 3\n\n[Metadata]\nTitle:Test\nBeatmapID:7\n\
                       BeatmapSetID:9\n\n[Difficulty]\nCircleSize:4\n\n[TimingPoints]\n0,500,4,1,0,100,1,0\n\n\
                       [HitObjects]\n64,192,1000,1,0,0:0:0:0:\n";
    const QUA: &str =
        "Mode: Keys4\nMapId: 7\nMapSetId: 9\nTimingPoints:\n- Bpm: 120\nHitObjects:\n- Lane: 1\n";

    fn read_input(input: &Input) -> Vec<SongFolder> {
        match input_files::read(input) {
            Ok(files) => decode(input, files, &|_| false),
            Err(error) => vec![SongFolder::unreadable(input, error)],
        }
    }

    fn read_library(files: &[(&str, &[u8])]) -> Vec<SongFolder> {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        find_inputs(root.path()).unwrap().iter().flat_map(read_input).collect()
    }

    /// An uncompressed archive of these files. The last one does not match its checksum.
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
    fn unreadable_entry_leaves_the_chartset_unchanged() {
        let archive = damaged_archive(&[("a.osu", OSU), ("b.txt", "text"), ("c.qua", QUA)]);
        let folders = read_library(&[("alpha/1 one.osz", &archive)]);
        let [folder] = &folders[..] else { panic!("{folders:?}") };
        assert!(folder.draft.is_none());
        let [refused] = &folder.refused[..] else { panic!("{folder:?}") };
        assert_eq!(refused.file, "alpha/1 one/c.qua");
        assert!(refused.reason.starts_with("cannot be read: "), "{refused:?}");
    }

    #[test]
    fn unreadable_entry_affects_only_its_song_folder() {
        let archive = damaged_archive(&[("one/a.osu", OSU), ("two/a.osu", OSU), ("two/b.qua", QUA)]);
        let folders = read_library(&[("beta/3 pack.zip", &archive)]);
        let drafts: Vec<_> =
            folders.iter().map(|folder| folder.draft.as_ref().map(|draft| &draft.path)).collect();
        assert_eq!(drafts, [Some(&"beta/3 pack/one".to_owned()), None]);
    }

    #[test]
    fn refused_file_does_not_affect_the_others() {
        let files = [("alpha/1 one/a.osu", OSU.as_bytes()), ("alpha/1 one/b.qua", b"Mode: Keys300\n")];
        let folders = read_library(&files);
        assert_eq!((folders[0].draft.as_ref().unwrap().charts.len(), folders[0].refused.len()), (1, 1));
    }

    #[test]
    fn qua_ids_are_used_only_in_the_first_game() {
        for (file, content, declares) in [
            ("alpha/no id/a.qua", QUA, true),
            ("alpha/1 one/a.qua", QUA, true),
            ("beta/3 pack/song/a.qua", QUA, false),
            ("else/a.qua", QUA, false),
            ("beta/3 pack/song/a.osu", OSU, true),
            ("else/a.osu", OSU, true),
        ] {
            // The second file makes the folder a library, whatever the first one is.
            let files = [(file, content.as_bytes()), ("alpha/.keep/none", b"".as_slice())];
            let folders = read_library(&files);
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
    fn names_that_are_not_utf_8_are_decoded() {
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
        let folders: Vec<_> = find_inputs(root.path()).unwrap().iter().flat_map(read_input).collect();
        let drafts: Vec<_> =
            folders.iter().flat_map(|folder| &folder.draft).map(|draft| &draft.path).collect();
        assert_eq!(drafts, ["beta/3 pack/夜明けの航路"]);
        let refused: Vec<_> =
            folders.iter().flat_map(|folder| &folder.refused).map(|each| &each.file).collect();
        assert_eq!(refused, ["alpha/5 夜明けの航路"]);
    }
}
