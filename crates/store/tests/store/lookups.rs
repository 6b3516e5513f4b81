//! Lookups: the sources and the metadata of a chart in several sets.

use chart_index_domain::search::{ListItem, SearchQuery};
use chart_index_domain::{ChartDraft, ChartsetDraft, Confidence, NoteHash, PublicSource, Source};

use crate::support::{Catalogue, alpha, beta, chart, folder, hash, id};

fn declaring(source: PublicSource, difficulty: &str) -> ChartDraft {
    let mut draft = chart(1);
    draft.declared_source = Some(source);
    draft.metadata.difficulty = difficulty.into();
    draft
}

fn from(source: &PublicSource, confidence: Confidence, checked_at_ms: i64) -> Source {
    Source { kind: source.kind, reference: source.reference.clone(), confidence, checked_at_ms, url: None }
}

#[tokio::test]
async fn a_chart_in_several_sets_lists_all_sources_in_order() {
    use Confidence::{Declared, Exact};
    let catalogue = Catalogue::create().await;
    let exactly = |source, draft| ChartsetDraft { exact_source: Some(source), ..draft };
    catalogue.put(&folder(1, [declaring(alpha(9), "no folder id")]), 10).await;
    catalogue.put(&exactly(beta(3), folder(2, [declaring(alpha(8), "pack")])), 11).await;
    catalogue.put(&exactly(alpha(8), folder(3, [declaring(alpha(8), "set")])), 12).await;
    catalogue.put(&exactly(beta(3), folder(4, [chart(1)])), 13).await;
    let known = catalogue.store.chart(hash(1)).await.unwrap().unwrap();
    let expected = [from(&alpha(8), Exact, 12), from(&beta(3), Exact, 13), from(&alpha(9), Declared, 10)];
    assert_eq!(known.sources, expected);
    assert_eq!(known.chart.difficulty, "set");

    let detail = catalogue.store.chartset(id(2)).await.unwrap().unwrap();
    assert_eq!(detail.sources, [from(&beta(3), Exact, 11), from(&alpha(8), Declared, 11)]);
    assert_eq!(detail.charts[0].chart.difficulty, "pack");
    assert_eq!(detail.charts[0].alpha_beatmap_id, None, "a pack has no beatmap ids");
}

#[tokio::test]
async fn metadata_comes_from_the_best_source() {
    let catalogue = Catalogue::create().await;
    let mut plain = chart(1);
    for (number, source, difficulty) in [
        (9, None, "none, high id"),
        (5, None, "none, low id"),
        (8, Some(beta(2)), "declared beta"),
        (7, Some(alpha(3)), "declared alpha, high id"),
        (6, Some(alpha(3)), "declared alpha, low id"),
    ] {
        plain.declared_source = source;
        plain.metadata.difficulty = difficulty.into();
        catalogue.put(&folder(number, [plain.clone()]), 10).await;
        let known = catalogue.store.chart(hash(1)).await.unwrap().unwrap();
        assert_eq!(known.chart.difficulty, difficulty);
    }
}

#[tokio::test]
async fn a_chart_is_read_as_it_was_stored() {
    let catalogue = Catalogue::create().await;
    let draft = chart(3);
    catalogue.put(&folder(1, [draft.clone()]), 10).await;
    let known = catalogue.store.chart(draft.hash).await.unwrap().unwrap().chart;
    assert_eq!((known.hash, known.numbers), (draft.hash, draft.numbers));
    assert_eq!(known.rox_bytes, draft.rox.as_ref().map_or(0, Vec::len) as u64);
    let text = (known.title, known.artist, known.creator, known.difficulty);
    assert_eq!(
        text,
        (draft.metadata.title, draft.metadata.artist, draft.metadata.creator, draft.metadata.difficulty)
    );
    assert_eq!(catalogue.store.rox(draft.hash).await.unwrap().map(|rox| rox.bytes), draft.rox);
}

