//! Chart libraries that a test writes itself, so that it knows every note.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A library in a temporary folder, deleted when the value is dropped.
#[derive(Debug)]
pub struct Library {
    folder: tempfile::TempDir,
}

/// A chart to write. Times are in milliseconds.
#[derive(Debug, Clone)]
pub struct ChartSpec {
    /// Key count of an `.osu` file; an `.sm` file has 4.
    pub keys: u8,
    /// As written to the file.
    pub title: String,
    /// Romanised title; empty if it is the same.
    pub title_romanised: String,
    /// As written to the file.
    pub artist: String,
    /// The author of the chart.
    pub creator: String,
    /// As written to the file.
    pub difficulty: String,
    /// Tags, separated by spaces.
    pub tags: String,
    /// The set that the metadata names; 0 for none.
    pub set_id: i64,
    /// The id of the chart in the first game; 0 for none.
    pub beatmap_id: i64,
    /// Beats per minute from the start on.
    pub bpm: f64,
    /// Beats per minute of the last 100 ms, if they differ.
    pub effect_bpm: Option<f64>,
    /// Notes as start, column and, for a long note, its end.
    pub notes: Vec<(i64, u8, Option<i64>)>,
}

impl Default for ChartSpec {
    fn default() -> Self {
        Self {
            keys: 4,
            title: "Title".into(),
            title_romanised: String::new(),
            artist: "Artist".into(),
            creator: "creator".into(),
            difficulty: "Hard".into(),
            tags: String::new(),
            set_id: 0,
            beatmap_id: 0,
            bpm: 150.0,
            effect_bpm: None,
            notes: vec![(1000, 0, None), (1500, 1, Some(2500)), (2000, 3, None)],
        }
    }
}

impl ChartSpec {
    /// A chart whose second note depends on the number, so that each number has another note hash.
    pub fn numbered(number: u32) -> Self {
        let notes = vec![(0, 0, None), (100 + i64::from(number), 1, None), (60_000, 2, None)];
        Self { notes, ..Self::default() }
    }

    /// The note hash, implemented independently from docs/formats/note-hash.md.
    pub fn note_hash(&self) -> String {
        let first = self.notes.iter().map(|note| note.0).min().expect("a chart has notes");
        let mut notes: Vec<(u32, u8, u8, u32)> = Vec::new();
        for (start, column, end) in &self.notes {
            let relative = |time: i64| u32::try_from(time - first).expect("a time in range");
            notes.push((relative(*start), *column, u8::from(end.is_some()), end.map_or(0, relative)));
        }
        notes.sort_unstable();
        let mut bytes = vec![self.keys];
        for (start, column, kind, end) in notes {
            bytes.extend(start.to_le_bytes());
            bytes.extend([column, kind]);
            if kind == 1 {
                bytes.extend(end.to_le_bytes());
            }
        }
        blake3::hash(&bytes).to_hex().to_string()
    }

    fn osu(&self) -> String {
        let romanised = if self.title_romanised.is_empty() { &self.title } else { &self.title_romanised };
        let mut text = format!(
            "osu file format v14\n\n[General]\nAudioFilename: a.mp3\nMode: 3\n\n[Metadata]\nTitle:{romanised}\n\
             TitleUnicode:{}\nArtist:{artist}\nArtistUnicode:{artist}\nCreator:{}\nVersion:{}\nTags:{}\n\
             BeatmapID:{}\nBeatmapSetID:{}\n\n[Difficulty]\nCircleSize:{}\nOverallDifficulty:8\n\n\
             [TimingPoints]\n{}\n[HitObjects]\n",
            self.title,
            self.creator,
            self.difficulty,
            self.tags,
            self.beatmap_id,
            self.set_id,
            self.keys,
            self.timing_points(),
            artist = self.artist,
        );
        for (start, column, end) in &self.notes {
            let x = (u32::from(*column) * 2 + 1) * 256 / u32::from(self.keys);
            let _ = match end {
                Some(end) => writeln!(text, "{x},192,{start},128,0,{end}:0:0:0:0:"),
                None => writeln!(text, "{x},192,{start},1,0,0:0:0:0:"),
            };
        }
        text
    }

    fn timing_points(&self) -> String {
        let point = |time: i64, bpm: f64| format!("{time},{},4,1,0,50,1,0\n", 60_000.0 / bpm);
        let end = self.notes.iter().map(|note| note.0).max().unwrap_or_default();
        let effect = self.effect_bpm.map(|bpm| point(end - 100, bpm));
        point(0, self.bpm) + &effect.unwrap_or_default()
    }
}

impl Default for Library {
    fn default() -> Self {
        Self::new()
    }
}

impl Library {
    /// An empty library.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(folder.path().join("library/alpha")).expect("a folder");
        Self { folder }
    }

    /// The folder that an ingest is given.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("library")
    }

    /// The root as an argument of a program.
    pub fn argument(&self) -> String {
        self.root().to_str().expect("a readable path").to_owned()
    }

    /// Writes a chart as an `.osu` file at a path below the root, and returns the chart.
    pub fn osu(&self, path: &str, chart: ChartSpec) -> ChartSpec {
        self.file(path, chart.osu());
        chart
    }

    /// Writes a file at a path below the root.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file is written");
    }

    /// Moves a folder below the root into an archive, as its top-level folder.
    pub fn pack(&self, folder: &str, archive: &str) {
        let file = std::fs::File::create(self.root().join(archive)).expect("an archive");
        let mut zip = zip::ZipWriter::new(file);
        let source = self.root().join(folder);
        let folder_name = source.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        for path in files_below(&source) {
            let below = path.strip_prefix(&source).ok().and_then(Path::to_str).expect("a name");
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(format!("{folder_name}/{below}"), options).expect("an entry is begun");
            std::io::Write::write_all(&mut zip, &std::fs::read(&path).expect("a file")).expect("an entry");
        }
        zip.finish().expect("the archive is complete");
        self.delete(folder);
    }

    /// Deletes a file or folder below the root.
    pub fn delete(&self, path: &str) {
        let path: &Path = &self.root().join(path);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
            .expect("it is deleted");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

/// The notes of a preview (docs/formats/preview.md), as those of a [`ChartSpec`].
pub fn notes_of_preview(preview: &serde_json::Value) -> Vec<(i64, u8, Option<i64>)> {
    let mut notes: Vec<(i64, u8, Option<i64>)> = Vec::new();
    for (column, steps) in (0..).zip(preview["columns"].as_array().expect("columns")) {
        let mut start = 0;
        for step in steps.as_array().expect("a column").iter().map(|step| step.as_i64().expect("a number")) {
            if step < 0 {
                notes.last_mut().expect("a long note has a start").2 = Some(start - step);
            } else {
                start += step;
                notes.push((start, column, None));
            }
        }
    }
    notes
}
