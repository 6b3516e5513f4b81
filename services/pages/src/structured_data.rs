//! What a page is about, as JSON-LD in the words of schema.org, for search engines.

use chart_index_domain::{Chart, Chartset};
use serde_json::{Value, json};

/// A document that can be written into a `script` element.
#[derive(Debug, Clone)]
pub(crate) struct StructuredData(String);

impl StructuredData {
    fn new(mut document: Value) -> Self {
        document["@context"] = "https://schema.org".into();
        // In a script element, `<` may begin its end tag or a comment. JSON has both in strings only.
        Self(document.to_string().replace('<', "\\u003c").replace('>', "\\u003e"))
    }

    /// The text, which is safe in an element `script`.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The site, whose search takes words.
    pub(crate) fn site(public_url: &str) -> Self {
        Self::new(json!({
            "@type": "WebSite",
            "name": "Chart Index",
            "url": format!("{public_url}/"),
            "potentialAction": {
                "@type": "SearchAction",
                "target": format!("{public_url}/?query={{words}}&sort=relevance"),
                "query-input": "required name=words",
            },
        }))
    }

    /// A chart of this name.
    pub(crate) fn chart(chart: &Chart, name: &str, url: &str) -> Self {
        let mut work = work(name, url, &chart.creator);
        work["identifier"] = chart.hash.to_string().into();
        work["about"] = song(&chart.title, &chart.artist);
        Self::new(work)
    }

    /// A chartset of this name, whose charts may have several creators.
    pub(crate) fn chartset(set: &Chartset, name: &str, url: &str) -> Self {
        let mut work = work(name, url, "");
        work["identifier"] = set.id.to_string().into();
        work["about"] = song(&set.title, &set.artist);
        Self::new(work)
    }
}

fn work(name: &str, url: &str, creator: &str) -> Value {
    let mut work = json!({ "@type": "CreativeWork", "name": name, "url": url });
    if !creator.is_empty() {
        work["creator"] = json!({ "@type": "Person", "name": creator });
    }
    work
}

fn song(title: &str, artist: &str) -> Value {
    let mut song = json!({ "@type": "MusicRecording", "name": title });
    if !artist.is_empty() {
        song["byArtist"] = json!({ "@type": "MusicGroup", "name": artist });
    }
    song
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_the_script() {
        let data = StructuredData::new(work("</script><!--", "/", "<b>"));
        assert!(!data.as_str().contains(['<', '>']), "{}", data.as_str());
        let read: Value = serde_json::from_str(data.as_str()).unwrap();
        assert_eq!(read["name"], "</script><!--");
        assert_eq!(read["creator"]["name"], "<b>");
    }
}
