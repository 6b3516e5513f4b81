//! From arbitrary bytes to note hash and ROX file: the first byte chooses the format.

#![no_main]

use chart_index_chartfile::{ChartFormat, decode, inspect_rox};
use libfuzzer_sys::fuzz_target;

const FORMATS: [ChartFormat; 4] = [ChartFormat::Osu, ChartFormat::Sm, ChartFormat::Ssc, ChartFormat::Qua];

// The hook that the fuzzer brings aborts at every panic, also at those that `decode` turns into a refusal. A
// panic that leaves the target ends the run all the same.
fuzz_target!(init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))), |data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    if let Ok(decoded) = decode(FORMATS[usize::from(*choice) % FORMATS.len()], bytes) {
        for chart in decoded.charts {
            assert_eq!(inspect_rox(chart.rox.as_deref().expect("made")), Ok((chart.hash, chart.numbers)));
        }
    }
    _ = inspect_rox(bytes);
});
