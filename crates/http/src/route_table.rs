//! Finds the route of a request.

use axum::extract::Request;
use axum::response::Response;
use axum::routing::MethodRouter;
use chart_index_ratelimit::Group;
use tower::Service;

use crate::method_label::MethodLabel;
use crate::routes::Route;
use crate::{ApiError, Resource};

/// The routes of the public listener, by path.
///
/// `axum::Router` would match the path once more, after the limits and the telemetry need to know the route, and copy its
/// parameters: a tenth of the instructions of a cached lookup (`benchmarks/results/2026-11-22-hot-path.md`).
#[derive(Debug)]
pub(crate) struct RouteTable {
    /// The index of a route by its template.
    matcher: matchit::Router<usize>,
    routes: Vec<Route>,
}

/// The route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedRoute {
    /// Its index in [`Routes::all`](crate::Routes::all).
    pub(crate) index: usize,
    /// Such as `/api/charts/{hash}`.
    pub(crate) template: &'static str,
    pub(crate) group: Group,
    /// Whether its requests have a rate limit.
    pub(crate) is_limited: bool,
}

impl MatchedRoute {
    /// The parameter in a path that matches the template, as it was sent; `None` if the template has none.
    pub(crate) fn parameter(self, path: &str) -> Option<&str> {
        path.get(self.template.find('{')?..)?.split('/').next()
    }
}

impl RouteTable {
    /// A table of these routes.
    ///
    /// # Panics
    ///
    /// Two templates match the same paths.
    #[expect(clippy::expect_used, reason = "the templates are constants")]
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        let mut matcher = matchit::Router::new();
        for (index, route) in routes.iter().enumerate() {
            matcher.insert(route.template, index).expect("no other template matches the same paths");
        }
        Self { matcher, routes }
    }

    /// The route that handles a request.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if its path has none, [`ApiError::MethodNotAllowed`] if its method has none.
    pub(crate) fn find(&self, request: &Request) -> Result<MatchedRoute, ApiError> {
        let found = self.matcher.at(request.uri().path());
        let index = found.map_err(|_| ApiError::NotFound(Resource::Endpoint)).map(|found| *found.value)?;
        if !MethodLabel::new(request.method()).has_routes() {
            return Err(ApiError::MethodNotAllowed);
        }
        let Route { template, group, is_limited, .. } = self.routes[index];
        Ok(MatchedRoute { index, template, group, is_limited })
    }

    /// Calls the handler of a route.
    pub(crate) async fn call(&self, route: MatchedRoute, request: Request) -> Response {
        let mut handlers: MethodRouter = self.routes[route.index].handlers.clone();
        let Ok(response) = handlers.call(request).await;
        response
    }
}
