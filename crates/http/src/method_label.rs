//! Request methods as labels.

use axum::http::Method;
use strum::{IntoStaticStr, VariantArray};

/// The method of a request, one of a closed set: clients may send any token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str, serialize_all = "UPPERCASE")]
pub(crate) enum MethodLabel {
    Get,
    Head,
    Post,
    Options,
    #[strum(serialize = "_OTHER")]
    Other,
}

impl MethodLabel {
    pub(crate) fn new(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::POST => Self::Post,
            Method::OPTIONS => Self::Options,
            _ => Self::Other,
        }
    }

    /// Whether routes handle requests with this method.
    pub(crate) const fn has_routes(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Post)
    }
}
