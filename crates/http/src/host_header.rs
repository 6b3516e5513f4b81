//! Validation of the `Host` header (RFC 9112, section 3.2).

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Version};

use crate::ApiError;

/// Rejects what a server must respond to with 400: an HTTP/1.1 request without `Host`, and any request with
/// more than one or an invalid one.
pub(crate) fn check(request: &Request) -> Result<(), ApiError> {
    let mut values = request.headers().get_all(HOST).iter();
    match (values.next(), values.next()) {
        (Some(host), None) if is_plain(host) || is_valid(host) => Ok(()),
        (None, _) if request.version() < Version::HTTP_11 => Ok(()),
        _ => Err(ApiError::BadHost),
    }
}

/// Whether it is letters, digits, `.` and `-`, with or without a port. Almost every host is, and parsing it
/// would take longer.
fn is_plain(host: &HeaderValue) -> bool {
    let host = host.as_bytes();
    let name = host.iter().position(|byte| *byte == b':').unwrap_or(host.len());
    let (name, port) = host.split_at(name);
    // Five digits may be above 65535.
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && !name.is_empty()
        && matches!(port.len(), 0..=5)
        && port.iter().skip(1).all(u8::is_ascii_digit)
}

/// `Host = uri-host [ ":" port ]` (RFC 9110, section 7.2). The host of an `http` URI is not empty (section
/// 4.2.1).
fn is_valid(host: &HeaderValue) -> bool {
    let Ok(authority) = Authority::try_from(host.as_bytes()) else { return false };
    let name = authority.host();
    // `Authority` also accepts user information, which `Host` must not have.
    let port = authority.as_str().strip_prefix(name).map(|rest| rest.strip_prefix(':').unwrap_or(rest));
    !name.is_empty() && port.is_some_and(|port| port.is_empty() || port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_a_name_or_address_with_an_optional_port() {
        for valid in
            ["example.org", "example.org:8080", "127.0.0.1:80", "[::1]", "[2001:db8::1]:443", "a_b-c", "a:"]
        {
            assert!(is_valid(&HeaderValue::from_static(valid)), "{valid}");
        }
        for plain in ["example.org", "example.org:8080", "127.0.0.1:80", "a:"] {
            let host = HeaderValue::from_static(plain);
            assert!(is_plain(&host) && is_valid(&host), "{plain}");
        }
        let invalid = [
            "", ":80", "a b", "user@a", "a/b", "http://a", "a:port", "a:1:2", "a:65536", "[::1", "::1",
            "a?b", "a:80x",
        ];
        for invalid in invalid {
            let host = HeaderValue::from_static(invalid);
            assert!(!is_valid(&host) && !is_plain(&host), "{invalid}");
        }
        assert!(!is_valid(&HeaderValue::from_bytes(b"\xff").unwrap()));
    }
}
