//! The routes of the public API.

use axum::routing::MethodRouter;
use chart_index_ratelimit::Group;

use crate::rate_limit::RateLimiting;
use crate::{ErrorPages, HttpRateLimiter};

/// Routes of the public API, each with the rate limit of its group.
#[derive(Debug, Clone)]
pub struct Routes<S = ()> {
    all: Vec<Route<S>>,
    rate_limiter: HttpRateLimiter,
    error_pages: Option<ErrorPages>,
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
    pub(crate) rate_limiting: RateLimiting,
    pub(crate) handlers: MethodRouter<S>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes. Requests will be counted by this limiter.
    #[must_use]
    pub fn new(rate_limiter: &HttpRateLimiter) -> Self {
        Self { all: Vec::new(), rate_limiter: rate_limiter.clone(), error_pages: None }
    }

    /// Adds a route for GET and HEAD. The template, such as `/api/charts/{hash}`, is also its name in metrics
    /// and spans. It has at most one parameter. A request is counted before the handler is called.
    #[must_use]
    pub fn route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(template, RouteMethods::Read, (group, RateLimiting::BeforeHandler), handlers)
    }

    /// Adds a route for GET and HEAD whose handler counts the request with its read of the cache: it extracts
    /// [`RateLimited`](crate::RateLimited) or [`RateLimitCheck`](crate::RateLimitCheck).
    #[must_use]
    pub fn cached_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(template, RouteMethods::Read, (group, RateLimiting::InHandler), handlers)
    }

    /// Adds a route for POST of JSON, see [`JsonRequest`](crate::JsonRequest). Another route may have the same
    /// template, for other methods.
    #[must_use]
    pub fn post_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(template, RouteMethods::Post, (group, RateLimiting::BeforeHandler), handlers)
    }

    /// Adds a route for GET and HEAD whose requests have no rate limit: they read nothing but the memory of the
    /// process. They are in flight with those of the group.
    #[must_use]
    pub fn unlimited_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(template, RouteMethods::Read, (group, RateLimiting::Never), handlers)
    }

    fn push(
        mut self,
        template: &'static str,
        methods: RouteMethods,
        (group, rate_limiting): (Group, RateLimiting),
        handlers: MethodRouter<S>,
    ) -> Self {
        self.all.push(Route { template, methods, group, rate_limiting, handlers });
        self
    }

    /// Adds pages that show errors to people, for paths outside of the API.
    #[must_use]
    pub fn with_error_pages(mut self, error_pages: ErrorPages) -> Self {
        self.error_pages = Some(error_pages);
        self
    }

    /// The template of each route, in the order in which they were added.
    pub fn templates(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().map(|route| route.template)
    }

    /// Adds the routes of another service, which must have the same limiter.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.all.extend(other.all);
        self.error_pages = self.error_pages.or(other.error_pages);
        self
    }

    /// Provides the state of the handlers.
    #[must_use]
    pub fn with_state(self, state: S) -> Routes {
        let with_state = |Route { template, methods, group, rate_limiting, handlers }: Route<S>| Route {
            template,
            methods,
            group,
            rate_limiting,
            handlers: handlers.with_state(state.clone()),
        };
        Routes {
            all: self.all.into_iter().map(with_state).collect(),
            rate_limiter: self.rate_limiter,
            error_pages: self.error_pages,
        }
    }
}

impl Routes {
    pub(crate) const fn rate_limiter(&self) -> &HttpRateLimiter {
        &self.rate_limiter
    }

    /// Each route, in the order in which they were added.
    pub(crate) fn all(&self) -> &[Route] {
        &self.all
    }

    /// The parts that [`HttpService`](crate::HttpService) is made of.
    pub(crate) fn into_parts(self) -> (HttpRateLimiter, Option<ErrorPages>, Vec<Route>) {
        (self.rate_limiter, self.error_pages, self.all)
    }
}
