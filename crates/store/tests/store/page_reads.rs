//! What pages show of charts and chartsets.

use chart_index_domain::{ChartsetChart, ChartsetDraft, ListedCharts};

use crate::support::{Catalogue, alpha, beta, chart, curve, folder, hash, id};

#[tokio::test]
async fn listed_charts_are_those_of_the_details() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(3), chart(1), chart(7), chart(5)]), 10).await;
    catalogue.put(&folder(2, [chart(1)]), 10).await;
    catalogue.put(&folder(3, [chart(2)]), 10).await;
    catalogue.put(&folder(4, [chart(4)]), 10).await;
    catalogue.put(&folder(5, [chart(6)]), 10).await;
    catalogue.remove(hash(5), 20).await;
    catalogue.remove(hash(4), 20).await;
    catalogue.remove(id(5), 20).await;
    let listed = store.charts_of_chartsets(&[id(3), id(5), id(1), id(9), id(4), id(2)]).await.unwrap();
    assert_eq!(
        listed.iter().map(|set| set.id).collect::<Vec<_>>(),
        [id(3), id(1), id(2)],
        "as they were asked for"
    );
    assert_eq!(listed[1].charts.len(), 3);
    for ListedCharts { id, charts } in listed {
        let detail = store.chartset(id).await.unwrap().unwrap();
        let of_entry = |entry: ChartsetChart| (entry.chart, entry.curve);
        let expected: Vec<_> = detail.charts.into_iter().map(of_entry).collect();
        let actual = charts.iter().map(|listed| (listed.chart.clone(), listed.curve));
        assert_eq!(actual.collect::<Vec<_>>(), expected);
        assert!(charts.iter().all(|listed| listed.curve.is_some()));
    }
    assert_eq!(store.charts_of_chartsets(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn copies_have_the_same_charts() {
    let catalogue = Catalogue::create().await;
    let of = |number, charts: &[u32]| folder(number, charts.iter().map(|number| chart(*number)));
    for (number, charts) in
        [(1, &[1, 2][..]), (2, &[2, 1]), (3, &[1, 2, 3]), (4, &[1]), (5, &[1, 2]), (6, &[1, 2, 4]), (7, &[9])]
    {
        let source = (number == 2).then(|| alpha(8));
        catalogue.put(&ChartsetDraft { exact_source: source, ..of(number, charts) }, 10).await;
    }
    catalogue.remove(hash(4), 20).await;
    catalogue.remove(id(5), 20).await;
    let copies = async |ids: &[_]| {
        let copies = catalogue.store.copies_of_chartsets(ids).await.unwrap();
        copies.into_iter().map(|copy| (copy.copy_of, copy.id, copy.source)).collect::<Vec<_>>()
    };
    let all = [id(1), id(3), id(7), id(99)];
    assert_eq!(copies(&all).await, [(id(1), id(2), Some(alpha(8))), (id(1), id(6), None)]);
    assert_eq!(copies(&[id(6)]).await, [(id(6), id(1), None), (id(6), id(2), Some(alpha(8)))]);
    assert_eq!(copies(&[id(5)]).await, []);
    assert_eq!(copies(&[]).await, []);
}

#[tokio::test]
async fn a_chart_page_has_every_chartset_of_the_chart() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let in_set = |number, source, difficulty: &str, creator: &str| {
        let mut one = chart(1);
        (one.metadata.difficulty, one.metadata.creator) = (difficulty.into(), creator.into());
        ChartsetDraft { exact_source: source, ..folder(number, [one, chart(2)]) }
    };
    catalogue.put(&in_set(1, None, "loose", "Ann"), 10).await;
    catalogue.put(&in_set(2, Some(beta(3)), "pack", "Bo"), 11).await;
    catalogue.put(&in_set(3, Some(alpha(8)), "set", "Cy"), 12).await;
    catalogue.put(&in_set(4, Some(alpha(9)), "removed", "Di"), 13).await;
    catalogue.remove(id(4), 20).await;

    let page = store.chart_page(hash(1)).await.unwrap().unwrap();
    let known = store.chart(hash(1)).await.unwrap().unwrap();
    assert_eq!((&page.chart, &page.sources), (&known.chart, &known.sources));
    assert_eq!(page.curve, Some(curve(1)));
    let sets: Vec<_> = page
        .chartsets
        .iter()
        .map(|holder| (holder.chartset.id, &*holder.difficulty, &*holder.creator))
        .collect();
    assert_eq!(sets, [(id(3), "set", "Cy"), (id(2), "pack", "Bo"), (id(1), "loose", "Ann")]);
    for holder in &page.chartsets {
        let detail = store.chartset(holder.chartset.id).await.unwrap().unwrap();
        assert_eq!(holder.chartset, detail.chartset);
    }
    assert_eq!(store.chart_page(hash(9)).await.unwrap(), None);
    catalogue.remove(hash(1), 30).await;
    assert_eq!(store.chart_page(hash(1)).await.unwrap(), None);
}

#[tokio::test]
async fn the_first_file_decides_the_density_curve() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let mut other = chart(1);
    other.curve = Some(curve(2));
    catalogue.put(&folder(2, [other.clone()]), 10).await;
    other.curve = None;
    catalogue.put(&folder(3, [other]), 10).await;
    for listed in catalogue.store.charts_of_chartsets(&[id(1), id(2), id(3)]).await.unwrap() {
        assert_eq!(listed.charts[0].curve, Some(curve(1)));
    }
}

#[tokio::test]
async fn a_chart_without_a_density_curve_is_read() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    catalogue.database.psql("UPDATE charts SET density_curve = NULL");
    assert_eq!(catalogue.store.chart_page(hash(1)).await.unwrap().unwrap().curve, None);
    assert_eq!(catalogue.store.chartset(id(1)).await.unwrap().unwrap().charts[0].curve, None);
    assert_eq!(catalogue.store.charts_of_chartsets(&[id(1)]).await.unwrap()[0].charts[0].curve, None);
}
