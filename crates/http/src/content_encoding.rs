//! Content encoding: negotiation by `Accept-Encoding` (RFC 9110, section 12.5.3), and gzip.

use std::io::{self, Read, Write};

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// The smallest body to compress. A smaller one fits into one packet either way.
pub(crate) const MIN_GZIP_BYTES: usize = 1024;

/// Whether `Accept-Encoding` accepts gzip with at least the weight of the plain body. False without the header.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut identity, mut any) = (None, None, None);
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    for element in lines.flat_map(|line| line.split(',')) {
        let (coding, parameters) = element.split_once(';').unwrap_or((element, ""));
        let slot = match coding.trim() {
            "*" => &mut any,
            coding if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") => {
                &mut gzip
            }
            coding if coding.eq_ignore_ascii_case("identity") => &mut identity,
            _ => continue,
        };
        *slot = Some(quality(parameters));
    }
    let gzip = gzip.or(any).unwrap_or(0);
    gzip > 0 && gzip >= identity.unwrap_or(0)
}

/// The weight in thousandths. A malformed weight is 0: the plain body is always acceptable.
pub(crate) fn quality(parameters: &str) -> u32 {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return 1000;
    }
    let Some((_, value)) =
        parameters.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
    else {
        return 0;
    };
    let (whole, fraction) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let digits = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "0" if digits => format!("{fraction:0<3}").parse().unwrap_or(0),
        "1" if digits && fraction.bytes().all(|byte| byte == b'0') => 1000,
        _ => 0,
    }
}

/// Compresses a body at level 6 of 9. Each cached body is compressed once, so the size of all its responses
/// matters more than the time (`benchmarks/results/2026-11-21-compressed-lists.md`).
pub(crate) fn gzip(body: &[u8]) -> io::Result<Bytes> {
    gzip_at(Compression::default(), body)
}

/// Compresses a body that is sent once, at level 1.
pub(crate) fn gzip_once(body: &[u8]) -> io::Result<Bytes> {
    gzip_at(Compression::fast(), body)
}

/// Decompresses a body; `None` if it has more than `limit` bytes then.
pub(crate) fn gunzip(body: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut plain = Vec::new();
    MultiGzDecoder::new(body).take(limit as u64 + 1).read_to_end(&mut plain)?;
    Ok((plain.len() <= limit).then_some(plain))
}

fn gzip_at(level: Compression, body: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 3), level);
    encoder.write_all(body)?;
    Ok(encoder.finish()?.into())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_used_unless_the_client_prefers_identity() {
        for (lines, expected) in [
            (&[][..], false),
            (&[""], false),
            (&["gzip"], true),
            (&["GZip"], true),
            (&["x-gzip"], true),
            (&["deflate, gzip;q=1.0, *;q=0.5"], true),
            (&["br", "gzip"], true),
            (&["br, zstd"], false),
            (&["*"], true),
            (&["*;q=0"], false),
            (&["gzip;q=0"], false),
            (&["gzip;q=0, *"], false),
            (&["gzip;q=0.000"], false),
            (&["gzip;q=0.001"], true),
            (&["gzip ; q=0.5 , identity"], false),
            (&["gzip;q=0.5, identity;q=0.5"], true),
            (&["gzip;q=0.05, identity;q=0.1"], false),
            (&["identity;q=1, *;q=0"], false),
            (&["identity"], false),
            (&["gzip;q=1.5"], false),
            (&["gzip;q=high"], false),
            (&["gzip;level=9"], false),
            (&["gzipped"], false),
        ] {
            let headers =
                lines.iter().map(|line| (ACCEPT_ENCODING, HeaderValue::from_static(line))).collect();
            assert_eq!(accepts_gzip(&headers), expected, "{lines:?}");
        }
    }

    #[test]
    fn compression_is_deterministic_and_reversible() {
        let body = "a chart index ".repeat(200);
        let compressed = gzip(body.as_bytes()).unwrap();
        assert_eq!(compressed, gzip(body.as_bytes()).unwrap());
        assert_eq!(gunzip(&compressed, body.len()).unwrap().as_deref(), Some(body.as_bytes()));
        assert_eq!(gunzip(&compressed, body.len() - 1).unwrap(), None);
        let twice = [&compressed[..], &compressed[..]].concat();
        assert_eq!(gunzip(&twice, 2 * body.len()).unwrap().map(|plain| plain.len()), Some(2 * body.len()));
        for malformed in [&b""[..], b"{}", &compressed[..compressed.len() - 1], b"\x1f\x8b"] {
            assert!(gunzip(malformed, 10_000).is_err(), "{malformed:?}");
        }
    }
}
