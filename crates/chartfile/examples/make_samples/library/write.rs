//! Writes chart files.

use std::fmt::Write as _;

use super::pattern::{Kind, Note, ROWS_PER_BEAT, ROWS_PER_MEASURE};

/// The metadata and timing of a song.
#[derive(Debug, Clone, Default)]
pub(crate) struct Song {
    pub(crate) title: &'static str,
    /// In Latin letters; empty if the original one is.
    pub(crate) title_romanised: &'static str,
    pub(crate) artist: &'static str,
    /// In Latin letters; empty if the original one is.
    pub(crate) artist_romanised: &'static str,
    /// Tags, as written in the file.
    pub(crate) tags: &'static str,
    /// BPMs, each with the beat at which it starts.
    pub(crate) bpms: Vec<(usize, f64)>,
    /// Stops in seconds, each with its beat. Only in simfiles.
    pub(crate) stops: Vec<(usize, f64)>,
    /// Set id that the files declare; 0 for none.
    pub(crate) set_id: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) difficulty: &'static str,
    pub(crate) creator: &'static str,
    pub(crate) keys: usize,
    /// 0 for none.
    pub(crate) id: u32,
    pub(crate) notes: Vec<Note>,
}

impl Song {
    fn romanised(romanised: &'static str, name: &'static str) -> &'static str {
        if romanised.is_empty() { name } else { romanised }
    }

    /// The time of a row in whole milliseconds after the start of the audio, as editors write it.
    fn time_ms(&self, row: usize) -> f64 {
        const START_MS: f64 = 1_250.0;
        let mut time = START_MS;
        for (index, &(beat, bpm)) in self.bpms.iter().enumerate() {
            let start = beat * ROWS_PER_BEAT;
            let end = self.bpms.get(index + 1).map_or(row, |&(next, _)| row.min(next * ROWS_PER_BEAT));
            if end > start {
                time += as_f64(end - start) * 60_000.0 / bpm / as_f64(ROWS_PER_BEAT);
            }
        }
        time.round()
    }
}

/// The text of an `.osu` file.
pub(crate) fn osu(song: &Song, chart: &Chart) -> String {
    let mut text = String::from("osu file format v14\n\n[General]\nAudioFilename: audio.mp3\nMode: 3\n\n");
    let (title, artist) = (song.title, song.artist);
    _ = writeln!(text, "[Metadata]\nTitle:{}", Song::romanised(song.title_romanised, title));
    _ = writeln!(text, "TitleUnicode:{title}");
    _ = writeln!(text, "Artist:{}", Song::romanised(song.artist_romanised, artist));
    _ = writeln!(text, "ArtistUnicode:{artist}\nCreator:{}\nVersion:{}", chart.creator, chart.difficulty);
    _ = writeln!(text, "Source:\nTags:{}\nBeatmapID:{}\nBeatmapSetID:{}", song.tags, chart.id, song.set_id);
    _ = writeln!(text, "\n[Difficulty]\nHPDrainRate:8\nCircleSize:{}\nOverallDifficulty:8", chart.keys);
    text.push_str("\n[TimingPoints]\n");
    for &(beat, bpm) in &song.bpms {
        let beat_length = 60_000.0 / bpm;
        _ = writeln!(text, "{},{beat_length},4,2,0,60,1,0", song.time_ms(beat * ROWS_PER_BEAT));
    }
    text.push_str("\n[HitObjects]\n");
    for note in &chart.notes {
        let x = (2 * note.column + 1) * 256 / chart.keys;
        let start = song.time_ms(note.row);
        _ = match note.kind {
            Kind::Long(rows) => {
                writeln!(text, "{x},192,{start},128,0,{}:0:0:0:0:", song.time_ms(note.row + rows))
            }
            _ => writeln!(text, "{x},192,{start},1,0,0:0:0:0:"),
        };
    }
    text
}

