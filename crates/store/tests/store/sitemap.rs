//! Parts of sitemaps.

use chart_index_domain::Entity;
use chart_index_store::SitemapPart;

use crate::support::{Catalogue, chart, folder, hash, id};

#[tokio::test]
async fn parts_have_what_is_known_and_shown() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    assert_eq!(store.sitemap_parts().await.unwrap(), []);
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(3)]), 10).await;
    catalogue.remove(hash(3), 20).await;
    let entities: Vec<Entity> =
        store.sitemap_part(0).await.unwrap().into_iter().map(|(entity, _)| entity).collect();
    assert_eq!(entities.len(), 3, "{entities:?}");
    for expected in [Entity::Chart(hash(1)), Entity::Chart(hash(2)), Entity::Chartset(id(1))] {
        assert!(entities.contains(&expected), "{expected}");
    }

    // As after a failover.
    catalogue.database.psql(
        "UPDATE catalogue_changes SET sequence = sequence + 225000000000000, changed_at_ms = 7
         WHERE entity = (SELECT entity FROM catalogue_changes WHERE change <> 'removed' ORDER BY entity LIMIT 1)",
    );
    let parts = store.sitemap_parts().await.unwrap();
    assert_eq!(parts.iter().map(|part| part.number).collect::<Vec<_>>(), [0, 45_000_000_000]);
    assert!(matches!(parts[1], SitemapPart { changed_at_ms: 7, .. }));
    assert_eq!(store.sitemap_part(0).await.unwrap().len(), 2);
    assert_eq!(store.sitemap_part(45_000_000_000).await.unwrap().len(), 1);
    for empty in [1, u64::MAX] {
        assert_eq!(store.sitemap_part(empty).await.unwrap(), []);
    }
}
