//! Concurrent ingests.

use chart_index_store::{PutEffect, Store};
use chart_index_tests::Random;

use crate::support::{Catalogue, chart, config, folder, hash, id, removal};

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_sets_stay_consistent() {
    let catalogue = Catalogue::create().await;
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let store = catalogue.store.clone();
            tokio::spawn(async move {
                let mut random = Random::new(worker);
                for round in 0..30 {
                    // 6 sets of 20 charts, so that most rounds overlap with another worker.
                    let set = random.below(6);
                    let charts: Vec<_> = (0..8).map(|_| chart(random.below(20))).collect();
                    let mut draft = folder(set.into(), charts);
                    let mut seen = std::collections::HashSet::new();
                    draft.charts.retain(|chart| seen.insert(chart.hash));
                    store.put_chartset(&draft, round).await.unwrap();
                    if random.one_in(4) {
                        // Some of them before they are stored.
                        let removals = [
                            removal(hash(random.below(25).into()), round),
                            removal(id(random.below(7).into()), round),
                        ];
                        store.remove(&removals, round).await.unwrap();
                        store.restore(hash(random.below(25).into()).into(), round).await.unwrap();
                        store.restore(id(random.below(7).into()).into(), round).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    catalogue.assert_consistent().await;
    let without_file = "SELECT count(*) FROM charts LEFT JOIN rox_files USING (hash) WHERE bytes IS NULL";
    assert_eq!(catalogue.database.psql(without_file), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_ingests_add_a_set_once() {
    let catalogue = Catalogue::create().await;
    let mut config = config(catalogue.database.url());
    config.max_connections = 8;
    let store = Store::new(&config);
    for set in 0..20 {
        let charts = [chart(1), chart(2), chart(100 + set)];
        let draft = std::sync::Arc::new(folder(set.into(), charts));
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let (store, draft) = (store.clone(), draft.clone());
                tokio::spawn(async move { store.put_chartset(&draft, 10).await.unwrap().effect })
            })
            .collect();
        let mut effects = Vec::new();
        for worker in workers {
            effects.push(worker.await.unwrap());
        }
        assert_eq!(effects.iter().filter(|effect| **effect == PutEffect::Added).count(), 1);
        assert_eq!(effects.iter().filter(|effect| **effect == PutEffect::Unchanged).count(), 7);
    }
    assert_eq!(catalogue.last_sequence(), 20 * 4, "each chartset and its charts once");
    assert_eq!(catalogue.store.chartset(id(3)).await.unwrap().unwrap().charts.len(), 3);
    catalogue.assert_consistent().await;
}
