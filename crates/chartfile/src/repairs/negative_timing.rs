//! Negative BPMs, stops and delays, which the decoder rejects, converted to what the game plays.
//!
//! The rules are those of StepMania 5 (commit d55acb1). For `.sm` files, `SMLoader::ProcessBPMsAndStops` in
//! `src/NotesLoaderSM.cpp` replaces every stretch in which time runs backwards by a warp; negative values were
//! the way to write warps before `#WARPS` existed. For `.ssc` files, `ProcessBPMs`, `ProcessStops` and
//! `ProcessDelays` in `src/NotesLoaderSSC.cpp` ignore entries that are not positive.
//!
//! An example at 120 BPM, two beats a second. The stop of -1 s at beat 3 jumps back to where time was at beat
//! 1, so that beats 3 to 5 play in no time and the notes between them are skipped:
//!
//! ```text
//! #BPMS:0=120; #STOPS:3=-1;            #BPMS:0=120; #WARPS:3=2;
//!
//! beat     0    1    2    3    4    5    6
//! time, s  0   0.5   1   1.5   1   1.5   2      with the negative stop, after beat 3
//! time, s  0   0.5   1   1.5  1.5  1.5   2      with the warp
//! ```

use std::collections::BTreeMap;

use rox::formats::sm::msd::Tag;
use rox::formats::sm::types::timing::ROWS_PER_BEAT;

/// The game treats a BPM above this as a warp (`FAST_BPM_WARP`).
const FAST_BPM: f64 = 9_999_999.0;

/// The end, in beats, of a warp to the end of the chart.
const ENDLESS_BEAT: f64 = 99_999_999.0;

/// A beat, and the BPM or the seconds that start there.
type Entry = (f64, f64);

/// Repairs the timing of an `.sm` file. Reports whether anything changed.
pub(super) fn repair_sm(tags: &mut Vec<Tag>) -> bool {
    let bpms = entries(tags, "BPMS");
    let stops = entries(tags, "STOPS");
    let mut changed = remove_where(tags, "DELAYS", |delay| delay < 0.0);
    let all_finite = bpms.iter().chain(&stops).all(|(beat, value)| beat.is_finite() && value.is_finite());
    let any_negative = bpms.iter().any(|&(_, bpm)| bpm <= 0.0) || stops.iter().any(|&(_, stop)| stop < 0.0);
    if all_finite && any_negative {
        let before_first_beat =
            stops.iter().filter(|&&(beat, _)| beat < 0.0).map(|&(_, seconds)| seconds).sum();
        let timing = Timing::without_negative(bpms, stops);
        let warps = entries(tags, "WARPS").into_iter().chain(in_beats(&timing.warps)).collect::<Vec<_>>();
        set(tags, "BPMS", to_text(&in_beats(&timing.bpms)));
        set(tags, "STOPS", to_text(&in_beats(&timing.stops)));
        set(tags, "WARPS", to_text(&warps));
        move_offset(tags, before_first_beat);
        changed = true;
    }
    changed
}

/// Repairs the timing of an `.ssc` file, for the song and for each chart. Reports whether anything changed.
pub(super) fn repair_ssc(tags: &mut [Tag]) -> bool {
    let bpms = remove_where(tags, "BPMS", |bpm| bpm <= 0.0);
    let stops = remove_where(tags, "STOPS", |seconds| seconds < 0.0);
    let delays = remove_where(tags, "DELAYS", |seconds| seconds < 0.0);
    bpms || stops || delays
}

/// Removes entries from every tag with this name. A `#BPMS` tag without other entries is left unchanged: an
/// empty one would give a chart the timing of its song.
fn remove_where(tags: &mut [Tag], name: &str, remove: impl Fn(f64) -> bool) -> bool {
    let mut changed = false;
    for tag in tags.iter_mut().filter(|tag| tag.name == name) {
        let all = entries_of(tag);
        let remaining: Vec<Entry> = all.iter().copied().filter(|&(_, value)| !remove(value)).collect();
        let is_empty_bpms = remaining.is_empty() && name == "BPMS";
        if remaining.len() < all.len() && !is_empty_bpms {
            tag.params = vec![to_text(&remaining)];
            changed = true;
        }
    }
    changed
}

