//! Charts with notes: files of the first game, decoded as by an ingest.

use std::fmt::Write;

use chart_index_chartfile::{ChartFormat, decode};
use chart_index_domain::{ChartDraft, ChartMetadata, ChartNumbers};
use fastrand::Rng;

use super::random::per_mille;

/// The chart with notes that have about its numbers. They determine its note hash, numbers, variant,
/// ROX file and preview, and depend on the note hash that it had.
pub(super) fn with_notes(chart: ChartDraft) -> ChartDraft {
    let (seed, _) = chart.hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    let mut random = Rng::with_seed(u64::from_le_bytes(*seed));
    let file = chart_file(&chart.numbers, &chart.metadata, &mut random);
    let decoded = decode(ChartFormat::Osu, file.as_bytes()).ok().and_then(|mut file| file.charts.pop());
    let Some(ChartDraft { hash, numbers, variant, analysis, rox, curve, aliases, .. }) = decoded else {
        unreachable!("a generated chart can be decoded: {file}")
    };
    ChartDraft { hash, numbers, variant, analysis, rox, curve, aliases, ..chart }
}

fn chart_file(numbers: &ChartNumbers, metadata: &ChartMetadata, random: &mut Rng) -> String {
    let mut file = String::with_capacity(1_000 + 24 * numbers.notes as usize);
    let ChartMetadata { title, artist, creator, difficulty, .. } = metadata;
    let keys = numbers.keys.get();
    let written = write!(
        file,
        "osu file format v14\n\n[General]\nMode: 3\n\n[Metadata]\nTitle:{title}\nArtist:{artist}\nCreator:{creator}\n\
         Version:{difficulty}\n\n[Difficulty]\nCircleSize:{keys}\n\n[TimingPoints]\n"
    )
    .and_then(|()| write_bpm_points(&mut file, numbers))
    .and_then(|()| file.write_str("\n[HitObjects]\n"))
    .and_then(|()| write_notes(&mut file, numbers, random));
    written.unwrap_or_else(|_| unreachable!("a string can be written to"));
    file
}

/// The main BPM, with short sections of the lowest and the highest.
fn write_bpm_points(file: &mut String, numbers: &ChartNumbers) -> std::fmt::Result {
    let ChartNumbers { bpm_min, bpm_main, bpm_max, length_ms, .. } = *numbers;
    let points = [(0, bpm_main), (30, bpm_min), (40, bpm_main), (70, bpm_max), (80, bpm_main)];
    let points = if bpm_min < bpm_max { &points[..] } else { &points[..1] };
    for (percent, bpm) in points {
        let time_ms = u64::from(length_ms) * percent / 100;
        writeln!(file, "{time_ms},{},4,2,1,50,1,0", 60_000.0 / bpm)?;
    }
    Ok(())
}

/// Notes on the quarters of the beats of the main BPM, as many in each row as their number requires.
fn write_notes(file: &mut String, numbers: &ChartNumbers, random: &mut Rng) -> std::fmt::Result {
    let ChartNumbers { keys, bpm_main, length_ms, notes, lns, .. } = *numbers;
    let keys = u32::from(keys.get());
    let row_ms = 15_000.0 / bpm_main.max(1.0);
    let row_at = |row: u32| (f64::from(row) * row_ms).round();
    let rows = (0..=length_ms).take_while(|row| *row == 0 || row_at(*row) < f64::from(length_ms)).count();
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let per_mille_of_lns = lns * 1_000 / notes.max(1);
    let per_row_thousandths = (u64::from(notes) * 1_000 / u64::from(rows)).min(u64::from(keys) * 1_000);
    let per_row_thousandths = u32::try_from(per_row_thousandths).unwrap_or(u32::MAX);
    let mut free_from = [0; 8];
    for row in 0..rows {
        let more = per_mille(random, per_row_thousandths % 1_000);
        let count = (per_row_thousandths / 1_000 + u32::from(more)).max(u32::from(row == 0));
        let first = random.u32(0..keys);
        for place in 0..count {
            let column = (first + place) % keys;
            if free_from[column as usize] > row {
                continue;
            }
            let (x, time_ms) = ((512 * column + 256) / keys, row_at(row));
            if per_mille(random, per_mille_of_lns) {
                let end = row + random.u32(1..=4);
                free_from[column as usize] = end + 1;
                writeln!(file, "{x},192,{time_ms},128,0,{}:0:0:0:0:", row_at(end))?;
            } else {
                writeln!(file, "{x},192,{time_ms},1,0,0:0:0:0:")?;
            }
        }
    }
    Ok(())
}
