//! Exports of the catalogue: their names, their files and their manifest (docs/formats/exports.md).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Lineage;
use crate::identity::impl_hex_bytes;

/// The length of the time at the start of a name: `20261122T182049Z`.
const TIME_LENGTH: usize = 16;

/// The name of an export: the time of its snapshot in UTC and its sequence, such as `20261122T182049Z-12345`.
/// Names sort by time, then by sequence: the last one is the newest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExportName {
    time: String,
    sequence: u64,
}

impl ExportName {
    /// The last sequence of the change feed that the export includes.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl fmt::Display for ExportName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.time, self.sequence)
    }
}

impl From<ExportName> for String {
    fn from(name: ExportName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for ExportName {
    type Error = MalformedExportName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for ExportName {
    type Err = MalformedExportName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (time, sequence) = text.split_once('-').ok_or(MalformedExportName)?;
        let has_digits = |(index, byte): (usize, u8)| match index {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        };
        if time.len() != TIME_LENGTH || !time.bytes().enumerate().all(has_digits) {
            return Err(MalformedExportName);
        }
        let sequence = sequence.parse().map_err(|_| MalformedExportName)?;
        let name = Self { time: time.to_owned(), sequence };
        // Equal, so that an export has one name: no sign, no leading zeros.
        if name.to_string() == text { Ok(name) } else { Err(MalformedExportName) }
    }
}

/// The text is not the name of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of an export is its time and its sequence, such as 20261122T182049Z-12345")]
pub struct MalformedExportName;

/// A BLAKE3 digest of the content of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDigest([u8; 32]);

impl_hex_bytes!(FileDigest, MalformedDigest, 32, "a digest");

impl From<blake3::Hash> for FileDigest {
    fn from(digest: blake3::Hash) -> Self {
        Self(*digest.as_bytes())
    }
}

/// A file of an export that its manifest names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ExportFile {
    /// The chartsets, one JSON object a line.
    #[serde(rename = "chartsets.ndjson.zst")]
    Chartsets,
    /// The ROX files, in a tar archive.
    #[serde(rename = "rox.tar")]
    Rox,
    /// The catalogue for SQLite (docs/formats/catalogue.md).
    #[serde(rename = "catalogue.sqlite.zst")]
    Catalogue,
    /// The charts of the catalogue, as a Parquet file.
    #[serde(rename = "catalogue.parquet")]
    Parquet,
}

impl ExportFile {
    /// Every file, in the order of a manifest.
    pub const ALL: [Self; 4] = [Self::Chartsets, Self::Rox, Self::Catalogue, Self::Parquet];

    /// The name in the folder of the export, and in its URL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chartsets => "chartsets.ndjson.zst",
            Self::Rox => "rox.tar",
            Self::Catalogue => "catalogue.sqlite.zst",
            Self::Parquet => "catalogue.parquet",
        }
    }
}

/// Describes the files of an export, so that a reader can verify them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportManifest {
    /// Version of the format of the files: [`ExportManifest::FORMAT_VERSION`].
    pub format_version: u32,
    /// The database that numbered the changes; omitted by programs before this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lineage: Option<Lineage>,
    /// The last number of the change feed in the snapshot.
    pub sequence: u64,
    /// When the snapshot was taken, in Unix epoch milliseconds.
    pub exported_at_ms: i64,
    /// Number of chartsets in the snapshot.
    pub chartsets: u64,
    /// Number of distinct charts.
    pub charts: u64,
    /// Number of charts that are left out, since their ROX files are lost; omitted if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_charts: u64,
    /// How to reach the operator of the index, if the operator says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub contact: Option<String>,
    /// The licence of the records, an SPDX identifier or a URL, if the operator says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub license: Option<String>,
    /// The URL of the terms of use, if the operator has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub terms: Option<String>,
    /// All files but the manifest itself and its signature.
    pub files: Vec<ExportedFile>,
}

/// A file of an export, as its manifest describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedFile {
    /// Which file it is.
    pub name: ExportFile,
    /// Size in bytes.
    pub bytes: u64,
    /// The digest of its whole content.
    pub blake3: FileDigest,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ExportManifest {
    /// The name of the file that holds the manifest.
    pub const FILE: &str = "manifest.json";
    /// The name of the file that holds the signature of the manifest, if it is signed.
    pub const SIGNATURE_FILE: &str = "manifest.json.minisig";
    /// The version of the format that this program writes and reads.
    pub const FORMAT_VERSION: u32 = 1;

    /// The description of a file, if the export has it.
    #[must_use]
    pub fn file(&self, name: ExportFile) -> Option<&ExportedFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["20261122T182049Z-12345", "20261122T182049Z-0"] {
            assert_eq!(name.parse::<ExportName>().unwrap().to_string(), name);
        }
        for malformed in [
            "",
            "latest",
            "..",
            "20261122T182049Z",
            "20261122T182049Z-",
            "20261122T182049Z-01",
            "20261122T182049Z-+1",
            "20261122T182049Z--1",
            "20261122T182049Z-1-2",
            "20261122T182049Z-1/..",
            "20261122t182049z-1",
            "2026-11-22T182049Z-1",
            "20261122T182049Z-99999999999999999999",
            ".20261122T182049Z-1",
        ] {
            assert_eq!(malformed.parse::<ExportName>(), Err(MalformedExportName), "{malformed:?}");
        }
    }

    #[test]
    fn names_sort_by_time_then_by_sequence() {
        let mut names = ["20261122T182049Z-10", "20261122T182049Z-9", "20261121T182049Z-11"]
            .map(|name| name.parse::<ExportName>().unwrap());
        names.sort();
        assert_eq!(
            names.map(|name| name.to_string()),
            ["20261121T182049Z-11", "20261122T182049Z-9", "20261122T182049Z-10"]
        );
    }

    #[test]
    fn manifest_is_read_as_it_is_written() {
        let json = format!(
            r#"{{"formatVersion":1,"lineage":"0102030405060708","sequence":7,"exportedAtMs":5,"chartsets":1,"charts":2,"files":[{{"name":"rox.tar","bytes":9,"blake3":"{}"}}]}}"#,
            "0a".repeat(32)
        );
        let manifest: ExportManifest = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&manifest).unwrap(), json);
        assert_eq!(manifest.file(ExportFile::Rox).unwrap().blake3, FileDigest::from_bytes([10; 32]));
        assert_eq!(manifest.file(ExportFile::Chartsets), None);
        for file in ExportFile::ALL {
            assert_eq!(serde_json::to_value(file).unwrap(), file.name());
        }
        for malformed in [json.replace("rox.tar", "../rox.tar"), json.replace("0a", "0A")] {
            assert!(serde_json::from_str::<ExportManifest>(&malformed).is_err(), "{malformed}");
        }
    }
}
