//! Purge requests to a CDN.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chart_index_cli::SecretParser;
use clap::{Args, ValueEnum};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};

use crate::instance::USER_AGENT;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What a URL has in the place of a tag.
const PLACEHOLDER: &str = "{tag}";
/// Maximum length of the header `Surrogate-Key`. Varnish takes one of 8 KiB, its name included.
const MAX_HEADER_BYTES: usize = 4_096;
/// The length of the longest tag, which is a note hash.
const MAX_TAG_BYTES: usize = 64;

/// How to purge a CDN (docs/operations/cdn.md).
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of the options")]
pub(crate) struct PurgeArguments {
    /// URL that purges tags from a CDN by POST. Without it none is purged
    #[arg(long, env = "PURGE_URL", value_name = "URL")]
    purge_url: Option<String>,
    /// Form of the requests
    #[arg(long, env = "PURGE_FORM", value_enum, default_value_t = PurgeForm::SurrogateKey)]
    purge_form: PurgeForm,
    /// Header of each request that authorises it, e.g. `Authorization: Bearer …`
    #[arg(long, env = "PURGE_HEADER", value_name = "NAME: VALUE", hide_env_values = true, value_parser = SecretParser::<Header>::new())]
    purge_header: Option<Header>,
    /// File with the value of `PURGE_HEADER`
    #[arg(long, env = "PURGE_HEADER_FILE", conflicts_with = "purge_header", value_parser = SecretParser::<Header>::in_file())]
    purge_header_file: Option<Header>,
}

/// How a request names tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PurgeForm {
    /// Many, in the header `Surrogate-Key`: Fastly, and Varnish with the configuration of the documentation
    SurrogateKey,
    /// Many, in a JSON body: Cloudflare
    Cloudflare,
    /// One, in the place of `{tag}` in the URL
    Url,
}

impl PurgeForm {
    /// The maximum number of tags in a request.
    const fn max_tags(self) -> usize {
        match self {
            Self::SurrogateKey => MAX_HEADER_BYTES / (MAX_TAG_BYTES + 1),
            Self::Cloudflare => 30,
            Self::Url => 1,
        }
    }
}

#[derive(Debug, Clone)]
struct Header(HeaderName, HeaderValue);

#[derive(Debug, thiserror::Error)]
#[error("expected a header as `Name: value`")]
struct MalformedHeader;

impl FromStr for Header {
    type Err = MalformedHeader;

    fn from_str(text: &str) -> Result<Self, MalformedHeader> {
        let (name, value) = text.split_once(':').ok_or(MalformedHeader)?;
        let name = name.parse().map_err(|_| MalformedHeader)?;
        let mut value: HeaderValue = value.trim().parse().map_err(|_| MalformedHeader)?;
        value.set_sensitive(true);
        Ok(Self(name, value))
    }
}

/// Purges tags from a CDN.
#[derive(Debug)]
pub(crate) struct Purger {
    client: Client,
    url: String,
    form: PurgeForm,
    header: Option<Header>,
}

impl Purger {
    /// The purger of these settings; `None` without one.
    ///
    /// # Errors
    /// The URL is not valid for the form.
    pub(crate) fn new(arguments: PurgeArguments) -> Result<Option<Self>> {
        let PurgeArguments { purge_url, purge_form: form, purge_header, purge_header_file } = arguments;
        let Some(url) = purge_url else { return Ok(None) };
        Url::parse(&url.replace(PLACEHOLDER, "tag")).context("PURGE_URL")?;
        ensure!(
            url.contains(PLACEHOLDER) == (form == PurgeForm::Url),
            "PURGE_URL: {PLACEHOLDER} belongs to the form `url`, and only there"
        );
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A redirected POST would become a GET.
        let client = Client::builder().user_agent(USER_AGENT).timeout(TIMEOUT).redirect(Policy::none());
        let client = client.http1_only().build().context("cannot create the HTTP client")?;
        Ok(Some(Self { client, url, form, header: purge_header.or(purge_header_file) }))
    }

