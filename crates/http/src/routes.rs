//! The routes of the public API.

use axum::routing::MethodRouter;
use chart_index_ratelimit::Group;

use crate::HttpRateLimiter;

/// Routes of the public API, each with the rate limit of its group.
#[derive(Debug, Clone)]
pub struct Routes<S = ()> {
    routes: Vec<Route<S>>,
    rate_limiter: HttpRateLimiter,
}

/// The handlers of a template.
#[derive(Debug, Clone)]
pub(crate) struct Route<S = ()> {
    /// Such as `/api/charts/{hash}`.
    pub(crate) template: &'static str,
    pub(crate) group: Group,
    pub(crate) handlers: MethodRouter<S>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes. Requests will be counted by this limiter.
    #[must_use]
    pub fn new(rate_limiter: &HttpRateLimiter) -> Self {
        Self { routes: Vec::new(), rate_limiter: rate_limiter.clone() }
    }

    /// Adds a route for GET and HEAD. The template, such as `/api/charts/{hash}`, is also its name in metrics and spans. It
    /// has at most one parameter.
    #[must_use]
    pub fn route(mut self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.routes.push(Route { template, group, handlers });
        self
    }

    /// The template of each route, in the order in which they were added.
    pub fn templates(&self) -> impl Iterator<Item = &'static str> {
        self.routes.iter().map(|route| route.template)
    }

    /// Adds the routes of another service, which must have the same limiter.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.routes.extend(other.routes);
        self
    }

    /// Provides the state of the handlers.
    #[must_use]
    pub fn with_state(self, state: S) -> Routes {
        let with_state = |Route { template, group, handlers }: Route<S>| Route {
            template,
            group,
            handlers: handlers.with_state(state.clone()),
        };
        Routes { routes: self.routes.into_iter().map(with_state).collect(), rate_limiter: self.rate_limiter }
    }
}

impl Routes {
    /// The limiter that counts the requests.
    pub(crate) const fn rate_limiter(&self) -> &HttpRateLimiter {
        &self.rate_limiter
    }

    /// Each route, in the order in which they were added.
    pub(crate) fn all(&self) -> &[Route] {
        &self.routes
    }

    /// The limiter, and each route.
    pub(crate) fn into_parts(self) -> (HttpRateLimiter, Vec<Route>) {
        (self.rate_limiter, self.routes)
    }
}
