//! Says which charts of a folder an index knows, and where they are from: `client https://charts.example songs`
//!
//! Cargo.toml: `chart-index-client = "1.0.0-rc.1"`, `tokio = { version = "1", features = ["macros", "rt"] }`

use std::error::Error;

use chart_index_client::{ChartIndex, Hashed, Include, hash_folder};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [base, folder] = [1, 2].map(|number| std::env::args().nth(number).unwrap_or_default());
    let index = ChartIndex::new(&base, "example-client/1.0 (me@example.org)")?;
    let mut charts = Vec::new();
    for found in hash_folder(folder)? {
        match found? {
            Hashed::Chart(chart) => charts.push(chart),
            Hashed::Refused(refused) => eprintln!("{}: {}", refused.file, refused.reason),
        }
    }
    let hashes: Vec<_> = charts.iter().map(|chart| chart.hash).collect();
    let items = index.lookup_many(&hashes, &[Include::Links]).await?;
    for (chart, item) in charts.iter().zip(items) {
        let urls: Vec<_> = item.sources.iter().filter_map(|source| source.url.as_deref()).collect();
        println!("{} {} {}", item.status, chart.file, urls.join(" "));
    }
    Ok(())
}
