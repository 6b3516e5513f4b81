//! A random catalogue with many ties, extreme values, and names that contain syntax of query languages.

use chart_index_domain::search::{FilterableChart, IndexedChartset};
use chart_index_domain::{
    ChartAnalysis, ChartDraft, ChartMetadata, ChartNumbers, ChartValues, ChartsetDraft, ChartsetId,
    ChartsetMember, FileAliases, KeyCount, NoteHash, Patterns, PublicSource, Rating, SourceKind, SourceRef,
    assemble_chartset, round_to_thousandths,
};
use chart_index_tests::Random;

/// Words of names in many scripts, some of which are prefixes of others.
pub(crate) const WORDS: [&str; 60] = [
    "night",
    "Nightfall",
    "nights",
    "Café",
    "cafe",
    "the",
    "100%",
    "旋律",
    "宙の旋律",
    "Ｃｏｏｌ",
    "a_b",
    "x\\y",
    "it's",
    "ÅNG",
    "7K",
    "東方Project",
    "ноч",
    "Ночь",
    "n",
    "한국",
    "한국어",
    "하늘",
    "연못",
    "하늘연못",
    "닭",
    "ㅋㅋ",
    "สวัสดี",
    "שלום",
    "مرحبا",
    "Ελλάδα",
    "φως",
    "ΦΩΣ",
    "Straße",
    "Bjørn",
    "æon",
    "1e5",
    "nan",
    "Infinity",
    "0042",
    "42",
    "-the-",
    "\"quoted\"",
    "OR",
    "NOT",
    "(",
    "remix",
    "Remixed",
    "REMIX",
    "hard-core",
    "Łódź",
    "ﬁre",
    "がぎ",
    "ガギ",
    "ヷ",
    "ｶﾞｷﾞ",
    "👩‍🎤",
    "नमस्ते",
    "a",
    "dragonforce",
    "xi",
];

/// Up to `max_words` words, separated by spaces.
pub(crate) fn phrase(random: &mut Random, max_words: u32) -> String {
    let words = 1 + random.below(max_words);
    (0..words).map(|_| *random.pick(&WORDS)).collect::<Vec<_>>().join(" ")
}

/// A chartset to store in PostgreSQL, and the same chartset to index in Meilisearch.
pub(crate) struct Entry {
    pub(crate) draft: ChartsetDraft,
    pub(crate) indexed: IndexedChartset,
}

impl Entry {
    fn new(draft: ChartsetDraft, updated_at_ms: i64) -> Self {
        let (chartset, keywords) =
            assemble_chartset(draft.id, draft.exact_source.as_ref(), &mut members(&draft)).unwrap();
        let charts = draft.charts.iter().map(|chart| {
            let analysis = chart.analysis.unwrap();
            FilterableChart::new(&chart.numbers, analysis.rating, Some(analysis.patterns.row_shares))
        });
        let charts = charts.collect();
        let bpm_main_max = draft.charts.iter().map(|chart| chart.numbers.bpm_main).fold(0.0, f64::max);
        let indexed = IndexedChartset { chartset, charts, bpm_main_max, keywords, updated_at_ms };
        Self { draft, indexed }
    }
}

pub(crate) fn generate(count: u32, random: &mut Random) -> Vec<Entry> {
    (1..=count).map(|number| entry(number, random)).collect()
}

fn entry(number: u32, random: &mut Random) -> Entry {
    let charts = (0..=random.below(3)).map(|nth| chart(number * 4 + nth, random)).collect();
    let exact = match random.below(3) {
        0 => None,
        1 => Some(source(SourceKind::AlphaSet, number)),
        _ => Some(source(SourceKind::BetaPack, 1 + random.below(20))),
    };
    // Scrambled, so that the order of the ids is not that of the numbers.
    let id = ChartsetId::from_bytes(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let draft = ChartsetDraft { id, path: format!("alpha/{number}"), exact_source: exact, charts };
    let updated_at_ms = match random.below(20) {
        0 => i64::from(random.below(60)),
        1 => 4_102_444_800_000,
        // Most within the few minutes of one ingest.
        _ => 1_760_000_000_000 + i64::from(random.below(1_000_000)),
    };
    Entry::new(draft, updated_at_ms)
}

/// An entry with one chart and this title.
pub(crate) fn titled(number: u32, title: &str) -> Entry {
    let mut random = Random::new(number.into());
    let (artist, creator) = ("Artist".into(), "Creator".into());
    let metadata = ChartMetadata { title: title.into(), artist, creator, ..ChartMetadata::default() };
    let charts = vec![ChartDraft { metadata, ..chart(number, &mut random) }];
    let id = ChartsetId::from_bytes(u64::from(number).to_be_bytes());
    let draft = ChartsetDraft { id, path: format!("alpha/{number}"), exact_source: None, charts };
    Entry::new(draft, number.into())
}

/// A number of the catalogue, which has three decimals, in thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "far below 2^53, and not negative"
)]
pub(crate) fn thousandths(number: f64) -> u64 {
    (number * 1_000.0).round() as u64
}

