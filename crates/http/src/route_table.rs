//! Finds the route of a request.

use std::collections::BTreeMap;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::MethodRouter;
use chart_index_ratelimit::Group;
use tower::Service;

use crate::method_label::MethodLabel;
use crate::rate_limit::RateLimiting;
use crate::routes::{Route, RouteMethods};
use crate::{AllowedMethods, ApiError, Resource};

/// The routes of the public listener, by path.
///
/// `axum::Router` would match the path once more, after the limits and the telemetry need to know the route,
/// and copy its parameters: a tenth of the instructions of a cached lookup
/// (`benchmarks/results/2026-11-22-hot-path.md`).
#[derive(Debug)]
pub(crate) struct RouteTable {
    matcher: matchit::Router<PathRoutes>,
    routes: Vec<Route>,
}

/// The routes of a template, by their index.
#[derive(Debug, Clone, Copy, Default)]
struct PathRoutes {
    read: Option<usize>,
    post: Option<usize>,
}

impl PathRoutes {
    const fn of_method(self, method: MethodLabel) -> Option<usize> {
        match method {
            MethodLabel::Get | MethodLabel::Head => self.read,
            MethodLabel::Post => self.post,
            MethodLabel::Options | MethodLabel::Other => None,
        }
    }

    /// The methods to name in errors. A GET of a path with POST only means that the path is no hash.
    const fn allowed(self) -> AllowedMethods {
        if self.post.is_some() { AllowedMethods::Post } else { AllowedMethods::Read }
    }
}

/// The route that handles a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedRoute {
    /// Its index in [`Routes::all`](crate::Routes::all).
    pub(crate) index: usize,
    /// Such as `/api/charts/{hash}`.
    pub(crate) template: &'static str,
    pub(crate) group: Group,
    pub(crate) rate_limiting: RateLimiting,
    /// Whether its requests have a body, which is JSON.
    pub(crate) has_body: bool,
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
    /// Two templates match the same paths, or two routes handle the same requests.
    #[expect(clippy::expect_used, reason = "the templates are constants")]
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        let mut by_template: BTreeMap<_, PathRoutes> = BTreeMap::new();
        for (index, route) in routes.iter().enumerate() {
            let of_path = by_template.entry(route.template).or_default();
            let slot = match route.methods {
                RouteMethods::Read => &mut of_path.read,
                RouteMethods::Post => &mut of_path.post,
            };
            assert_eq!(slot.replace(index), None, "two routes for {}", route.template);
        }
        let mut matcher = matchit::Router::new();
        for (template, of_path) in by_template {
            matcher.insert(template, of_path).expect("no other template matches the same paths");
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
        let of_path = *found.map_err(|_| ApiError::NotFound(Resource::Endpoint))?.value;
        let index = of_path.of_method(MethodLabel::new(request.method()));
        let index = index.ok_or_else(|| ApiError::MethodNotAllowed(of_path.allowed()))?;
        let Route { template, methods, group, rate_limiting, .. } = self.routes[index];
        Ok(MatchedRoute { index, template, group, rate_limiting, has_body: methods == RouteMethods::Post })
    }

    pub(crate) async fn call(&self, route: MatchedRoute, request: Request) -> Response {
        let mut handlers: MethodRouter = self.routes[route.index].handlers.clone();
        let Ok(response) = handlers.call(request).await;
        response
    }
}
