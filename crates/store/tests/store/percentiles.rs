//! Where a chart stands among those with as many keys.

use std::time::Duration;

use chart_index_domain::{ChartDraft, KeyCount, Percentiles, Rating};

use crate::support::{Catalogue, chart, folder, hash};

const DAY: Duration = Duration::from_hours(24);
const DAY_MS: i64 = 86_400_000;

/// A chart whose peak density is its number, and its rating in hundredths as well, unless it is above 150.
fn numbered(number: u32, keys: u8) -> ChartDraft {
    let mut draft = chart(number);
    draft.numbers.keys = KeyCount::try_from(keys).unwrap();
    draft.numbers.density_peak = number.into();
    let rating = u16::try_from(number).ok().filter(|rating| *rating <= 150);
    draft.analysis.as_mut().unwrap().rating = rating.and_then(Rating::from_hundredths);
    draft
}

/// The percentiles of the charts with these numbers.
async fn percentiles<const N: usize>(
    catalogue: &Catalogue,
    numbers: [u32; N],
) -> [(Option<u8>, Option<u8>); N] {
    let mut found = [(None, None); N];
    for (number, found) in numbers.into_iter().zip(&mut found) {
        let page = catalogue.store.chart_page(hash(number.into())).await.unwrap().unwrap();
        let Percentiles { rating, density_peak } = page.percentiles;
        *found = (rating, density_peak);
    }
    found
}

#[tokio::test]
async fn percentiles_are_of_shown_charts_with_as_many_keys() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, (1..=200).map(|number| numbered(number, 4))), 10).await;
    catalogue.put(&folder(2, (201..=299).map(|number| numbered(number, 7))), 10).await;
    assert_eq!(percentiles(&catalogue, [200]).await, [(None, None)], "they are not computed yet");
    catalogue.store.compute_percentiles(1_000, DAY).await.unwrap();
    assert_eq!(
        percentiles(&catalogue, [1, 2, 4, 101, 150, 151, 200]).await,
        [
            (Some(0), Some(0)),
            (Some(0), Some(0)),
            (Some(2), Some(1)),
            (Some(66), Some(50)),
            (Some(99), Some(74)),
            (None, Some(75)),
            (None, Some(99)),
        ]
    );
    assert_eq!(percentiles(&catalogue, [299]).await, [(None, None)], "99 charts are too few");

    for number in 1..=100 {
        catalogue.remove(hash(number), 20).await;
    }
    catalogue.store.compute_percentiles(2_000 + DAY_MS, DAY).await.unwrap();
    assert_eq!(percentiles(&catalogue, [101, 151]).await, [(None, Some(0)), (None, Some(50))]);
}

#[tokio::test]
async fn percentiles_are_computed_once_a_day() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, (1..=100).map(|number| numbered(number, 4))), 10).await;
    let computed_at = || catalogue.database.psql("SELECT DISTINCT computed_at_ms FROM chart_percentiles");
    for (now_ms, max_age, expected) in [
        (1_000, DAY, 1_000),
        (999 + DAY_MS, DAY, 1_000),
        (1_000 + DAY_MS, DAY, 1_000 + DAY_MS),
        (1_001 + DAY_MS, Duration::ZERO, 1_001 + DAY_MS),
        // The clock was set back.
        (500, DAY, 500),
    ] {
        catalogue.store.compute_percentiles(now_ms, max_age).await.unwrap();
        assert_eq!(computed_at(), expected.to_string(), "at {now_ms}");
    }
}
