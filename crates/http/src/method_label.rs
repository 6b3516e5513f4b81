//! Request methods as labels.

use axum::http::Method;

/// The method of a request, one of a closed set: clients may send any token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MethodLabel {
    Get,
    Head,
    Post,
    Options,
    Other,
}

impl MethodLabel {
    /// Every label, in the order of the enum. The first three are those that routes handle.
    pub(crate) const ALL: [Self; 5] = [Self::Get, Self::Head, Self::Post, Self::Options, Self::Other];

    pub(crate) fn new(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::POST => Self::Post,
            Method::OPTIONS => Self::Options,
            _ => Self::Other,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Options => "OPTIONS",
            Self::Other => "_OTHER",
        }
    }

    /// Whether routes handle requests with this method.
    pub(crate) const fn has_routes(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Post)
    }
}
