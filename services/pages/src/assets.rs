//! The embedded assets (`build.rs`), and their handler.

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use chart_index_http::{ApiError, CachePolicy, PathParam, RequestHeaders, Resource};

/// A file of `services/pages/assets`, embedded in the program.
#[derive(Debug)]
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    /// The path in URLs: it contains a hash of the bytes.
    pub(crate) path: &'static str,
    media_type: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

/// All assets, sorted by name.
static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

#[derive(Debug, Clone, Copy)]
pub(crate) struct Assets;

impl Assets {
    /// The path of the asset that is this file of `services/pages/assets`, for templates. A test compares the
    /// names in the templates with the files.
    pub(crate) fn url(name: &str) -> &'static str {
        Self::named(name).map_or("", |asset| asset.path)
    }

    fn named(name: &str) -> Option<&'static Asset> {
        ASSETS.iter().find(|asset| asset.name == name)
    }

    /// The asset of a name in a URL, and whether the hash in the name is that of this release.
    fn requested(name: &str) -> Option<(&'static Asset, bool)> {
        let (stem, rest) = name.split_once('.')?;
        let (_hash, extension) = rest.split_once('.')?;
        let asset = Self::named(&format!("{stem}.{extension}"))?;
        Some((asset, asset.path.strip_prefix("/assets/") == Some(name)))
    }
}

/// `GET /assets/{name}`.
///
/// During a rollout a page of one release may request an asset from a replica of another one, which responds
/// with its own version, not to be cached.
pub(crate) async fn asset(PathParam(name): PathParam, headers: RequestHeaders) -> Result<Response, ApiError> {
    let (asset, is_current) = Assets::requested(&name).ok_or(ApiError::NotFound(Resource::Asset))?;
    let policy = if is_current { CachePolicy::Asset } else { CachePolicy::NoStore };
    let vary = (VARY, HeaderValue::from_static("Accept-Encoding"));
    let media_type = (CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    if !headers.accepts_gzip() {
        return Ok((policy, [media_type, vary], asset.plain).into_response());
    }
    let encoding = (CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok((policy, [media_type, vary, encoding], asset.gzip).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_a_hash_of_the_bytes() {
        let style = Assets::named("style.css").unwrap();
        let digest = blake3_hex(style.plain);
        assert_eq!(style.path, format!("/assets/style.{}.css", &digest[..12]));
        assert_eq!(Assets::url("style.css"), style.path);
        assert_eq!(Assets::url("none.css"), "");
    }

    #[test]
    fn name_of_another_release_has_the_current_asset() {
        let (asset, is_current) = Assets::requested("style.000000000000.css").unwrap();
        assert_eq!((asset.name, is_current), ("style.css", false));
        let current = asset.path.strip_prefix("/assets/").unwrap();
        assert!(Assets::requested(current).is_some_and(|(_, is_current)| is_current));
        for unknown in ["style.css", "none.000000000000.css", "", ".", "..", "style.x.js"] {
            assert!(Assets::requested(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn assets_in_templates_exist() {
        let mut names = Vec::new();
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let template = std::fs::read_to_string(path).unwrap();
                let assets = template.split("asset(\"").skip(1).filter_map(|rest| rest.split('"').next());
                names.extend(assets.map(str::to_owned));
            }
        }
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            assert!(Assets::named(&name).is_some(), "{name}");
        }
    }

    fn blake3_hex(bytes: &[u8]) -> String {
        blake3::hash(bytes).to_hex().to_string()
    }
}
