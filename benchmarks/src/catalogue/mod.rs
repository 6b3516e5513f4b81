//! Synthetic catalogues of any size, with distributions like those of real catalogues.
//!
//! A version of this program generates the same catalogue for the same options. Note hashes and ROX bytes are
//! random unless [`RoxFiles::Valid`] is asked for, so that `chart-indexer verify` fails for the ROX files.
//!
//! These follow realistic distributions:
//!
//! - songs and creators: a few are popular, with a long tail;
//! - charts per chartset, and key counts, mostly 4 and 7;
//! - BPM with frequent values, lengths with a tail up to an hour, density by key count and difficulty;
//! - words and tags in five scripts, with accents and romanised names, and a few extreme names;
//! - update times, of which many are within the same seconds.

mod charts;
mod fill;
mod names;
mod notes;
mod plan;
mod random;
mod songs;
mod words;

use chart_index_domain::{
    ChartDraft, ChartMetadata, ChartsetDraft, ChartsetId, FileAliases, NoteHash, PublicSource, SourceKind,
    SourceRef,
};
use fastrand::Rng;

pub use self::fill::fill;
pub use self::random::Zipf;

use self::charts::SetKeys;
use self::random::{Stream, generator, per_mille, pick_weighted};
use self::songs::{Library, Song};

/// The size and the seed of a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueOptions {
    chartsets: u64,
    charts: u64,
    seed: u64,
    rox_files: RoxFiles,
}

/// What a generated catalogue has as ROX files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RoxFiles {
    /// Random bytes, as many as a ROX file has
    Random,
    /// Those of charts with notes, whose export can be imported; with previews
    Valid,
    /// One byte, for lists alone
    Tiny,
}

impl CatalogueOptions {
    /// A catalogue of `chartsets` chartsets with `charts` charts in total, and random ROX files. Catalogues
    /// with different seeds have almost no ids in common, so that both can be stored in one database.
    ///
    /// # Errors
    ///
    /// When there are not 1 to 20 charts per chartset.
    pub const fn new(chartsets: u64, charts: u64, seed: u64) -> Result<Self, ImpossibleSize> {
        if chartsets == 0 || charts < chartsets || charts > chartsets.saturating_mul(plan::MAX_CHARTS) {
            return Err(ImpossibleSize { chartsets, charts });
        }
        Ok(Self { chartsets, charts, seed, rox_files: RoxFiles::Random })
    }

    /// The same catalogue with other ROX files. Valid ones determine note hashes and numbers.
    #[must_use]
    pub const fn with_rox_files(self, rox_files: RoxFiles) -> Self {
        Self { rox_files, ..self }
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
#[error("{charts} charts in {chartsets} chartsets: there have to be 1 to 20 per chartset")]
pub struct ImpossibleSize {
    /// The requested number of chartsets.
    pub chartsets: u64,
    /// The requested number of charts.
    pub charts: u64,
}

/// The catalogue: every folder as the store takes it, and the moment of its last update in Unix epoch
/// milliseconds, the oldest first.
pub fn drafts(options: CatalogueOptions) -> impl Iterator<Item = (ChartsetDraft, i64)> {
    let sets = Sets::new(options);
    planned(options).map(move |planned| (sets.draft(planned), planned.updated_at_ms))
}

/// A chartset that is not generated yet.
#[derive(Debug, Clone, Copy)]
struct PlannedSet {
    number: u64,
    charts: u8,
    updated_at_ms: i64,
}

fn planned(options: CatalogueOptions) -> impl Iterator<Item = PlannedSet> {
    let plan = plan::chart_counts(&options).into_iter().zip(plan::update_times(&options));
    (0..).zip(plan).map(|(number, (charts, updated_at_ms))| PlannedSet { number, charts, updated_at_ms })
}

/// Generates the chartsets.
struct Sets {
    library: Library,
    seed: u64,
    rox_files: RoxFiles,
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
        let CatalogueOptions { chartsets, seed, rox_files, .. } = options;
        Self { library: Library::new(seed, chartsets), seed, rox_files, first_reference }
    }

    fn draft(&self, PlannedSet { number, charts, .. }: PlannedSet) -> ChartsetDraft {
        let mut random = generator(self.seed, Stream::Set, number);
        let random = &mut random;
        let mut song = self.library.song(random);
        song.title = names::chartset_title(song.title, random);
        let (id, path, exact) = self.place(number, random);
        let creators = self.creators(charts, random);
        let common = Common { song, keys: SetKeys::new(random), creators, exact };
        let charts = (0..charts).map(|place| self.chart(number, &common, (place, charts), random)).collect();
        ChartsetDraft { id, path, exact_source: common.exact, charts }
    }

    /// The id, path and source of a chartset: 70 % are sets of the first game, 25 % are songs in packs of the
    /// second, and 5 % have no source.
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
                // Chartsets with close numbers are the songs of a pack, about ten of them.
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

    /// One to three creators.
    fn creators(&self, charts: u8, random: &mut Rng) -> Vec<String> {
        let count = pick_weighted(random, &[(80, 1), (14, 2), (6, 3)]).min(charts);
        (0..count).map(|_| self.library.creator(random)).collect()
    }

    fn chart(&self, set: u64, common: &Common, (place, of): (u8, u8), random: &mut Rng) -> ChartDraft {
        let mut hash = [0; 32];
        random.fill(&mut hash);
        let numbers = charts::numbers(&common.song, common.keys, u32::from(place), u32::from(of), random);
        let alpha = common.exact.as_ref().filter(|exact| exact.kind == SourceKind::AlphaSet);
        let draft = ChartDraft {
            hash: NoteHash::from_bytes(hash),
            numbers,
            variant: None,
            analysis: Some(charts::analysis(&numbers, &hash)),
            rox: Some(charts::rox(numbers.notes, random)),
            curve: None,
            metadata: text(common, numbers.keys.get(), (place, of), random),
            declared_source: alpha.filter(|_| per_mille(random, 900)).cloned(),
            alpha_beatmap_id: alpha.map(|_| self.first_reference + set * plan::MAX_CHARTS + u64::from(place)),
            aliases: FileAliases::default(),
        };
        match self.rox_files {
            RoxFiles::Random => draft,
            RoxFiles::Valid => notes::with_notes(draft),
            RoxFiles::Tiny => ChartDraft { rox: Some(vec![0]), ..draft },
        }
    }
}

fn text(common: &Common, keys: u8, (place, of): (u8, u8), random: &mut Rng) -> ChartMetadata {
    let Common { song, creators, .. } = common;
    let romanised = |word: &words::Word| (word.native != word.latin).then(|| word.latin.clone());
    // Each creator has at least one chart.
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
