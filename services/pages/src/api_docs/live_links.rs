//! Links that send the requests of examples: to a chart and a chartset that the instance has.
//!
//! The examples of docs/api.md are those of the sample library, which an instance need not have. Their text
//! stays: the responses that it shows are those of the samples.

use chart_index_domain::{ChartsetId, NoteHash};

use super::reference;

/// How a link begins.
const LINK: &str = "<a href=\"";

/// The HTML with the links to the sample chart and chartset leading to these.
pub(crate) fn with_newest(html: &str, (id, hash): (ChartsetId, NoteHash)) -> String {
    let (Some(sample_hash), Some(sample_id)) = (sample("/api/charts/"), sample("/api/chartsets/")) else {
        return html.to_owned();
    };
    let (hash, id) = (hash.to_string(), id.to_string());
    let replaced = |text: &str| text.replace(sample_hash, &hash).replace(sample_id, &id);
    let mut parts = html.split(LINK);
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, text) = part.split_at(part.find("</a>").unwrap_or(0));
        page.extend([LINK, &replaced(link), text]);
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
