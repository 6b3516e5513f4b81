//! Charts with the same variant, and charts by what clients hold instead of a note hash.

use chart_index_domain::{ChartDraft, ChartsetDraft, FileAliases, FileMd5, NoteHash, Variant, VariantTiming};
use chart_index_rox::{Note, RoxChart, TimingPoint};
use chart_index_store::{
    ChartIdentifier, ChartVariants, ImportedChartset, Precedence, PutEffect, Removal, VariantRequest,
};

use crate::support::{Catalogue, OpenTransaction, alpha, beta, chart, folder, hash, id, removal};

fn variant(number: u8) -> Variant {
    Variant::from_bytes([number; 32])
}

fn md5(number: u8) -> FileMd5 {
    FileMd5::from_bytes([number; 16])
}

/// A chart with a variant, whose rows start a beat of this length apart.
fn with_rows(number: u32, variant_number: u8, beat_ms: u32) -> ChartDraft {
    let mut draft = chart(number);
    draft.numbers.keys = 4.try_into().unwrap();
    draft.numbers.length_ms = 39 * beat_ms;
    draft.variant = Some(variant(variant_number));
    draft.rox = Some(rox_of((0..40).map(|row| (row * beat_ms, row % 4))));
    draft
}

/// The ROX file of taps: each its start in milliseconds, and its column.
fn rox_of(taps: impl Iterator<Item = (u32, u32)>) -> Vec<u8> {
    let tap = |(start_ms, column)| Note::tap(i64::from(start_ms) * 1_000, u8::try_from(column).unwrap());
    let mut rox = RoxChart::new(4);
    rox.notes = taps.map(tap).collect();
    rox.timing_points = vec![TimingPoint::bpm(0, 120.0)];
    chart_index_rox::write(&mut rox).unwrap()
}

fn with_aliases(number: u32, md5s: &[u8], roll_variants: &[u8]) -> ChartDraft {
    let md5s = md5s.iter().copied().map(md5).collect();
    let roll_variants = roll_variants.iter().copied().map(variant).collect();
    ChartDraft { aliases: FileAliases::new(md5s, roll_variants), ..chart(number) }
}

async fn variants(catalogue: &Catalogue, request: VariantRequest) -> ChartVariants {
    catalogue.store.chart_variants(&[request]).await.unwrap().remove(0)
}

fn of_hash(number: u64) -> VariantRequest {
    VariantRequest { hash: Some(hash(number)), variant: None }
}

fn hashes(found: &ChartVariants) -> Vec<NoteHash> {
    found.items.iter().map(|item| item.known.chart.hash).collect()
}

fn sorted(numbers: impl IntoIterator<Item = u64>) -> Vec<NoteHash> {
    let mut hashes: Vec<_> = numbers.into_iter().map(hash).collect();
    hashes.sort_unstable();
    hashes
}

#[tokio::test]
async fn charts_with_the_same_rows_are_variants() {
    let catalogue = Catalogue::create().await;
    let mut faster = with_rows(2, 1, 200);
    faster.declared_source = Some(alpha(7));
    let mut elsewhere = with_rows(3, 1, 220);
    elsewhere.rox = with_rows(3, 1, 300).rox;
    let mut uneven = with_rows(4, 1, 220);
    uneven.rox = Some(rox_of((0..40).map(|row| (row * 220, row / 10))));
    catalogue.put(&folder(1, [with_rows(1, 1, 220), faster, with_rows(5, 2, 220)]), 10).await;
    catalogue.put(&folder(2, [elsewhere, uneven]), 10).await;

    let found = variants(&catalogue, of_hash(1)).await;
    let known = found.known.as_ref().unwrap();
    assert_eq!((known.chart.hash, known.chart.variant), (hash(1), Some(variant(1))));
    assert_eq!((found.total, hashes(&found)), (3, sorted([2, 3, 4])));
    let item = |number| found.items.iter().find(|item| item.known.chart.hash == hash(number)).unwrap();
    assert_eq!((item(2).rate, item(2).timing), (Some(1.1), Some(VariantTiming::Uniform)));
    assert_eq!(item(2).known.sources[0].reference, alpha(7).reference);
    assert_eq!((item(3).rate, item(3).timing), (Some(1.0), Some(VariantTiming::Uniform)));
    assert_eq!((item(4).rate, item(4).timing), (Some(1.0), None), "its notes have other rows");

    let of_variant = VariantRequest { hash: None, variant: Some(variant(1)) };
    let found = variants(&catalogue, of_variant).await;
    assert_eq!((found.known.is_none(), hashes(&found)), (true, sorted([1, 2, 3, 4])));
    assert!(found.items.iter().all(|item| item.rate.is_none() && item.timing.is_none()));

    let converted = VariantRequest { hash: Some(hash(99)), variant: Some(variant(2)) };
    let requests = [converted, of_hash(1), of_hash(99), of_variant];
    let found = catalogue.store.chart_variants(&requests).await.unwrap();
    let totals: Vec<_> = found.iter().map(|found| (found.known.is_some(), found.total)).collect();
    assert_eq!(totals, [(false, 1), (true, 3), (false, 0), (false, 4)]);
}

