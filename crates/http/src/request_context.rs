//! What a handler needs to know of its request besides the request itself.

use axum::http::request::Parts;

use crate::rate_limit::LimitedClient;
use crate::route_table::MatchedRoute;

/// An extension of the request, which extractors read.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) route: MatchedRoute,
    /// The client to count the request against, if the handler does that.
    pub(crate) client: Option<LimitedClient>,
}

impl RequestContext {
    /// The parameter in the path of the request, as it was sent; `None` if its route has none.
    pub(crate) fn path_parameter(parts: &Parts) -> Option<&str> {
        parts.extensions.get::<Self>()?.route.parameter(parts.uri.path())
    }

    /// The client to count the request against, the first time.
    pub(crate) fn take_client(parts: &mut Parts) -> Option<LimitedClient> {
        parts.extensions.get_mut::<Self>()?.client.take()
    }
}