/// The entries of the last tag with this name, which overrides earlier ones.
fn entries(tags: &[Tag], name: &str) -> Vec<Entry> {
    tags.iter().rfind(|tag| tag.name == name).map(entries_of).unwrap_or_default()
}

/// The entries of a tag, without malformed ones, which the decoder ignores.
fn entries_of(tag: &Tag) -> Vec<Entry> {
    let text = tag.text();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(beat, value)| Some((beat.trim().parse().ok()?, value.trim().parse().ok()?))).collect()
}

fn to_text(entries: &[Entry]) -> String {
    let pairs: Vec<String> = entries.iter().map(|(beat, value)| format!("{beat}={value}")).collect();
    pairs.join(",")
}

fn set(tags: &mut Vec<Tag>, name: &str, value: String) {
    match tags.iter_mut().rfind(|tag| tag.name == name) {
        Some(tag) => tag.params = vec![value],
        None => tags.push(Tag { name: name.to_owned(), params: vec![value] }),
    }
}

/// Subtracts the stops before the first beat from the offset, as the game does: they only move the notes
/// against the audio.
fn move_offset(tags: &mut Vec<Tag>, seconds: f64) {
    if seconds != 0.0 {
        let offset = tags.iter().rfind(|tag| tag.name == "OFFSET");
        let offset: f64 = offset.and_then(|tag| tag.first().parse().ok()).unwrap_or(0.0);
        set(tags, "OFFSET", (offset - seconds).to_string());
    }
}

/// Timing by row, in which a later change replaces an earlier one. The game rounds every change to a row, 1/48
/// of a beat.
#[derive(Default)]
struct Timing {
    bpms: BTreeMap<i64, f64>,
    stops: BTreeMap<i64, f64>,
    /// Lengths in beats.
    warps: BTreeMap<i64, f64>,
}

