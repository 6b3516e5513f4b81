//! What the base template needs of every page.

use crate::assets::Assets;
use crate::settings::PublicUrl;
use crate::structured_data::StructuredData;

/// The head, header and footer of a page (`templates/base.html`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// The title, before the name of the site.
    pub(crate) title: String,
    /// What the page shows, for search engines and previews of links.
    pub(crate) description: String,
    /// The address that search engines index, a path; `None` for a page that they should not index. Without the
    /// URL of the site it is not named: a link that is relative would make each address of the site canonical.
    pub(crate) canonical: Option<String>,
    /// The path of the same resource in the API.
    pub(crate) json: Option<String>,
    /// What the page is about, for search engines.
    pub(crate) structured_data: Option<StructuredData>,
    /// The path of the feed of the list.
    pub(crate) feed: Option<String>,
    /// The URL of the root of the site, without a slash at its end; empty if it is not configured.
    pub(crate) public_url: String,
}

impl Layout {
    /// The layout of a page that search engines index at this path.
    pub(crate) fn new(
        title: impl Into<String>,
        canonical: impl Into<String>,
        public_url: Option<&PublicUrl>,
    ) -> Self {
        Self {
            title: title.into(),
            canonical: Some(canonical.into()),
            public_url: public_url.map(|url| url.as_str().to_owned()).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The layout of a page that search engines do not index.
    pub(crate) fn not_indexed(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The URL of the canonical address, which is a path while the URL of the site is not configured.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.public_url, self.canonical.as_deref().unwrap_or_default())
    }

    /// The path of a file of `services/pages/assets`.
    #[expect(clippy::unused_self, reason = "called by templates")]
    pub(crate) fn asset(&self, name: &str) -> &'static str {
        Assets::url(name)
    }
}
