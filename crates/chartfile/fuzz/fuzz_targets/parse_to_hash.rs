//! Decodes arbitrary bytes to note hash and ROX file. The first byte selects the format.

#![no_main]

use chart_index_chartfile::{ChartFormat, decode, inspect_rox};
use libfuzzer_sys::fuzz_target;

const FORMATS: [ChartFormat; 4] = [ChartFormat::Osu, ChartFormat::Sm, ChartFormat::Ssc, ChartFormat::Qua];

// The panic hook of libfuzzer-sys aborts on every panic, including those that `decode` turns into refusals.
fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    if let Ok(decoded) = decode(FORMATS[usize::from(*choice) % FORMATS.len()], bytes) {
        for chart in decoded.charts {
            let content = inspect_rox(chart.rox.as_deref().expect("a ROX file")).expect("a readable ROX file");
            assert_eq!((content.hash, content.numbers), (chart.hash, chart.numbers));
            assert_eq!(Some(content.curve), chart.curve);
        }
    }
    _ = inspect_rox(bytes);
});
