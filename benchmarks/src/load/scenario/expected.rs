//! Expected responses.

use anyhow::{Context, Result, ensure};
use chart_index_domain::NoteHash;
use serde_json::Value;

/// What a response has to contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A known chart with this hash.
    Chart(NoteHash),
    /// An unknown chart with this hash.
    UnknownChart(NoteHash),
    /// The ROX file of a chart with this hash, of this many bytes.
    Rox(NoteHash, u64),
    /// A file of this many bytes, with any entity tag.
    File(u64),
    /// A page of the list.
    List,
    /// The details of a chartset.
    Detail,
    /// A redirect to the source of a chartset.
    Redirect,
    /// 304 without a body.
    NotModified,
}

/// The parts of a response that are checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) status: u16,
    pub(crate) tag: &'a str,
    pub(crate) location: &'a str,
    pub(crate) body: &'a [u8],
    /// Whether the body is compressed, and not checked.
    pub(crate) is_encoded: bool,
}

impl Expected {
    /// The status of the response.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::NotModified => 304,
            Self::Redirect => 302,
            _ => 200,
        }
    }

    /// The group of the rate limit: requests of different groups are counted apart.
    pub(crate) const fn group(self) -> &'static str {
        match self {
            Self::Chart(_) | Self::UnknownChart(_) | Self::NotModified => "lookup",
            Self::Rox(..) | Self::File(_) => "rox",
            Self::List => "list",
            Self::Detail | Self::Redirect => "detail",
        }
    }

    /// What a server returns that makes entity tags of its own, not from note hashes.
    pub(crate) const fn with_any_tag(self) -> Self {
        match self {
            Self::Rox(_, bytes) => Self::File(bytes),
            expected => expected,
        }
    }

    /// Checks a response.
    ///
    /// # Errors
    ///
    /// What differs.
    pub(crate) fn check(self, received: &Received<'_>) -> Result<()> {
        ensure!(received.status == self.status(), "status {} instead of {}", received.status, self.status());
        match self {
            Self::NotModified => ensure!(received.body.is_empty(), "a 304 with a body"),
            Self::Redirect => ensure!(received.location.starts_with("http"), "no address to go to"),
            Self::Rox(hash, bytes) => {
                ensure!(received.tag == format!("\"{hash}\""), "the tag {} of {hash}", received.tag);
                received.check_length(bytes)?;
            }
            Self::File(bytes) => received.check_length(bytes)?,
            Self::Chart(_) | Self::UnknownChart(_) | Self::List | Self::Detail => {
                ensure!(!received.tag.is_empty(), "no entity tag");
                if !received.is_encoded {
                    let body = serde_json::from_slice(received.body).context("a body that is no JSON")?;
                    self.check_json(&body)?;
                }
            }
        }
        Ok(())
    }

    fn check_json(self, body: &Value) -> Result<()> {
        match self {
            Self::Chart(hash) => {
                ensure!(body["status"] == "known", "the status {} of {hash}", body["status"]);
                ensure!(body["chart"]["hash"] == hash.to_string(), "another chart than {hash}");
            }
            Self::UnknownChart(hash) => {
                ensure!(body["status"] == "unknown", "the status {} of {hash}", body["status"]);
                ensure!(body["chartHash"] == hash.to_string(), "another chart than {hash}");
            }
            Self::List => ensure!(body["items"].is_array() && body["total"].is_u64(), "no page"),
            _ => ensure!(body["charts"].is_array(), "no chartset"),
        }
        Ok(())
    }
}

impl Received<'_> {
    fn check_length(&self, bytes: u64) -> Result<()> {
        ensure!(self.body.len() as u64 == bytes, "{} bytes instead of {bytes}", self.body.len());
        Ok(())
    }
}