fn in_beats(rows: &BTreeMap<i64, f64>) -> Vec<Entry> {
    #[expect(clippy::cast_precision_loss, reason = "rows come from beats as f64")]
    rows.iter().map(|(&row, &value)| (row as f64 / ROWS_PER_BEAT, value)).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a cast saturates, far beyond any chart")]
fn row_of(beat: f64) -> i64 {
    (beat * ROWS_PER_BEAT).round_ties_even() as i64
}

/// A warp whose end is not known yet.
struct OpenWarp {
    start_beat: f64,
    bpm_before: f64,
    /// Seconds since the start: negative until time is back at the start, where the warp ends.
    elapsed_s: f64,
}

/// Converts the changes in the order of their beats.
struct Converter {
    timing: Timing,
    beat: f64,
    bpm: f64,
    warp: Option<OpenWarp>,
}

impl Timing {
    /// The equivalent timing without negative values.
    fn without_negative(mut bpms: Vec<Entry>, mut stops: Vec<Entry>) -> Self {
        bpms.retain(|&(_, bpm)| bpm != 0.0);
        stops.retain(|&(beat, seconds)| seconds != 0.0 && beat >= 0.0);
        bpms.sort_by(|a, b| a.0.total_cmp(&b.0));
        stops.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(mut converter) = Converter::at_first_beat(&bpms) else { return Self::default() };
        let (mut bpms, mut stops) =
            (bpms.into_iter().filter(|&(beat, _)| beat > 0.0).peekable(), stops.into_iter().peekable());
        loop {
            // On the same beat the BPM changes first.
            match (bpms.peek(), stops.peek()) {
                (Some(bpm), Some(stop)) if stop.0 < bpm.0 => converter.stop(*stop),
                (Some(bpm), _) => {
                    converter.change_bpm(*bpm);
                    bpms.next();
                    continue;
                }
                (None, Some(stop)) => converter.stop(*stop),
                (None, None) => return converter.finish(),
            }
            stops.next();
        }
    }
}

/// Whether time runs backwards or stands still at this BPM.
fn warps_time(bpm: f64) -> bool {
    !(0.0..=FAST_BPM).contains(&bpm)
}

impl Converter {
    /// Starts with the last BPM at or before beat 0, else with the first one after it. `None` without any BPM.
    fn at_first_beat(bpms: &[Entry]) -> Option<Self> {
        let at_start = bpms.iter().rev().find(|&&(beat, _)| beat <= 0.0);
        let &(_, bpm) = at_start.or(bpms.first())?;
        let mut timing = Timing::default();
        // A first BPM that warps time is ignored: the next one is extended backwards.
        if !warps_time(bpm) {
            timing.bpms.insert(0, bpm);
        }
        Some(Self { timing, beat: 0.0, bpm, warp: None })
    }

    /// Advances to `beat`. A warp may end before it.
    fn advance(&mut self, beat: f64) {
        let beats = beat - self.beat;
        self.beat = beat;
        let Some(warp) = &mut self.warp else { return };
        if self.bpm > FAST_BPM {
            return;
        }
        warp.elapsed_s += beats * 60.0 / self.bpm;
        if self.bpm > 0.0 && warp.elapsed_s > 0.0 {
            let end_beat = beat - warp.elapsed_s * self.bpm / 60.0;
            self.close_warp(end_beat);
        }
    }

    fn change_bpm(&mut self, (beat, bpm): Entry) {
        self.advance(beat);
        if self.warp.is_none() {
            if warps_time(bpm) {
                self.warp = Some(OpenWarp { start_beat: beat, bpm_before: self.bpm, elapsed_s: 0.0 });
            } else {
                self.timing.bpms.insert(row_of(beat), bpm);
            }
        }
        self.bpm = bpm;
    }

    fn stop(&mut self, (beat, seconds): Entry) {
        self.advance(beat);
        let Some(warp) = &mut self.warp else {
            if seconds < 0.0 {
                self.warp = Some(OpenWarp { start_beat: beat, bpm_before: self.bpm, elapsed_s: seconds });
            } else {
                self.timing.stops.insert(row_of(beat), seconds);
            }
            return;
        };
        warp.elapsed_s += seconds;
        let remaining_s = warp.elapsed_s;
        if seconds > 0.0 && remaining_s > 0.0 {
            // The stop ends the warp, and what remains of it is an ordinary stop.
            let bpm_before = warp.bpm_before;
            self.timing.stops.insert(row_of(beat), remaining_s);
            if warps_time(self.bpm) {
                self.insert_warp(beat);
                self.warp = Some(OpenWarp { start_beat: beat, bpm_before, elapsed_s: 0.0 });
            } else {
                self.close_warp(beat);
            }
        }
    }

    fn finish(mut self) -> Timing {
        if let Some(warp) = &self.warp {
            let end_beat = if warps_time(self.bpm) {
                ENDLESS_BEAT
            } else {
                self.beat - warp.elapsed_s * self.bpm / 60.0
            };
            self.close_warp(end_beat);
        }
        self.timing
    }

    /// Ends the warp. A BPM that changed within it applies from its start.
    fn close_warp(&mut self, end_beat: f64) {
        self.insert_warp(end_beat);
        if let Some(warp) = self.warp.take()
            && warp.bpm_before.to_bits() != self.bpm.to_bits()
            && !warps_time(self.bpm)
        {
            self.timing.bpms.insert(row_of(warp.start_beat), self.bpm);
        }
    }

    fn insert_warp(&mut self, end_beat: f64) {
        let Some(warp) = &self.warp else { return };
        let rows = row_of(end_beat - warp.start_beat);
        if rows > 0 {
            #[expect(clippy::cast_precision_loss, reason = "rows come from beats as f64")]
            self.timing.warps.insert(row_of(warp.start_beat), rows as f64 / ROWS_PER_BEAT);
        }
    }
}
