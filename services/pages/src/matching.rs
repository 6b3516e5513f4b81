//! Which charts of a set satisfy the filters. The list filters sets: one chart may have the key count and
//! another the length.

use chart_index_domain::search::{Bounds, SearchQuery};
use chart_index_domain::{Chart, text};

/// Whether a query has filters that a single chart can satisfy or not.
pub(crate) fn has_chart_filters(search: &SearchQuery) -> bool {
    let is_bounded = |bounds: Bounds| bounds.min.is_some() || bounds.max.is_some();
    !search.keys.is_empty()
        || search.creator.is_some()
        || is_bounded(search.bpm)
        || is_bounded(search.length_ms)
        || search.density_min.is_some()
}

/// Whether a chart satisfies all filters of charts, by the rules for sets.
pub(crate) fn matches(search: &SearchQuery, chart: &Chart) -> bool {
    let numbers = &chart.numbers;
    let has_keys = search.keys.is_empty() || search.keys.iter().any(|keys| keys == numbers.keys);
    let length = f64::from(numbers.length_ms);
    let is_by = |creator: &String| text::fold_case(&chart.creator).contains(&text::fold_case(creator));
    has_keys
        && overlaps(search.bpm, numbers.bpm_min, numbers.bpm_max)
        && overlaps(search.length_ms, length, length)
        && search.density_min.is_none_or(|min| numbers.density_peak >= min)
        && search.creator.as_ref().is_none_or(is_by)
}

fn overlaps(bounds: Bounds, min: f64, max: f64) -> bool {
    bounds.min.is_none_or(|bound| max >= bound) && bounds.max.is_none_or(|bound| min <= bound)
}

#[cfg(test)]
mod tests {
    use chart_index_domain::search::parse_query_string;
    use chart_index_domain::{ChartNumbers, KeyCount, NOTE_HASH_VERSION, NoteHash};

    use super::*;

    fn chart() -> Chart {
        let numbers = ChartNumbers {
            keys: KeyCount::try_from(7).unwrap(),
            bpm_min: 100.0,
            bpm_max: 200.0,
            bpm_main: 150.0,
            length_ms: 92_000,
            notes: 10,
            lns: 1,
            density_avg: 5.0,
            density_peak: 12.0,
        };
        Chart {
            hash: NoteHash::from_bytes([0; 32]),
            note_hash_version: NOTE_HASH_VERSION,
            numbers,
            rox_bytes: 1,
            title: String::new(),
            artist: String::new(),
            creator: "ZoË".into(),
            difficulty: String::new(),
            variant: None,
            variant_version: None,
            rating: None,
            patterns: None,
        }
    }

    #[test]
    fn every_filter_applies_to_a_chart() {
        for (query, expected) in [
            ("keys=7", true),
            ("keys=4,7", true),
            ("keys=4", false),
            ("bpmMin=200", true),
            ("bpmMin=200.001", false),
            ("bpmMax=100", true),
            ("bpmMin=120&bpmMax=130", true),
            ("lengthMin=92&lengthMax=92", true),
            ("lengthMax=91.999", false),
            ("densityMin=12", true),
            ("densityMin=12.001", false),
            ("creator=oë", true),
            ("creator=amy", false),
            ("keys=7&densityMin=13", false),
        ] {
            let search = parse_query_string(query).unwrap();
            assert!(has_chart_filters(&search), "{query}");
            assert_eq!(matches(&search, &chart()), expected, "{query}");
        }
    }

    #[test]
    fn filters_of_sets_mark_no_chart() {
        for query in ["", "q=a", "source=alphaSet", "sort=title&page=2"] {
            assert!(!has_chart_filters(&parse_query_string(query).unwrap()), "{query}");
        }
    }
}
