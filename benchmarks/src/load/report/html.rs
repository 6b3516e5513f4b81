//! Reports in HTML, which open without a network: the plots are drawn by uPlot, which is part of the page.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const PAGE: &str = include_str!("../page/page.html");
const SCRIPT: &str = include_str!("../page/page.js");

/// Writes a page about these documents: the results of one, or those of several over time. `uplot` is the folder of the npm
/// package.
pub(crate) fn write_page(documents: &[PathBuf], uplot: &Path, page: &Path) -> Result<()> {
    ensure!(!documents.is_empty(), "no results");
    let mut runs = Vec::new();
    for path in documents {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let run = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
        runs.push(without_logs(run));
    }
    // The order of the dates, which the documents begin with.
    runs.sort_by_key(|run| run["date"].as_str().unwrap_or_default().to_owned());
    let file = |name: &str| {
        let path = uplot.join("dist").join(name);
        std::fs::read_to_string(&path)
            .with_context(|| format!("{} is missing: scripts/load installs it", path.display()))
    };
    let html = render(&runs, &file("uPlot.iife.min.js")?, &file("uPlot.min.css")?)?;
    if let Some(folder) = page.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(page, html).with_context(|| format!("cannot write {}", page.display()))
}

/// The results in a folder, by their names.
pub(crate) fn documents_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let is_document = |path: &Path| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name.contains("-load-") && path.extension().is_some_and(|extension| extension == "json")
    };
    let mut documents: Vec<PathBuf> = paths.into_iter().filter(|path| is_document(path)).collect();
    documents.sort();
    Ok(documents)
}

fn render(runs: &[Value], uplot: &str, style: &str) -> Result<String> {
    // `</script>` would end the element in which the data is.
    let data = serde_json::to_string(runs)?.replace("</", "<\\/");
    let parts = [("{{style}}", style), ("{{uplot}}", uplot), ("{{script}}", SCRIPT), ("{{data}}", &data)];
    Ok(parts.into_iter().fold(PAGE.to_owned(), |page, (name, part)| page.replacen(name, part, 1)))
}

/// A document without its HDR logs, which the page does not show.
fn without_logs(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("hdr_log");
            for field in fields.values_mut() {
                *field = without_logs(field.take());
            }
        }
        Value::Array(values) => {
            for value in values {
                *value = without_logs(value.take());
            }
        }
        _ => {}
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn page_needs_no_network() {
        let run = json!({ "date": "2026-11-22 12:00", "commit": "</script>" });
        let page = render(&[run], "const uPlot = 1;", "p {}").unwrap();
        for part in ["const uPlot = 1;", "p {}", "2026-11-22 12:00", "<\\/script>"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("{{"), "every part is filled in");
        for reference in ["src=", "href=", "@import", "fetch("] {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    #[test]
    fn pages_have_no_logs() {
        let run = json!({ "latencies": [{ "rounds": [{ "hdr_log": "HISTFAAA", "late": 0 }] }] });
        assert_eq!(without_logs(run), json!({ "latencies": [{ "rounds": [{ "late": 0 }] }] }));
    }
}