#[tokio::test]
async fn only_known_charts_are_variants() {
    let catalogue = Catalogue::create().await;
    for number in 1..=4 {
        catalogue.put(&folder(number.into(), [with_rows(number, 1, 200)]), 10).await;
    }
    catalogue.remove(hash(2), 11).await;
    catalogue.remove(id(3), 11).await;
    let found = variants(&catalogue, of_hash(1)).await;
    assert_eq!((found.total, hashes(&found)), (1, sorted([4])));
    let removed = variants(&catalogue, of_hash(2)).await;
    assert_eq!((removed.known.is_none(), removed.total), (true, 0), "a removed chart has no variants");
}

#[tokio::test]
async fn variants_are_bounded_with_a_total() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, (1..=25).map(|number| with_rows(number, 1, 200))), 10).await;
    let found = variants(&catalogue, of_hash(1)).await;
    assert_eq!(found.total, 24);
    assert_eq!(hashes(&found), sorted(2..=25)[..20]);
}

/// Converters turn rolls into long notes.
#[tokio::test]
async fn variant_with_rolls_finds_conversions_and_is_found_by_them() {
    let catalogue = Catalogue::create().await;
    let with_rolls = ChartDraft { variant: Some(variant(1)), ..with_aliases(1, &[], &[2]) };
    catalogue.put(&folder(1, [with_rolls]), 10).await;
    catalogue.put(&folder(2, [with_rows(2, 2, 200)]), 10).await;
    assert_eq!(hashes(&variants(&catalogue, of_hash(1)).await), [hash(2)]);
    assert_eq!(hashes(&variants(&catalogue, of_hash(2)).await), [hash(1)]);
}

#[tokio::test]
async fn charts_are_identified_by_digests_and_ids() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [with_aliases(1, &[1, 2], &[]), with_aliases(2, &[3], &[])]), 10).await;
    let in_pack = ChartsetDraft { exact_source: Some(beta(5)), ..folder(2, [chart(3)]) };
    catalogue.put(&in_pack, 10).await;
    // Other files claim the id of chart 1: many, and one in a set of the game.
    let claiming = |number| ChartDraft { alpha_beatmap_id: Some(1_001), ..chart(number) };
    for set in [10, 11] {
        catalogue.put(&folder(set.into(), (0..600).map(|number| claiming(1_000 * set + number))), 10).await;
    }
    let claiming = claiming(4);
    catalogue.put(&ChartsetDraft { exact_source: Some(alpha(9)), ..folder(3, [claiming]) }, 10).await;
    let identifiers = [
        ChartIdentifier::Md5(md5(2)),
        ChartIdentifier::Md5(md5(3)),
        ChartIdentifier::Md5(md5(9)),
        ChartIdentifier::AlphaBeatmapId(1_001),
        ChartIdentifier::AlphaBeatmapId(1_002),
        ChartIdentifier::AlphaBeatmapId(1_003),
        ChartIdentifier::AlphaBeatmapId(u64::MAX),
    ];
    let found = catalogue.store.identify(&identifiers).await.unwrap();
    let found: Vec<_> = identifiers.iter().map(|identifier| found.get(identifier).copied()).collect();
    assert_eq!(found, [Some(hash(1)), Some(hash(2)), None, Some(hash(4)), Some(hash(2)), None, None]);

    catalogue.remove(hash(2), 11).await;
    assert!(catalogue.store.identify(&identifiers[1..2]).await.unwrap().is_empty());
}

/// A file that changed in a way that its notes and metadata do not show, such as its hit sounds.
#[tokio::test]
async fn chart_stays_known_by_earlier_digests() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [with_aliases(1, &[1], &[])]), 10).await;
    let before = catalogue.last_sequence();
    let outcome = catalogue.put(&folder(1, [with_aliases(1, &[2], &[])]), 20).await;
    assert_eq!(outcome.effect, PutEffect::Unchanged);
    assert_eq!(catalogue.changed_after(before), [id(1)], "mirrors get the digest");
    let before = catalogue.last_sequence();
    catalogue.put(&folder(1, [with_aliases(1, &[2], &[])]), 30).await;
    assert_eq!(catalogue.last_sequence(), before);
    let identifiers = [md5(1), md5(2)].map(ChartIdentifier::Md5);
    let found = catalogue.store.identify(&identifiers).await.unwrap();
    assert_eq!(identifiers.map(|identifier| found[&identifier]), [hash(1); 2]);
    let many: Vec<u8> = (0..130).collect();
    catalogue.put(&folder(1, [with_aliases(1, &[2], &many)]), 40).await;
    let record = &catalogue.store.chartset_records(&[id(1)]).await.unwrap()[0].record;
    assert_eq!(record.charts[0].md5s, [md5(1), md5(2)]);
    assert_eq!(record.charts[0].roll_variants.len(), FileAliases::MAX_VALUES);
}