    /// Maximum number of tags in a request.
    pub(super) const fn max_tags(&self) -> usize {
        self.form.max_tags()
    }

    /// Purges all responses with one of these tags, by one request.
    ///
    /// # Errors
    /// The CDN is unreachable or refuses the request.
    pub(super) async fn purge(&self, tags: &[String]) -> Result<()> {
        let response = self.request(tags).send().await.map_err(reqwest::Error::without_url)?;
        let status = response.status();
        ensure!(status.is_success(), "the CDN responded with {status}");
        Ok(())
    }

    fn request(&self, tags: &[String]) -> RequestBuilder {
        let mut request = match self.form {
            PurgeForm::SurrogateKey => self.client.post(&self.url).header("surrogate-key", tags.join(" ")),
            PurgeForm::Cloudflare => self
                .client
                .post(&self.url)
                .header(CONTENT_TYPE, "application/json")
                .body(serde_json::json!({ "tags": tags }).to_string()),
            PurgeForm::Url => self.client.post(self.url.replace(PLACEHOLDER, &tags.concat())),
        };
        if let Some(Header(name, value)) = &self.header {
            request = request.header(name, value);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purger(url: &str, form: PurgeForm) -> Result<Option<Purger>> {
        Purger::new(PurgeArguments {
            purge_url: Some(url.to_owned()),
            purge_form: form,
            purge_header: Some("Fastly-Key: secret".parse()?),
            purge_header_file: None,
        })
    }

    #[test]
    fn forms_name_the_tags() {
        let tags = ["ab".to_owned(), "cd".to_owned()];
        for (url, form, tags, expected_url, header, body) in [
            (
                "https://cdn.example/purge",
                PurgeForm::SurrogateKey,
                &tags[..],
                "https://cdn.example/purge",
                "ab cd",
                "",
            ),
            (
                "https://cdn.example/zone",
                PurgeForm::Cloudflare,
                &tags,
                "https://cdn.example/zone",
                "",
                r#"{"tags":["ab","cd"]}"#,
            ),
            ("https://cdn.example/{tag}", PurgeForm::Url, &tags[..1], "https://cdn.example/ab", "", ""),
        ] {
            let request = purger(url, form).unwrap().unwrap().request(tags).build().unwrap();
            assert_eq!((request.method().as_str(), request.url().as_str()), ("POST", expected_url));
            let surrogate_key =
                request.headers().get("surrogate-key").map_or("", |value| value.to_str().unwrap());
            assert_eq!(surrogate_key, header);
            assert_eq!(request.headers()["fastly-key"], "secret");
            let sent = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
            assert_eq!(std::str::from_utf8(sent).unwrap(), body);
        }
    }

    #[test]
    fn header_of_the_most_tags_is_bounded() {
        let purger = purger("https://cdn.example/purge", PurgeForm::SurrogateKey).unwrap().unwrap();
        let tags = vec!["ab".repeat(32); purger.max_tags()];
        let request = purger.request(&tags).build().unwrap();
        let bytes = request.headers()["surrogate-key"].len();
        assert!((4_000..8_000).contains(&bytes), "{bytes}: Varnish takes 8 KiB");
    }

    #[test]
    fn url_has_a_placeholder_in_one_form_only() {
        for (url, form) in [
            ("https://cdn.example/{tag}", PurgeForm::SurrogateKey),
            ("https://cdn.example/", PurgeForm::Url),
            ("cdn.example", PurgeForm::Cloudflare),
        ] {
            let error = format!("{:#}", purger(url, form).unwrap_err());
            assert!(error.starts_with("PURGE_URL"), "{error}");
        }
    }

    #[test]
    fn headers_are_parsed_and_not_printed() {
        let Header(name, value) = "X-Key:  one two ".parse().unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-key", "one two"));
        assert_eq!(format!("{value:?}"), "Sensitive");
        for text in ["", "key", "a b: c", "key: one\ntwo"] {
            assert!(text.parse::<Header>().is_err(), "{text:?}");
        }
    }
}
