//! Compares a chart of an export with what was computed from its ROX file.

use anyhow::{Result, ensure};
use chart_index_domain::{ChartNumbers, ChartValues};

/// The largest ratio by which numbers may differ. JSON numbers with more than 15 digits may be read with an
/// error of their last bit.
const ROUNDING: f64 = 1e-12;

/// # Errors
/// A number differs.
pub(crate) fn check_chart(given: &ChartNumbers, rox_bytes: u64, stored: &ChartValues) -> Result<()> {
    let computed = &stored.numbers;
    let integers = |numbers: &ChartNumbers| (numbers.keys, numbers.length_ms, numbers.notes, numbers.lns);
    let same = integers(given) == integers(computed)
        && floats(given).into_iter().zip(floats(computed)).all(|(a, b)| is_close(a, b));
    ensure!(same, "its numbers are {given:?}, but computed {computed:?}");
    let (given, actual) = (rox_bytes, stored.rox_bytes);
    ensure!(given == actual, "roxBytes is {given}, but its ROX file has {actual} bytes");
    Ok(())
}

const fn floats(numbers: &ChartNumbers) -> [f64; 5] {
    let ChartNumbers { bpm_min, bpm_max, bpm_main, density_avg, density_peak, .. } = *numbers;
    [bpm_min, bpm_max, bpm_main, density_avg, density_peak]
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_bits_may_differ() {
        let numbers = ChartNumbers {
            bpm_min: -1.0,
            bpm_max: 1.234_567_890_123_456_7e300,
            bpm_main: 174.999,
            notes: 2,
            ..ChartNumbers::default()
        };
        let stored = ChartValues { numbers, rox_bytes: 7, ..ChartValues::default() };
        let with = |change: fn(&mut ChartNumbers)| {
            let mut changed = numbers;
            change(&mut changed);
            check_chart(&changed, 7, &stored).is_ok()
        };
        assert!(with(|_| ()));
        assert!(with(|numbers| numbers.bpm_max = numbers.bpm_max.next_up()));
        assert!(!with(|numbers| numbers.bpm_main += 0.001));
        assert!(!with(|numbers| numbers.density_avg = 0.001));
        assert!(!with(|numbers| numbers.notes = 3));
        assert!(check_chart(&numbers, 8, &stored).is_err());
    }
}
