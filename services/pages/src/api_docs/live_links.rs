//! Links that send the requests of examples: to a chart and a chartset that the instance has.
//!
//! The examples of docs/api.md are those of the sample library, which an instance need not have. Their text
//! stays: the responses that it shows are those of the samples.

use chart_index_domain::{ChartsetId, NoteHash};

use super::reference;

/// Where requests are sent: links, and code in several languages. How they begin and end.
const SENT: [(&str, &str); 2] = [("<a href=\"", "</a>"), ("<pre class=\"request\"", "</pre>")];

/// The HTML with the requests for the sample chart and chartset being for these.
pub(crate) fn with_newest(html: &str, (id, hash): (ChartsetId, NoteHash)) -> String {
    let (Some(sample_hash), Some(sample_id)) = (sample("/api/charts/"), sample("/api/chartsets/")) else {
        return html.to_owned();
    };
    let (hash, id) = (hash.to_string(), id.to_string());
    let replaced = |text: &str| text.replace(sample_hash, &hash).replace(sample_id, &id);
    let mut page = html.to_owned();
    for (start, end) in SENT {
        let mut parts = page.split(start);
        let mut changed = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (sent, text) = part.split_at(part.find(end).unwrap_or(0));
            changed.extend([start, &replaced(sent), text]);
        }
        page = changed;
    }
    page
}

/// The last segment of the path of the first example that is found below this path.
fn sample(path: &str) -> Option<&'static str> {
    let mut found =
        reference::examples().filter(|example| example.method == "GET" && example.status == "200");
    found.find_map(|example| example.target.strip_prefix(path)).filter(|name| !name.contains(['/', '?']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_newest_and_examples_stay() {
        let (hash, id) = (sample("/api/charts/").unwrap(), sample("/api/chartsets/").unwrap());
        let link = format!("<a href=\"/api/charts/{hash}/rox\">Send GET /api/charts/{hash}/rox</a>");
        let redirect = format!("<a href=\"/go/chartset/{id}\" rel=\"nofollow\">Try it</a>");
        let example = format!("<pre>GET /api/charts/{hash}/rox {id}</pre>");
        let unknown = "<a href=\"/api/charts/00\">Send GET /api/charts/00</a>";
        let html = format!("{example}{link}{example}{redirect}{unknown}{example}");
        let newest = ("7a00000000000000".parse::<ChartsetId>().unwrap(), NoteHash::from_bytes([7; 32]));
        let (own_id, own_hash) = (newest.0.to_string(), newest.1.to_string());
        let expected = format!(
            "{example}{}{example}{}{unknown}{example}",
            link.replace(hash, &own_hash),
            redirect.replace(id, &own_id)
        );
        assert_eq!(with_newest(&html, newest), expected);
    }
}
