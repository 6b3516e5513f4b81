//! The routes of the public API, and which of them handles a request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::MethodRouter;
use chart_index_ratelimit::Group;
use futures_util::future::BoxFuture;
use tower::Service;

use crate::method_label::MethodLabel;
use crate::{AllowedMethods, ApiError, CdnConfig, ErrorPages, Resource};

/// Routes of the public API, each with the group of its rate limit.
#[derive(Debug, Clone)]
pub struct Routes<S = ()> {
    all: Vec<Route<S>>,
    error_pages: Option<ErrorPages>,
    has_tags: bool,
}

/// Long polling: lets requests wait before they are handled.
pub trait LongPolling: fmt::Debug + Send + Sync {
    /// What the request waits for; `None` to handle it at once.
    fn wait(&self, request: &Request) -> Option<BoxFuture<'static, ()>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteMethods {
    /// GET and HEAD.
    Read,
    Post,
}

/// The handlers of a template.
#[derive(Debug, Clone)]
pub(crate) struct Route<S = ()> {
    /// Such as `/api/charts/{hash}`.
    pub(crate) template: &'static str,
    pub(crate) methods: RouteMethods,
    pub(crate) group: Group,
    pub(crate) is_limited: bool,
    pub(crate) long_polling: Option<Arc<dyn LongPolling>>,
    pub(crate) handlers: MethodRouter<S>,
}

impl<S> Default for Routes<S> {
    fn default() -> Self {
        Self { all: Vec::new(), error_pages: None, has_tags: false }
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route for GET and HEAD. The template, such as `/api/charts/{hash}`, is also its name in metrics
    /// and spans. It has at most one parameter.
    #[must_use]
    pub fn route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(template, RouteMethods::Read, group, handlers)
    }

    /// Adds a route for POST of JSON, see [`JsonRequest`](crate::JsonRequest). Another route may have the same
    /// template, for other methods.
    #[must_use]
    pub fn post_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(template, RouteMethods::Post, group, handlers)
    }

    /// Adds a route for GET and HEAD whose requests have no rate limit: they read nothing but the memory of the
    /// process. They are in flight with those of the group.
    #[must_use]
    pub fn unlimited_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        let mut routes = self.route(group, template, handlers);
        if let Some(route) = routes.all.last_mut() {
            route.is_limited = false;
        }
        routes
    }

    /// Adds a route for GET and HEAD whose requests may wait. A request is counted before it waits. It is in
    /// flight, and its deadline and its duration begin, when it is handled.
    #[must_use]
    pub fn long_polling_route(
        self,
        group: Group,
        template: &'static str,
        long_polling: impl LongPolling + 'static,
        handlers: MethodRouter<S>,
    ) -> Self {
        let mut routes = self.route(group, template, handlers);
        if let Some(route) = routes.all.last_mut() {
            route.long_polling = Some(Arc::new(long_polling));
        }
        routes
    }

    fn push(
        mut self,
        template: &'static str,
        methods: RouteMethods,
        group: Group,
        handlers: MethodRouter<S>,
    ) -> Self {
        self.all.push(Route { template, methods, group, is_limited: true, long_polling: None, handlers });
        self
    }

    /// Adds pages that show errors to people, for paths outside of the API.
    #[must_use]
    pub fn with_error_pages(mut self, error_pages: ErrorPages) -> Self {
        self.error_pages = Some(error_pages);
        self
    }

    /// Adds a tag for a purged CDN to responses that have none from [`CdnHeaders`](crate::CdnHeaders).
    #[must_use]
    pub fn with_tags(mut self, cdn: CdnConfig) -> Self {
        self.has_tags = cdn.cdn_max_age_seconds.is_some();
        self
    }

    /// The template of each route, in the order in which they were added.
    pub fn templates(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().map(|route| route.template)
    }

    /// Adds the routes of another service.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.all.extend(other.all);
        self.error_pages = self.error_pages.or(other.error_pages);
        self.has_tags |= other.has_tags;
        self
    }

    /// Provides the state of the handlers.
    #[must_use]
    pub fn with_state(self, state: S) -> Routes {
        let with_state = |route: Route<S>| Route {
            template: route.template,
            methods: route.methods,
            group: route.group,
            is_limited: route.is_limited,
            long_polling: route.long_polling,
            handlers: route.handlers.with_state(state.clone()),
        };
        Routes {
            all: self.all.into_iter().map(with_state).collect(),
            error_pages: self.error_pages,
            has_tags: self.has_tags,
        }
    }
}

impl Routes {
    /// Each route, in the order in which they were added.
    pub(crate) fn all(&self) -> &[Route] {
        &self.all
    }

    /// The parts that [`HttpService`](crate::HttpService) is made of.
    pub(crate) fn into_parts(self) -> (Option<ErrorPages>, bool, Vec<Route>) {
        (self.error_pages, self.has_tags, self.all)
    }
}

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

/// The route that handles a request, an extension of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedRoute {
    /// Its index in [`Routes::all`](crate::Routes::all).
    pub(crate) index: usize,
    /// Such as `/api/charts/{hash}`.
    pub(crate) template: &'static str,
    pub(crate) group: Group,
    /// Whether its requests are counted.
    pub(crate) is_limited: bool,
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
        let Route { template, methods, group, is_limited, .. } = self.routes[index];
        Ok(MatchedRoute { index, template, group, is_limited, has_body: methods == RouteMethods::Post })
    }

    /// What a request waits for before it is handled, if anything.
    pub(crate) fn wait(&self, route: MatchedRoute, request: &Request) -> Option<BoxFuture<'static, ()>> {
        self.routes[route.index].long_polling.as_ref()?.wait(request)
    }

    pub(crate) async fn call(&self, route: MatchedRoute, request: Request) -> Response {
        let mut handlers: MethodRouter = self.routes[route.index].handlers.clone();
        let Ok(response) = handlers.call(request).await;
        response
    }
}
