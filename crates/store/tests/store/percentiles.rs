//! Where a chart stands among those with as many keys, or among all.

use std::time::Duration;

use chart_index_domain::{ChartDraft, KeyCount, Measure, Rating};

use crate::support::{Catalogue, chart, folder, hash};

/// `None` if too few charts have the number.
type Percent = Option<u8>;

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

/// How many percent of the charts with these keys, or of all if these are few, have a lower rating and a lower
/// peak density than the charts with these numbers.
async fn percentiles<const N: usize>(
    catalogue: &Catalogue,
    keys: u8,
    numbers: [u32; N],
) -> [(Percent, Percent); N] {
    let known = catalogue.store.distributions().await.unwrap();
    let keys = Some(KeyCount::try_from(keys).unwrap());
    numbers.map(|number| {
        let below = |measure, value| known.of(measure, keys).map(|of_keys| of_keys.percent_below(value));
        let number = f64::from(number);
        (below(Measure::Rating, number / 100.0), below(Measure::DensityPeak, number))
    })
}

#[tokio::test]
async fn percentiles_are_of_shown_charts_with_as_many_keys() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, (1..=200).map(|number| numbered(number, 4))), 10).await;
    catalogue.put(&folder(2, (201..=299).map(|number| numbered(number, 7))), 10).await;
    assert_eq!(percentiles(&catalogue, 4, [200]).await, [(None, None)], "they are not computed yet");
    catalogue.store.compute_percentiles(1_000, DAY).await.unwrap();
    assert_eq!(
        percentiles(&catalogue, 4, [1, 2, 4, 101, 150, 200]).await,
        [
            (Some(0), Some(0)),
            (Some(0), Some(0)),
            (Some(2), Some(1)),
            (Some(66), Some(50)),
            (Some(99), Some(74)),
            (Some(99), Some(99)),
        ]
    );
    // 99 charts are too few: all 299 stand for them, 150 of which have a rating.
    let all = catalogue.store.distributions().await.unwrap();
    assert!(all.of(Measure::DensityPeak, KeyCount::try_from(7).ok()).unwrap().keys.is_none());
    assert_eq!(percentiles(&catalogue, 7, [101, 299]).await, [(Some(66), Some(33)), (Some(99), Some(99))]);

    for number in 1..=100 {
        catalogue.remove(hash(number), 20).await;
    }
    catalogue.store.compute_percentiles(2_000 + DAY_MS, DAY).await.unwrap();
    assert_eq!(percentiles(&catalogue, 4, [101, 151]).await, [(None, Some(0)), (None, Some(50))]);
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
