//! One chart of a simfile: its notes with their times, and its metadata.

use chart_index_domain::clean;
use chart_index_rox::{Metadata, Note, RoxChart};

use super::notes::{Kind, RowNote, read_notes};
use super::number::Number;
use super::song::{ChartTags, Song};
use super::step_types::columns;
use super::timeline::{Timeline, microseconds};
use crate::Refusal;
use crate::game_chart::GameChart;
use crate::metadata::excerpt;
use crate::text_encoding::TextDecoder;

/// Reads the charts of one song.
pub(super) struct ChartReader<'a> {
    pub(super) is_sm: bool,
    pub(super) texts: TextDecoder,
    pub(super) song: Song<'a>,
    /// The timing of the song, if it can be read.
    pub(super) timeline: Result<Timeline, Refusal>,
}

impl ChartReader<'_> {
    /// The chart with these tags.
    pub(super) fn read(&self, tags: &ChartTags<'_>) -> Result<GameChart, Refusal> {
        let step_type = tags.step_type.text();
        let step_type = if self.is_sm { step_type.trim_ascii() } else { &step_type };
        let keys = columns(&String::from_utf8_lossy(step_type), self.is_sm)?;
        let own;
        let timeline = if tags.timing.is_empty() {
            self.timeline.as_ref().map_err(Clone::clone)?
        } else {
            own = Timeline::new(tags.timing.copied()?)?;
            &own
        };
        let mut chart = RoxChart::new(keys);
        chart.notes = notes(&read_notes(&tags.measures.text_with_comments(), keys, self.is_sm)?, timeline)?;
        chart.timing_points = timeline.bpm_points().collect();
        shift(&mut chart, -microseconds(tags.offset_s)?);
        chart.metadata = self.metadata(tags)?;
        Ok(GameChart {
            title_romanised: Some(self.romanised_title()),
            artist_romanised: Some(self.text(self.song.artist_translit)),
            chart,
        })
    }

    /// Step type and difficulty; for an edit, its description in place of the difficulty.
    pub(super) fn name(&self, tags: &ChartTags<'_>) -> String {
        let name = format!("{} {}", self.text(tags.step_type), self.label(tags));
        excerpt(name.trim())
    }

    fn label(&self, tags: &ChartTags<'_>) -> String {
        let (difficulty, description) = (self.text(tags.difficulty), self.text(tags.description));
        let is_edit = difficulty.eq_ignore_ascii_case("edit") && !description.is_empty();
        if is_edit { description } else { difficulty }
    }

    /// The title as the game shows it, with the subtitle (Song.cpp, `GetDisplayFullTitle`).
    fn title(&self) -> String {
        clean(&format!("{} {}", self.text(self.song.title), self.text(self.song.subtitle)))
    }

    /// The romanised title with the romanised subtitle, each the other one if there is none (Song.cpp,
    /// `GetTranslitFullTitle`).
    fn romanised_title(&self) -> String {
        let song = &self.song;
        let or = |romanised: String, name| if romanised.is_empty() { self.text(name) } else { romanised };
        let title = or(self.text(song.title_translit), song.title);
        let subtitle = or(self.text(song.subtitle_translit), song.subtitle);
        format!("{title} {subtitle}")
    }

    fn metadata(&self, tags: &ChartTags<'_>) -> Result<Metadata, Refusal> {
        let song = &self.song;
        let creator = self.text(tags.credit);
        let background = self.text(song.background);
        let meter = String::from_utf8_lossy(&tags.meter.text()).trim().parse::<u16>().unwrap_or_default();
        Ok(Metadata {
            title: self.title().into(),
            artist: self.text(song.artist).into(),
            creator: if creator.is_empty() { self.text(song.credit) } else { creator }.into(),
            difficulty_name: self.label(tags).into(),
            difficulty_value: Some(meter.into()),
            audio_file: self.text(song.music).into(),
            background_file: Some(background).filter(|name| !name.is_empty()).map(Into::into),
            preview_time_us: microseconds(Number::read(&song.sample_start.text())?.double)?,
            preview_duration_us: microseconds(Number::read(&song.sample_length.text())?.double)?,
            ..Metadata::default()
        })
    }

    fn text(&self, parameter: super::msd::Parameter<'_>) -> String {
        parameter.display(self.texts)
    }
}

/// The notes that are judged. A long note is, if its head is.
fn notes(rows: &[RowNote], timeline: &Timeline) -> Result<Vec<Note>, Refusal> {
    let mut notes = Vec::with_capacity(rows.len());
    for note in rows.iter().filter(|note| timeline.is_judged(note.row)) {
        let start_us = timeline.note_us(note.row)?;
        let duration_us = match note.end_row {
            Some(end_row) => timeline.note_us(end_row)? - start_us,
            None => 0,
        };
        notes.push(match note.kind {
            Kind::LongNote => Note::hold(start_us, duration_us, note.column),
            Kind::Roll => Note::burst(start_us, duration_us, note.column),
            _ => Note::tap(start_us, note.column),
        });
    }
    Ok(notes)
}

/// Moves a chart from beat 0 to the start of the audio. The shift is whole microseconds, so it changes no
/// difference of times.
fn shift(chart: &mut RoxChart, shift_us: i64) {
    for note in &mut chart.notes {
        note.time_us += shift_us;
    }
    for point in &mut chart.timing_points {
        if let chart_index_rox::TimingPoint::Bpm { time_us, .. } = point {
            *time_us += shift_us;
        }
    }
}
