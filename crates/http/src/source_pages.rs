//! The settings for the public pages of the sources, each a flag and an environment variable.

use std::fmt;
use std::str::FromStr;

use chart_index_domain::{PublicSource, Source, SourceKind, SourceRef};
use clap::Args;
use url::Url;

/// The addresses of the public pages of the sources.
#[derive(Debug, Clone, Args)]
pub struct SourcePages {
    /// Base URL of the set pages of the first game: a chartset is redirected to `<URL>/<set id>`
    #[arg(long, env = "ALPHA_SOURCE_PAGE", default_value = "https://alpha.example/sets")]
    pub alpha_source_page: SourcePage,

    /// Base URL of the pack pages of the second game: a chartset is redirected to `<URL>/<pack id>`
    #[arg(long, env = "BETA_SOURCE_PAGE", default_value = "https://beta.example/packs")]
    pub beta_source_page: SourcePage,
}

impl SourcePages {
    /// The page of a set or a pack (docs/api.md, "Source redirect").
    #[must_use]
    pub fn page_of(&self, source: &PublicSource) -> String {
        self.url(source.kind, &source.reference)
    }

    /// Adds the URLs of their pages to sources.
    pub fn link(&self, sources: &mut [Source]) {
        for source in sources {
            source.url = Some(self.url(source.kind, &source.reference));
        }
    }

    fn url(&self, kind: SourceKind, reference: &SourceRef) -> String {
        let page = match kind {
            SourceKind::AlphaSet => &self.alpha_source_page,
            SourceKind::BetaPack => &self.beta_source_page,
        };
        format!("{}/{reference}", page.0.as_str().trim_end_matches('/'))
    }

    /// The set or pack that a URL shows: that of its page, or one below it. `None` for any other text.
    #[must_use]
    pub fn source_of(&self, text: &str) -> Option<PublicSource> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let pages =
            [(SourceKind::AlphaSet, &self.alpha_source_page), (SourceKind::BetaPack, &self.beta_source_page)];
        pages
            .into_iter()
            .find_map(|(kind, page)| Some(PublicSource { kind, reference: page.reference(&url)? }))
    }
}

/// Both addresses: what responses with links depend on.
impl fmt::Display for SourcePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.alpha_source_page.0, self.beta_source_page.0)
    }
}

/// The base URL of the pages of a source: `http` or `https`, without query and fragment, so that an id can be
/// appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePage(Url);

impl SourcePage {
    /// Whether it is no address of a site, as by default (RFC 2606).
    #[must_use]
    pub fn is_example(&self) -> bool {
        self.0.host_str().is_some_and(|host| host.ends_with(".example"))
    }

    /// The id in the first segment of the path below this page.
    fn reference(&self, url: &Url) -> Option<SourceRef> {
        let is_same_site = (url.host_str(), url.port()) == (self.0.host_str(), self.0.port());
        let below = url.path().strip_prefix(self.0.path().trim_end_matches('/'))?.strip_prefix('/')?;
        let digits = below.split('/').next()?;
        let is_number = is_same_site && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse().ok().and_then(SourceRef::from_number) } else { None }
    }
}

impl FromStr for SourcePage {
    type Err = InvalidSourcePage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text)?;
        let is_page = matches!(url.scheme(), "http" | "https");
        if is_page && url.query().is_none() && url.fragment().is_none() {
            Ok(Self(url))
        } else {
            Err(InvalidSourcePage::NotAPage)
        }
    }
}

/// The text is not the base URL of source pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSourcePage {
    /// It is not an absolute URL.
    #[error("not an absolute URL")]
    NotAUrl(#[from] url::ParseError),
    /// It is a URL to which no id can be appended.
    #[error("a source page is an http or https URL without query and fragment")]
    NotAPage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_a_source_page_names_its_source() {
        let pages = SourcePages {
            alpha_source_page: "https://alpha.example/sets".parse().unwrap(),
            beta_source_page: "https://beta.example/packs/".parse().unwrap(),
        };
        let number = |text| pages.source_of(text).map(|source| (source.kind, source.reference.to_string()));
        for (url, kind) in [
            ("https://alpha.example/sets/577617", SourceKind::AlphaSet),
            ("http://alpha.example/sets/577617/?a=b#mania/1", SourceKind::AlphaSet),
            ("https://ALPHA.example/sets/577617/discussion", SourceKind::AlphaSet),
            ("https://beta.example/packs/577617", SourceKind::BetaPack),
        ] {
            assert_eq!(number(url), Some((kind, "577617".to_owned())), "{url}");
        }
        for other in [
            "577617",
            "alpha.example/sets/577617",
            "https://alpha.example/sets",
            "https://alpha.example/sets/0",
            "https://alpha.example/setsx/5",
            "https://alpha.example/sets/5x",
            "https://other.example/sets/5",
            "ftp://alpha.example/sets/5",
        ] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn source_page_ends_with_the_reference() {
        let source = |kind| PublicSource { kind, reference: SourceRef::from_number(577_617).unwrap() };
        for (page, expected) in [
            ("https://alpha.example/sets", "https://alpha.example/sets/577617"),
            ("https://alpha.example/sets/", "https://alpha.example/sets/577617"),
            ("https://alpha.example", "https://alpha.example/577617"),
            ("http://localhost:8000/a b/", "http://localhost:8000/a%20b/577617"),
        ] {
            let beta_source_page = "https://beta.example/packs".parse().unwrap();
            let pages = SourcePages { alpha_source_page: page.parse().unwrap(), beta_source_page };
            assert_eq!(pages.page_of(&source(SourceKind::AlphaSet)), expected);
            assert_eq!(pages.page_of(&source(SourceKind::BetaPack)), "https://beta.example/packs/577617");
        }
    }

    #[test]
    fn only_base_urls_are_source_pages() {
        for bad in [
            "",
            "alpha.example/sets",
            "/sets",
            "ftp://alpha.example",
            "https://a.example/?set=",
            "mailto:a@b",
        ] {
            assert!(bad.parse::<SourcePage>().is_err(), "{bad}");
        }
        assert!("https://a.example/#sets".parse::<SourcePage>().is_err());
    }
}
