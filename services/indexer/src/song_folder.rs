//! Decodes the chart files of an input into chartset drafts, one per song folder.

use std::collections::BTreeMap;

use chart_index_chartfile::{
    ChartFormat, DecodedFile, IsStored, Refusal, RefusalKind, RefusedChart, decode_skipping_stored_rox,
};
use chart_index_domain::limits::MAX_CHARTS;
use chart_index_domain::{ChartDraft, ChartsetDraft, ChartsetId, ChartsetTooLarge, DistinctCharts};
use serde::{Deserialize, Serialize};

use crate::archive_folders::ChartFile;
use crate::input_files::{InputError, check_bytes, check_files};
use crate::library::{FolderInInput, Input, SongFolderIdentity};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chart: Option<String>,
    pub(crate) kind: RefusalKind,
    /// What is wrong, with details.
    pub(crate) reason: String,
}

impl RefusedFile {
    fn new(file: String, chart: Option<String>, reason: &Refusal) -> Self {
        Self { file, chart, kind: reason.into(), reason: reason.to_string() }
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
        let refused = vec![RefusedFile::new(file, None, &error.reason)];
        Self { id: input.identify(&FolderInInput::default()).id, is_unreadable: true, draft: None, refused }
    }
}

/// Decodes the files of an input, without encoding ROX files that are already stored.
pub(crate) fn decode(input: &Input, files: Vec<ChartFile>, is_stored: IsStored<'_>) -> Vec<SongFolder> {
    let mut folders: BTreeMap<FolderInInput, Vec<ChartFile>> = BTreeMap::new();
    for file in files {
        folders.entry(file.folder.clone()).or_default().push(file);
    }
    folders
        .into_iter()
        .map(|(folder, files)| decode_song_folder(&input.identify(&folder), files, is_stored))
        .collect()
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
            refused.push(RefusedFile::new(identity.path.clone(), None, &too_large));
            None
        });
    SongFolder { id: identity.id, is_unreadable: false, draft, refused }
}

/// The files that cannot be read, with the reasons.
fn unreadable_files(identity: &SongFolderIdentity, files: &[ChartFile]) -> Vec<RefusedFile> {
    let unreadable = files.iter().filter_map(|file| match &file.content {
        Err(reason) if reason.is_unreadable() => {
            Some(RefusedFile::new(path_of(identity, file), None, reason))
        }
        _ => None,
    });
    unreadable.collect()
}

/// The path of a file below the library root.
fn path_of(identity: &SongFolderIdentity, file: &ChartFile) -> String {
    if file.name.is_empty() { identity.path.clone() } else { format!("{}/{}", identity.path, file.name) }
}

fn check_size(files: &[ChartFile]) -> Result<(), Refusal> {
    check_files(files.len())?;
    check_bytes(files.iter().flat_map(|file| &file.content).map(|content| content.len() as u64).sum())
}

/// The chartset of the files; `None` if nothing in them can be indexed.
fn decode_files(
    identity: &SongFolderIdentity,
    files: Vec<ChartFile>,
    is_stored: IsStored<'_>,
    refused: &mut Vec<RefusedFile>,
) -> Result<Option<ChartsetDraft>, Refusal> {
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

/// The charts of a file. Adds what cannot be indexed to `refused`.
fn decode_file(
    identity: &SongFolderIdentity,
    file: ChartFile,
    is_stored: IsStored<'_>,
    refused: &mut Vec<RefusedFile>,
) -> Vec<ChartDraft> {
    let (path, format) = (path_of(identity, &file), ChartFormat::from_path(&file.name));
    let decoded = match (file.content, format) {
        (Ok(bytes), Some(format)) => decode_skipping_stored_rox(format, &bytes, is_stored),
        // Only chart files have content.
        (Ok(_), None) => return Vec::new(),
        (Err(reason), _) => Err(reason),
    };
    match decoded {
        Err(reason) => {
            refused.push(RefusedFile::new(path, None, &reason));
            Vec::new()
        }
        Ok(DecodedFile { charts, refused: refused_charts }) => {
            let refuse =
                |RefusedChart { chart, reason }| RefusedFile::new(path.clone(), Some(chart), &reason);
            refused.extend(refused_charts.into_iter().map(refuse));
            charts.into_iter().map(|chart| without_foreign_ids(identity, format, chart)).collect()
        }
    }
}

/// Removes the ids from a `.qua` chart outside the first game: other games with ids of their own write this
/// format.
fn without_foreign_ids(
    identity: &SongFolderIdentity,
    format: Option<ChartFormat>,
    mut chart: ChartDraft,
) -> ChartDraft {
    if format == Some(ChartFormat::Qua) && !identity.is_alpha {
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
    fn unreadable_archive_in_an_archive_affects_only_itself() {
        let damaged = damaged_archive(&[("a.osu", OSU)]);
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in [
            ("5 a.osz", &damaged[..]),
            ("6 b.osz", b"no archive"),
            ("a.osu", OSU.as_bytes()),
            ("7 c.osz", &damaged),
        ] {
            writer.start_file(name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        let archive = writer.finish().unwrap().into_inner();
        for file in ["alpha/4 sets.zip", "alpha/4 sets/more.zip"] {
            let folders = read_library(&[(file, &archive)]);
            let [.., a, b, c] = &folders[..] else { panic!("{folders:?}") };
            assert!(
                [a, b, c].iter().all(|folder| folder.is_unreadable && folder.draft.is_none()),
                "{folders:?}"
            );
            assert!(b.refused[0].file.ends_with("/6 b"), "{b:?}");
            assert_eq!(b.refused[0].kind, RefusalKind::UnreadableArchive);
            assert_eq!(folders[0].draft.as_ref().unwrap().charts.len(), 1);
            assert_eq!(folders.len(), 4);
        }
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
