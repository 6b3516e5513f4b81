//! A catalogue of any size, made up with the skew of real ones, straight into the form that an ingest stores.
//!
//! The same seed and size give the same catalogue, set by set, with this version of the program. No file is parsed
//! and no note exists: hashes and ROX bytes are random, in realistic lengths, so `chart-indexer verify` has nothing
//! to say about the ROX files of such a catalogue.
//!
//! What is skewed as real catalogues are: few prolific creators, popular songs with many sets and a long tail of
//! both; four and seven keys; charts per set; BPM with favourites; lengths with a tail up to an hour; density that
//! goes with keys and difficulty; words and tags; five scripts, with accents and romanised names; a few names that
//! try what a program can bear; times of the last update, of which many fall into the same seconds.

mod charts;
mod names;
mod plan;
mod random;
mod songs;
mod words;

use chart_index_domain::{
    ChartDraft, ChartMetadata, ChartsetDraft, ChartsetId, NoteHash, PublicSource, SourceKind, SourceRef,
};
use fastrand::Rng;

use self::charts::SetKeys;
use self::random::{Stream, generator, per_mille, pick_weighted};
use self::songs::{Library, Song};

/// How large a catalogue to make, and which of all of that size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueOptions {
    chartsets: u64,
    charts: u64,
    seed: u64,
}

impl CatalogueOptions {
    /// So many chartsets with so many charts together. Catalogues of different seeds have, with few exceptions,
    /// different chartsets, so that one can be added to another.
    ///
    /// # Errors
    ///
    /// A set has 1 to 20 charts, so not every pair of sizes is possible.
    pub const fn new(chartsets: u64, charts: u64, seed: u64) -> Result<Self, ImpossibleSize> {
        if chartsets == 0 || charts < chartsets || charts > chartsets.saturating_mul(plan::MAX_CHARTS) {
            return Err(ImpossibleSize { chartsets, charts });
        }
        Ok(Self { chartsets, charts, seed })
    }

    /// Number of chartsets.
    #[must_use]
    pub const fn chartsets(&self) -> u64 {
        self.chartsets
    }

    /// Number of charts.
    #[must_use]
    pub const fn charts(&self) -> u64 {
        self.charts
    }

    /// The seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

/// A number of charts that the chartsets cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{charts} charts in {chartsets} chartsets, where each has 1 to 20")]
pub struct ImpossibleSize {
    /// The chartsets asked for.
    pub chartsets: u64,
    /// The charts asked for.
    pub charts: u64,
}

/// The catalogue: every folder as the store takes it, and the moment of its last update in Unix epoch milliseconds,
/// the oldest first.
pub fn drafts(options: CatalogueOptions) -> impl Iterator<Item = (ChartsetDraft, i64)> {
    let sets = Sets::new(options);
    let plan = plan::chart_counts(&options).into_iter().zip(plan::update_times(&options));
    (0..).zip(plan).map(move |(number, (charts, updated_at_ms))| (sets.draft(number, charts), updated_at_ms))
}

struct Sets {
    library: Library,
    seed: u64,
    /// Where the ids of this seed begin.
    first_reference: u64,
}

/// What all charts of a set have in common.
struct Common {
    song: Song,
    keys: SetKeys,
    creators: Vec<String>,
    exact: Option<PublicSource>,
}

impl Sets {
    fn new(options: CatalogueOptions) -> Self {
        let first_reference = generator(options.seed, Stream::Offset, 0).u64(0..1 << 31);
        Self { library: Library::new(options.seed, options.chartsets), seed: options.seed, first_reference }
    }

    fn draft(&self, number: u64, charts: u8) -> ChartsetDraft {
        let mut random = generator(self.seed, Stream::Set, number);
        let random = &mut random;
        let mut song = self.library.song(random);
        song.title = names::title_of_a_set(song.title, random);
        let (id, path, exact) = self.place(number, random);
        let creators = self.creators(charts, random);
        let common = Common { song, keys: SetKeys::new(random), creators, exact };
        let charts = (0..charts).map(|place| self.chart(number, &common, (place, charts), random)).collect();
        ChartsetDraft { id, path, exact_source: common.exact, charts }
    }

    /// What identifies a set: seven of ten are of the first game, one of four is in a pack of the second, the rest
    /// is nowhere to be found.
    fn place(&self, number: u64, random: &mut Rng) -> (ChartsetId, String, Option<PublicSource>) {
        let kind = pick_weighted(
            random,
            &[(70, Some(SourceKind::AlphaSet)), (25, Some(SourceKind::BetaPack)), (5, None)],
        );
        match kind {
            Some(kind @ SourceKind::AlphaSet) => {
                let reference = self.reference(number * 5 + random.u64(0..5));
                let path = format!("alpha/{reference} set");
                (ChartsetId::from_alpha_set(&reference), path, Some(PublicSource { kind, reference }))
            }
            Some(kind @ SourceKind::BetaPack) => {
                // Sets that lie close together are songs of one pack, about ten.
                let (reference, folder) = (self.reference(number / 40), format!("song {number}"));
                let path = format!("beta/{reference} pack/{folder}");
                (
                    ChartsetId::from_beta_song(&reference, &folder),
                    path,
                    Some(PublicSource { kind, reference }),
                )
            }
            None => {
                let path = format!("alpha/without id {}-{number}", self.seed);
                (ChartsetId::from_path(&path), path, None)
            }
        }
    }

    fn reference(&self, number: u64) -> SourceRef {
        let number = 1 + (self.first_reference + number) % i32::MAX as u64;
        SourceRef::from_number(number).unwrap_or_else(|| unreachable!("{number} is a reference"))
    }

    /// One creator, or up to three who share the work.
    fn creators(&self, charts: u8, random: &mut Rng) -> Vec<String> {
        let count = pick_weighted(random, &[(80, 1), (14, 2), (6, 3)]).min(charts);
        (0..count).map(|_| self.library.creator(random)).collect()
    }

    fn chart(&self, set: u64, common: &Common, (place, of): (u8, u8), random: &mut Rng) -> ChartDraft {
        let mut hash = [0; 32];
        random.fill(&mut hash);
        let numbers = charts::numbers(&common.song, common.keys, u32::from(place), u32::from(of), random);
        let alpha = common.exact.as_ref().filter(|exact| exact.kind == SourceKind::AlphaSet);
        ChartDraft {
            hash: NoteHash::from_bytes(hash),
            numbers,
            rox: Some(charts::rox(numbers.notes, random)),
            metadata: text(common, numbers.keys.get(), (place, of), random),
            declared_source: alpha.filter(|_| per_mille(random, 900)).cloned(),
            alpha_beatmap_id: alpha.map(|_| self.first_reference + set * plan::MAX_CHARTS + u64::from(place)),
        }
    }
}

fn text(common: &Common, keys: u8, (place, of): (u8, u8), random: &mut Rng) -> ChartMetadata {
    let Common { song, creators, .. } = common;
    let romanised = |word: &words::Word| (word.native != word.latin).then(|| word.latin.clone());
    // Each of them made at least one.
    let creator = match creators.get(usize::from(place)) {
        Some(creator) => creator,
        None => &creators[random.usize(0..creators.len())],
    };
    ChartMetadata {
        title: song.title.native.clone(),
        artist: song.artist.native.clone(),
        title_romanised: romanised(&song.title),
        artist_romanised: romanised(&song.artist),
        creator: creator.clone(),
        difficulty: names::difficulty(keys, place, of, creator, random),
        tags: song.tags.clone(),
    }
}

#[cfg(test)]
mod tests;
