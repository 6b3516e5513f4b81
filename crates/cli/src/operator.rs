//! What an operator says about the use of the catalogue.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use url::Url;

/// How to reach the operator, and on which terms the catalogue may be used. Each may be absent.
#[derive(Debug, Clone, Default, Args)]
pub struct OperatorArguments {
    /// How to reach the operator, an e-mail address or a URL: in the API's description, in manifests of
    /// exports, and on `/about`, for questions and for the removal of entries
    #[arg(long, env = "CONTACT", value_parser = NonEmptyStringValueParser::new())]
    pub contact: Option<String>,
    /// Licence of the records of the catalogue, an SPDX identifier such as `CC0-1.0`, or a URL; in the same
    /// places. Without it nothing is said about their use
    #[arg(long, env = "DATA_LICENSE", value_name = "LICENSE")]
    pub data_license: Option<DataLicense>,
    /// URL of the terms of use, in the same places
    #[arg(long, env = "TERMS_URL", value_name = "URL", value_parser = parse_http_url)]
    pub terms_url: Option<Url>,
}

/// A licence of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataLicense {
    /// An SPDX licence identifier.
    Spdx(String),
    /// The text of a licence.
    Url(Url),
}

impl DataLicense {
    /// Where the text is.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Spdx(identifier) => format!("https://spdx.org/licenses/{identifier}.html"),
            Self::Url(url) => url.to_string(),
        }
    }
}

impl fmt::Display for DataLicense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spdx(identifier) => f.write_str(identifier),
            Self::Url(url) => url.fmt(f),
        }
    }
}

impl FromStr for DataLicense {
    type Err = InvalidLicense;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(url) = parse_http_url(text) {
            return Ok(Self::Url(url));
        }
        // `idstring` of the SPDX specification.
        let is_identifier = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let is_valid = !text.is_empty() && text.bytes().all(is_identifier);
        is_valid.then(|| Self::Spdx(text.to_owned())).ok_or(InvalidLicense)
    }
}

/// The text is neither an SPDX identifier nor a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a licence is an SPDX identifier, such as CC0-1.0, or an http or https URL")]
pub struct InvalidLicense;

fn parse_http_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or("it is not an http or https URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_is_an_identifier_or_a_url() {
        for (text, url) in [
            ("CC0-1.0", "https://spdx.org/licenses/CC0-1.0.html"),
            ("https://charts.example/licence", "https://charts.example/licence"),
        ] {
            let license: DataLicense = text.parse().unwrap();
            assert_eq!((license.to_string().as_str(), license.url().as_str()), (text, url));
        }
        for bad in ["", "ask me", "javascript:alert(1)", "CC0-1.0/..", "ftp://charts.example/licence"] {
            assert_eq!(bad.parse::<DataLicense>(), Err(InvalidLicense), "{bad}");
        }
    }
}
