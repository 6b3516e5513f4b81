//! The settings of the pages, each a flag and an environment variable.

use std::str::FromStr;

use chart_index_cli::OperatorArguments;
use clap::Args;
use url::Url;

/// What an operator says about the site.
#[derive(Debug, Clone, Default, Args)]
pub struct PagesSettings {
    /// Public URL of the pages, such as `https://charts.example`, for canonical links, the sitemap, previews
    /// of links, feeds and the search of browsers. Without it, feeds have relative links, and the others are
    /// left out.
    #[arg(long, env = "PUBLIC_URL")]
    pub public_url: Option<PublicUrl>,

    /// How to reach the operator, and on which terms the catalogue may be used.
    #[command(flatten)]
    pub operator: OperatorArguments,
}

impl PagesSettings {
    /// Whether a URL is one of this site, as far as its own URL is configured.
    pub(crate) fn is_origin_of(&self, url: &Url) -> bool {
        self.public_url.as_ref().is_some_and(|own| own.0 == url.origin().ascii_serialization())
    }
}

/// The URL of the root of the pages: `http` or `https`, without path, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// The URL without a slash at its end, so that a path can be appended.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PublicUrl {
    type Err = InvalidPublicUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| InvalidPublicUrl)?;
        let is_root = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let has_host = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
        if is_root && has_host {
            Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
        } else {
            Err(InvalidPublicUrl)
        }
    }
}

/// The text is not the URL of the root of a web site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("PUBLIC_URL is an http or https URL without path, query and fragment")]
pub struct InvalidPublicUrl;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_url_is_a_root() {
        for url in ["https://charts.example", "https://charts.example/", "http://127.0.0.1:8080"] {
            assert_eq!(url.parse::<PublicUrl>().unwrap().as_str(), url.trim_end_matches('/'));
        }
        for bad in ["", "charts.example", "ftp://a.example", "https://a.example/x", "https://a.example/?x"] {
            assert_eq!(bad.parse::<PublicUrl>(), Err(InvalidPublicUrl), "{bad}");
        }
    }
}