fn members(draft: &ChartsetDraft) -> Vec<ChartsetMember> {
    let member = |draft: &ChartDraft| ChartsetMember {
        hash: draft.hash,
        values: ChartValues { numbers: draft.numbers, ..ChartValues::default() },
        metadata: draft.metadata.clone(),
        declared_source: draft.declared_source.clone(),
        alpha_beatmap_id: draft.alpha_beatmap_id,
        aliases: draft.aliases.clone(),
    };
    draft.charts.iter().map(member).collect()
}

fn source(kind: SourceKind, number: u32) -> PublicSource {
    PublicSource { kind, reference: SourceRef::from_number(number.into()).unwrap() }
}

fn chart(number: u32, random: &mut Random) -> ChartDraft {
    let mut hash = [0; 32];
    hash[..4].copy_from_slice(&number.to_be_bytes());
    ChartDraft {
        hash: NoteHash::from_bytes(hash),
        numbers: numbers(random),
        variant: None,
        analysis: Some(analysis(random)),
        rox: Some(vec![1]),
        curve: None,
        metadata: metadata(random),
        declared_source: None,
        alpha_beatmap_id: None,
        aliases: FileAliases::default(),
    }
}

fn numbers(random: &mut Random) -> ChartNumbers {
    let bpm_min = match random.below(12) {
        0 => 0.001,
        1 => 999_999.999,
        2 => f64::from(random.below(400_000)) / 1_000.0,
        // Few distinct values, so that ties are common.
        _ => f64::from(100 + random.below(8) * 10),
    };
    let bpm_max = round_to_thousandths(bpm_min + f64::from(random.below(3)) * 12.5);
    let length_ms = match random.below(12) {
        0 => 0,
        1 => 0x7fff_ffff,
        2..=7 => random.below(600_000),
        _ => 60_000 + random.below(10) * 10_000,
    };
    ChartNumbers {
        keys: KeyCount::try_from(u8::try_from(4 + random.below(4)).unwrap()).unwrap(),
        bpm_min,
        bpm_max,
        bpm_main: *random.pick(&[bpm_min, bpm_max]),
        length_ms,
        notes: *random.pick(&[1, 50, 200, 300, 300, 1_500]),
        lns: random.below(2),
        density_peak: f64::from(random.below(30)) + f64::from(random.below(4)) / 1_000.0,
        ..ChartNumbers::default()
    }
}

fn analysis(random: &mut Random) -> ChartAnalysis {
    let rating = match random.below(8) {
        0 => None,
        1 => Some(Rating::MAX_HUNDREDTHS),
        _ => Some(u16::try_from(300 + random.below(12) * 25).unwrap()),
    };
    let mut patterns = Patterns::default();
    for share in patterns.row_shares.iter_mut().step_by(2) {
        *share = u8::try_from(random.below(5) * 5).unwrap();
    }
    ChartAnalysis { rating: rating.and_then(Rating::from_hundredths), patterns }
}

fn metadata(random: &mut Random) -> ChartMetadata {
    let title = match random.below(12) {
        0 => String::new(),
        // Equal beyond the length that is compared.
        1 => format!("{}{}", "long ".repeat(60), random.below(3)),
        2 => format!("{}{}", random.pick(&WORDS), random.below(1_000)),
        _ => phrase(random, 4),
    };
    let creator = match random.below(8) {
        0 => String::new(),
        1 => (0..30).map(|_| phrase(random, 2)).collect::<Vec<_>>().join(", "),
        _ => phrase(random, 2),
    };
    ChartMetadata {
        title,
        artist: phrase(random, 3),
        title_romanised: random.one_in(4).then(|| phrase(random, 2)),
        artist_romanised: None,
        creator,
        difficulty: "Hard".into(),
        tags: (0..random.below(4)).map(|_| phrase(random, 2)).collect(),
    }
}