#[tokio::test]
async fn aliases_are_imported_also_into_an_unchanged_chartset() {
    let (origin, mirror) = (Catalogue::create().await, Catalogue::create().await);
    let draft = folder(1, [with_aliases(1, &[1], &[7])]);
    for catalogue in [&origin, &mirror] {
        catalogue.store.put_charts(&draft.charts, 10).await.unwrap();
    }
    origin.put(&draft, 10).await;
    for md5s in [&[1][..], &[1, 2]] {
        origin.put(&folder(1, [with_aliases(1, md5s, &[7])]), 20).await;
        let record = origin.store.chartset_records(&[id(1)]).await.unwrap().remove(0).record;
        let (updated_at_ms, checked_at_ms) = (record.updated_at_ms, 20);
        let imported =
            ImportedChartset { draft: record.clone().into_draft().unwrap(), updated_at_ms, checked_at_ms };
        mirror.store.import_chartsets(&[imported], Precedence::Imported, 30).await.unwrap();
        let copy = mirror.store.chartset_records(&[id(1)]).await.unwrap().remove(0).record;
        assert_eq!(copy, record);
        assert_eq!(copy.charts[0].md5s.len(), md5s.len());
    }
}

/// An index that is restored, or whose standby takes over, may lose some. Those of charts that have left the
/// chartset are not in its record.
#[tokio::test]
async fn a_mirror_deletes_aliases_that_the_other_index_has_lost() {
    let mirror = Catalogue::create().await;
    let import = async |charts: &[ChartDraft]| {
        let draft = folder(1, charts.iter().cloned());
        mirror.store.put_charts(&draft.charts, 10).await.unwrap();
        let imported = ImportedChartset { draft, updated_at_ms: 20, checked_at_ms: 20 };
        mirror.store.import_chartsets(&[imported], Precedence::Imported, 30).await.unwrap();
        mirror
            .database
            .psql("SELECT string_agg(left(encode(alias, 'hex'), 2), ' ' ORDER BY alias) FROM chart_aliases")
    };
    assert_eq!(
        import(&[with_aliases(1, &[1, 2], &[7, 8]), with_aliases(2, &[3], &[])]).await,
        "01 02 03 07 08"
    );
    let before = mirror.last_sequence();
    assert_eq!(import(&[with_aliases(1, &[2], &[7]), with_aliases(2, &[3], &[])]).await, "02 03 07");
    assert_eq!(mirror.changed_after(before), [id(1)]);
    assert_eq!(import(&[with_aliases(1, &[2], &[7])]).await, "02 03 07", "of a chart that has left");
    let full: Vec<u8> = (100..164).collect();
    import(&[with_aliases(1, &full, &[7])]).await;
    let stored = mirror.database.psql("SELECT count(*) FROM chart_aliases WHERE octet_length(alias) = 16");
    assert_eq!(stored, "66", "there may be more than the record has");
}

#[tokio::test]
async fn erased_charts_have_no_aliases() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [with_aliases(1, &[1], &[])]), 10).await;
    catalogue.put(&folder(2, [with_aliases(2, &[2], &[]), with_aliases(3, &[3], &[])]), 10).await;
    let erasure = |entity| Removal { erased: true, ..removal(entity, 11) };
    let erasures = [erasure(chart_index_domain::Entity::Chart(hash(3))), erasure(id(1).into())];
    catalogue.store.remove(&erasures, 11).await.unwrap();
    let left = catalogue.database.psql("SELECT encode(alias, 'hex') FROM chart_aliases");
    assert_eq!(left.trim(), "02".repeat(16));

    // An ingest and an import have found the chartset unchanged before it is erased.
    let unchanged = folder(2, [with_aliases(2, &[4], &[])]);
    let imported = ImportedChartset { draft: unchanged.clone(), updated_at_ms: 20, checked_at_ms: 20 };
    catalogue.put(&unchanged, 20).await;
    let mut erasing = OpenTransaction::begin(catalogue.database.url());
    erasing.run("DO $$ BEGIN PERFORM pg_advisory_xact_lock(7105212083226935400); END $$");
    erasing.run("DELETE FROM chartset_charts; DELETE FROM chart_aliases");
    let erase = async {
        catalogue.wait_for_blocked_sessions(2).await;
        erasing.commit();
    };
    let put = catalogue.store.put_chartset(&unchanged, 21);
    let import = catalogue.store.import_chartsets(std::slice::from_ref(&imported), Precedence::Stored, 21);
    let (put, import, ()) = tokio::join!(put, import, erase);
    put.unwrap();
    import.unwrap();
    assert_eq!(catalogue.database.psql("SELECT count(*) FROM chart_aliases"), "0");
}
