//! The song of a simfile, and the tags of its charts.

use super::msd::{Parameter, Tag, Tags};
use super::negative::{Entry, add_bpms_and_stops};
use super::number::Number;
use super::tags::{VERSION_SPLIT_TIMING, add_delays, add_ssc_tag, sm_entries};
use super::timing::Timing;
use crate::Refusal;

/// The version of a file that names none (`STEPFILE_VERSION_NUMBER` in Song.cpp).
const CURRENT_VERSION: f32 = 0.83;

/// The maximum number of charts of a simfile. Real ones have up to about 30.
const MAX_CHARTS: usize = 300;

/// What the charts of a simfile share.
#[derive(Debug, Default)]
pub(super) struct Song<'a> {
    pub(super) title: Parameter<'a>,
    pub(super) subtitle: Parameter<'a>,
    pub(super) artist: Parameter<'a>,
    pub(super) title_translit: Parameter<'a>,
    pub(super) subtitle_translit: Parameter<'a>,
    pub(super) artist_translit: Parameter<'a>,
    pub(super) credit: Parameter<'a>,
    pub(super) music: Parameter<'a>,
    pub(super) background: Parameter<'a>,
    pub(super) sample_start: Parameter<'a>,
    pub(super) sample_length: Parameter<'a>,
    /// How much later than beat 0 the audio starts, in seconds.
    pub(super) offset_s: f64,
    pub(super) timing: Timing,
}

/// What a chart has of its own.
#[derive(Debug, Default)]
pub(super) struct ChartTags<'a> {
    pub(super) step_type: Parameter<'a>,
    pub(super) description: Parameter<'a>,
    pub(super) difficulty: Parameter<'a>,
    pub(super) meter: Parameter<'a>,
    pub(super) credit: Parameter<'a>,
    pub(super) measures: Parameter<'a>,
    /// Empty if it has none of its own.
    pub(super) timing: Timing,
    pub(super) offset_s: f64,
}

/// A song with its charts.
pub(super) type SongWithCharts<'a> = (Song<'a>, Vec<ChartTags<'a>>);

impl<'a> Song<'a> {
    /// Reads a tag that `.sm` and `.ssc` files have (`sm_parser_helper_t`, `ssc_parser_helper_t`).
    fn read(&mut self, name: &[u8], value: Parameter<'a>) -> Result<(), Refusal> {
        let place = match name {
            b"TITLE" => &mut self.title,
            b"SUBTITLE" => &mut self.subtitle,
            b"ARTIST" => &mut self.artist,
            b"TITLETRANSLIT" => &mut self.title_translit,
            b"SUBTITLETRANSLIT" => &mut self.subtitle_translit,
            b"ARTISTTRANSLIT" => &mut self.artist_translit,
            b"CREDIT" => &mut self.credit,
            b"MUSIC" => &mut self.music,
            b"BACKGROUND" => &mut self.background,
            b"SAMPLESTART" => &mut self.sample_start,
            b"SAMPLELENGTH" => &mut self.sample_length,
            b"OFFSET" => {
                self.offset_s = Number::read(&value.text())?.double;
                return Ok(());
            }
            _ => return Ok(()),
        };
        *place = value;
        Ok(())
    }
}

/// Reads an `.sm` file (`SMLoader::LoadFromSimfile`). A repeated tag replaces the one before, but for delays.
pub(super) fn read_sm<'a>(tags: &Tags<'a>) -> Result<SongWithCharts<'a>, Refusal> {
    let (mut song, mut charts) = (Song::default(), Vec::new());
    let (mut bpms, mut stops): (Vec<Entry>, Vec<Entry>) = (Vec::new(), Vec::new());
    for tag in tags.iter() {
        let value = tag.parameter(1);
        match &tag.name()[..] {
            b"BPMS" => bpms = sm_entries(&value.text())?,
            b"STOPS" | b"FREEZES" => stops = sm_entries(&value.text())?,
            b"DELAYS" => add_delays(&mut song.timing, &value.text())?,
            // Those with fewer parameters are ignored.
            b"NOTES" | b"NOTES2" if tag.len() >= 7 => add_chart(&mut charts, sm_chart(tag))?,
            name => song.read(name, value)?,
        }
    }
    song.offset_s -= add_bpms_and_stops(&mut song.timing, bpms, stops)?;
    for chart in &mut charts {
        chart.offset_s = song.offset_s;
    }
    Ok((song, charts))
}

fn sm_chart<'a>(tag: Tag<'a, '_>) -> ChartTags<'a> {
    ChartTags {
        step_type: tag.parameter(1),
        description: tag.parameter(2),
        difficulty: tag.parameter(3),
        meter: tag.parameter(4),
        measures: tag.parameter(6),
        ..ChartTags::default()
    }
}

/// Reads an `.ssc` file (`SSCLoader::LoadFromSimfile`). Tags after the notes of a chart are tags of the song.
pub(super) fn read_ssc<'a>(tags: &Tags<'a>) -> Result<SongWithCharts<'a>, Refusal> {
    let (mut song, mut charts) = (Song::default(), Vec::new());
    let (mut version, mut open): (f32, Option<ChartTags<'a>>) = (CURRENT_VERSION, None);
    for tag in tags.iter() {
        let (name, value) = (tag.name(), tag.parameter(1));
        if name == b"VERSION" {
            version = Number::read(&value.text())?.single;
        } else if let Some(mut chart) = open.take() {
            if let b"NOTES" | b"NOTES2" = &name[..] {
                chart.measures = value;
                add_chart(&mut charts, chart)?;
            } else if name == b"STEPFILENAME" {
                // Its notes are in another file.
                add_chart(&mut charts, chart)?;
            } else {
                chart.read(&name, value, version)?;
                open = Some(chart);
            }
        } else if name == b"NOTEDATA" {
            open = Some(ChartTags { offset_s: song.offset_s, ..ChartTags::default() });
        } else {
            add_ssc_tag(&mut song.timing, &name, &value.text(), version)?;
            song.read(&name, value)?;
        }
    }
    for chart in charts.iter_mut().filter(|chart| chart.timing.is_empty()) {
        chart.offset_s = song.offset_s;
    }
    Ok((song, charts))
}

impl<'a> ChartTags<'a> {
    /// Reads a tag of a chart in an `.ssc` file. Only newer versions have timing of charts.
    fn read(&mut self, name: &[u8], value: Parameter<'a>, version: f32) -> Result<(), Refusal> {
        let has_timing = version >= VERSION_SPLIT_TIMING;
        match name {
            b"STEPSTYPE" => self.step_type = value,
            b"DESCRIPTION" => self.description = value,
            b"DIFFICULTY" => self.difficulty = value,
            b"METER" => self.meter = value,
            b"CREDIT" => self.credit = value,
            b"OFFSET" if has_timing => self.offset_s = Number::read(&value.text())?.double,
            _ if has_timing => add_ssc_tag(&mut self.timing, name, &value.text(), version)?,
            _ => {}
        }
        Ok(())
    }
}

fn add_chart<'a>(charts: &mut Vec<ChartTags<'a>>, chart: ChartTags<'a>) -> Result<(), Refusal> {
    if charts.len() == MAX_CHARTS {
        return Err(Refusal::DecodingLimit { what: "charts" });
    }
    charts.push(chart);
    Ok(())
}