/// The text of a `.qua` file.
pub(crate) fn qua(song: &Song, chart: &Chart) -> String {
    let mut text = String::from("AudioFile: audio.mp3\nSongPreviewTime: 4000\nBackgroundFile: ''\n");
    let id = |id: u32| if id == 0 { "-1".to_owned() } else { id.to_string() };
    _ = writeln!(text, "MapId: {}\nMapSetId: {}\nMode: Keys{}", id(chart.id), id(song.set_id), chart.keys);
    _ = writeln!(text, "Title: {}\nArtist: {}\nSource: ''", song.title, song.artist);
    _ = writeln!(text, "Tags: {}\nCreator: {}", song.tags, chart.creator);
    _ = writeln!(text, "DifficultyName: {}\nTimingPoints:", chart.difficulty);
    for &(beat, bpm) in &song.bpms {
        _ = writeln!(text, "- StartTime: {}\n  Bpm: {bpm}", song.time_ms(beat * ROWS_PER_BEAT));
    }
    text.push_str("SliderVelocities: []\nHitObjects:\n");
    for note in &chart.notes {
        _ = writeln!(text, "- StartTime: {}\n  Lane: {}", song.time_ms(note.row), note.column + 1);
        if let Kind::Long(rows) = note.kind {
            _ = writeln!(text, "  EndTime: {}", song.time_ms(note.row + rows));
        }
    }
    text
}

/// The text of an `.sm` file.
pub(crate) fn sm(song: &Song, charts: &[Chart]) -> String {
    let mut text = simfile_header(song, charts.first().map_or("", |chart| chart.creator));
    for chart in charts {
        _ = write!(
            text,
            "\n#NOTES:\n     {}:\n     {}:\n     {}:\n     5:\n     0,0,0,0,0:\n{};\n",
            step_type(chart.keys),
            chart.creator,
            chart.difficulty,
            measures(chart)
        );
    }
    text
}

/// The text of an `.ssc` file.
pub(crate) fn ssc(song: &Song, charts: &[Chart]) -> String {
    let header = simfile_header(song, charts.first().map_or("", |chart| chart.creator));
    let mut text = format!("#VERSION:0.83;\n{header}");
    for chart in charts {
        let (step_type, difficulty, creator) = (step_type(chart.keys), chart.difficulty, chart.creator);
        _ = write!(
            text,
            "\n#NOTEDATA:;\n#STEPSTYPE:{step_type};\n#DESCRIPTION:{creator};\n#DIFFICULTY:{difficulty};\n\
             #METER:5;\n#CREDIT:{creator};\n#NOTES:\n{};\n",
            measures(chart)
        );
    }
    text
}

fn simfile_header(song: &Song, creator: &str) -> String {
    let pairs = |pairs: &[(usize, f64)]| {
        pairs.iter().map(|(beat, value)| format!("{beat}.000={value:.3}")).collect::<Vec<_>>().join("\n,")
    };
    format!(
        "#TITLE:{};\n#TITLETRANSLIT:{};\n#ARTIST:{};\n#ARTISTTRANSLIT:{};\n#CREDIT:{creator};\n\
         #MUSIC:audio.ogg;\n#OFFSET:-0.250;\n#BPMS:{};\n#STOPS:{};\n",
        song.title,
        song.title_romanised,
        song.artist,
        song.artist_romanised,
        pairs(&song.bpms),
        pairs(&song.stops)
    )
}

fn step_type(keys: usize) -> &'static str {
    match keys {
        4 => "dance-single",
        5 => "pump-single",
        6 => "dance-solo",
        7 => "kb7-single",
        _ => "dance-double",
    }
}

/// The notes of a chart in a simfile: one line per row, with commas between measures.
fn measures(chart: &Chart) -> String {
    let end_row = |note: &Note| match note.kind {
        Kind::Long(rows) | Kind::Roll(rows) => note.row + rows,
        Kind::Tap | Kind::Mine => note.row,
    };
    let rows = chart.notes.iter().map(end_row).max().map_or(0, |row| row + 1);
    let mut cells = vec![vec!['0'; chart.keys]; rows.next_multiple_of(ROWS_PER_MEASURE)];
    for note in &chart.notes {
        cells[note.row][note.column] = match note.kind {
            Kind::Tap => '1',
            Kind::Long(_) => '2',
            Kind::Roll(_) => '4',
            Kind::Mine => 'M',
        };
        if matches!(note.kind, Kind::Long(_) | Kind::Roll(_)) {
            cells[end_row(note)][note.column] = '3';
        }
    }
    let lines = |measure: &[Vec<char>]| -> String {
        measure.iter().map(|row| row.iter().collect::<String>() + "\n").collect()
    };
    cells.chunks(ROWS_PER_MEASURE).map(lines).collect::<Vec<_>>().join(",\n")
}

fn as_f64(rows: usize) -> f64 {
    f64::from(u32::try_from(rows).unwrap_or(u32::MAX))
}
