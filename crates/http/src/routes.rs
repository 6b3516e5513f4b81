//! The routes of the public API.

use axum::Router;
use axum::routing::MethodRouter;
use chart_index_ratelimit::Group;

use crate::HttpRateLimiter;
use crate::route_table::RouteTable;

/// Routes of the public API, each with the rate limit of its group.
#[derive(Debug, Clone)]
pub struct Routes<S = ()> {
    router: Router<S>,
    rate_limiter: HttpRateLimiter,
    /// What `axum::Router` does not list.
    templates: Vec<(&'static str, Group)>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes. Requests will be counted by this limiter.
    #[must_use]
    pub fn new(rate_limiter: &HttpRateLimiter) -> Self {
        Self { router: Router::new(), rate_limiter: rate_limiter.clone(), templates: Vec::new() }
    }

    /// Adds a route for GET and HEAD. The template, such as `/api/charts/{hash}`, is also its name in metrics and spans.
    #[must_use]
    pub fn route(mut self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.router = self.router.route(template, handlers);
        self.templates.push((template, group));
        self
    }

    /// Adds the routes of another service, which must have the same limiter.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.templates.extend(other.templates);
        self
    }

    /// Provides the state of the handlers.
    #[must_use]
    pub fn with_state(self, state: S) -> Routes {
        let Self { router, rate_limiter, templates } = self;
        Routes { router: router.with_state(state), rate_limiter, templates }
    }
}

impl Routes {
    /// The limiter that counts the requests.
    pub(crate) const fn rate_limiter(&self) -> &HttpRateLimiter {
        &self.rate_limiter
    }

    /// The templates, with the group of each.
    pub(crate) fn templates(&self) -> &[(&'static str, Group)] {
        &self.templates
    }

    /// The handlers, and what finds the route of a request.
    pub(crate) fn into_handlers_and_table(self) -> (Router, RouteTable) {
        let table = RouteTable::new(&self.templates);
        (self.router, table)
    }
}