#[tokio::test]
async fn tags_of_several_charts_stay_separate() {
    let catalogue = Catalogue::create().await;
    let (mut one, mut two, mut three) = (chart(4), chart(8), chart(12));
    one.metadata.tags = vec!["b".into(), "a, {}\"\\".into()];
    two.metadata.tags = vec![];
    three.metadata.tags = vec!["c".into(), "b".into(), "d".into()];
    catalogue.put(&folder(1, [one, two, three]), 10).await;
    let detail = catalogue.store.chartset(id(1)).await.unwrap().unwrap();
    assert_eq!(detail.tags, ["b", "a, {}\"\\", "c", "d"]);
    assert_eq!(
        catalogue.search(&SearchQuery::default()).await.items,
        [ListItem::new(&detail.chartset).unwrap()]
    );
}

#[tokio::test]
async fn the_public_source_is_exact_before_declared() {
    let catalogue = Catalogue::create().await;
    let with_source = ChartsetDraft { exact_source: Some(beta(3)), ..folder(1, [declaring(alpha(9), "")]) };
    catalogue.put(&with_source, 10).await;
    catalogue.put(&folder(2, [declaring(alpha(9), "")]), 10).await;
    catalogue.put(&folder(3, [chart(1)]), 10).await;
    for (number, expected) in [(1, Some(beta(3))), (2, Some(alpha(9))), (3, None), (4, None)] {
        assert_eq!(catalogue.store.public_source(id(number)).await.unwrap(), expected, "{number}");
    }
}

/// docs/api.md, "Chart lookup": the sources of up to 32 chartsets, exact before declared; of 4 with few notes.
#[tokio::test]
async fn sources_of_a_shared_chart_are_bounded() {
    let catalogue = Catalogue::create().await;
    let mut few_notes = chart(2);
    few_notes.numbers.notes = 7;
    few_notes.numbers.lns = 0;
    for number in 101..=140 {
        few_notes.declared_source = Some(alpha(number));
        let exact_source = (number > 138).then(|| beta(number));
        let draft = folder(number, [declaring(alpha(number), "shared"), few_notes.clone()]);
        catalogue.put(&ChartsetDraft { exact_source, ..draft }, 10).await;
    }
    let known = catalogue.store.chart(hash(1)).await.unwrap().unwrap();
    let exact = |number| from(&beta(number), Confidence::Exact, 10);
    let declared = |number| from(&alpha(number), Confidence::Declared, 10);
    // Both exact sets declare another source.
    let expected = |last: u64| {
        let declared = (101..=last).chain([139, 140]).map(declared);
        [exact(139), exact(140)].into_iter().chain(declared).collect::<Vec<_>>()
    };
    assert_eq!(known.sources, expected(130));
    let few = catalogue.store.chart(hash(2)).await.unwrap().unwrap();
    assert_eq!(few.sources, expected(102));
    let many = catalogue.store.charts(&[hash(1), hash(2)]).await.unwrap();
    assert_eq!((&many[&hash(1)], &many[&hash(2)]), (&known, &few));
    let page = catalogue.store.chart_page(hash(1)).await.unwrap().unwrap();
    assert_eq!((page.sources, page.chartsets.len()), (known.sources, 32));
}

#[tokio::test]
async fn chart_is_found_by_the_beginning_of_its_hash_if_it_is_the_only_one() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2), chart(3)]), 10).await;
    catalogue.remove(hash(3), 20).await;
    let between = |first, last| catalogue.store.only_chart_between(first, last);
    let (lowest, highest) = (NoteHash::from_bytes([0; 32]), NoteHash::from_bytes([255; 32]));
    assert_eq!(between(hash(1), hash(1)).await.unwrap(), Some(hash(1)));
    assert_eq!(between(hash(3), hash(3)).await.unwrap(), None, "it is removed");
    assert_eq!(between(lowest, highest).await.unwrap(), None, "there are two");
    let first = hash(1).min(hash(2));
    assert_eq!(between(lowest, first).await.unwrap(), Some(first));
}
