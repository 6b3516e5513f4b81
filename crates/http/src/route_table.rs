//! Finds the route of a request, for its limits and its telemetry.

use axum::extract::Request;
use chart_index_ratelimit::Group;

use crate::method_label::MethodLabel;

/// The routes of the public listener, by path. `axum::Router` finds the handler with the same matcher; it tells which route
/// that is only to the handler.
#[derive(Debug, Clone)]
pub(crate) struct RouteTable(matchit::Router<MatchedRoute>);

/// The route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedRoute {
    /// Its index in [`Routes::templates`](crate::Routes::templates).
    pub(crate) index: usize,
    /// Such as `/api/charts/{hash}`.
    pub(crate) template: &'static str,
    pub(crate) group: Group,
}

impl RouteTable {
    pub(crate) fn new(templates: &[(&'static str, Group)]) -> Self {
        let mut router = matchit::Router::new();
        for (index, &(template, group)) in templates.iter().enumerate() {
            // A template that conflicts with another panics in `axum::Router` before.
            let _ = router.insert(template, MatchedRoute { index, template, group });
        }
        Self(router)
    }

    /// The route that handles a request; `None` if its path or its method has none.
    pub(crate) fn find(&self, request: &Request) -> Option<MatchedRoute> {
        let found = self.0.at(request.uri().path()).ok()?;
        MethodLabel::new(request.method()).has_routes().then_some(*found.value)
    }
}
