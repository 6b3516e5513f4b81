//! The routes of the public API.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use axum::{Extension, Router, routing};
use chart_index_ratelimit::Group;
use futures_util::future::BoxFuture;
use tower::{Layer, Service, ServiceBuilder};

use crate::{AllowedMethods, ApiError, CdnConfig, ErrorPages, Resource, cors};

/// Routes of the public API, each with the group of its rate limit.
#[derive(Debug, Clone)]
pub struct Routes<S = ()> {
    all: Vec<(Route, MethodRouter<S>)>,
    pub(crate) error_pages: Option<ErrorPages>,
    pub(crate) has_tags: bool,
}

/// Long polling: lets requests wait before they are handled.
pub trait LongPolling: fmt::Debug + Send + Sync {
    /// What the request waits for; `None` to handle it at once.
    fn wait(&self, request: &Request) -> Option<BoxFuture<'static, ()>>;
}

/// The route that handles a request, as an `Arc` an extension of it. Requests with another method than that of
/// a route have none.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Such as `/api/charts/{hash}`.
    pub(crate) template: &'static str,
    pub(crate) group: Group,
    /// Whether its requests are counted.
    pub(crate) is_limited: bool,
    /// Whether its requests have a body, which is JSON: POST, in place of GET and HEAD.
    pub(crate) has_body: bool,
    /// Whether pages of other sites may show its responses in a frame, errors as well.
    pub(crate) is_framed: bool,
    pub(crate) long_polling: Option<Arc<dyn LongPolling>>,
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
    /// and spans.
    #[must_use]
    pub fn route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(Route::new(group, template), handlers)
    }

    /// Adds a route for GET and HEAD whose pages other sites may show in a frame.
    #[must_use]
    pub fn framed_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(Route { is_framed: true, ..Route::new(group, template) }, handlers)
    }

    /// Adds a route for POST of JSON, see [`JsonRequest`](crate::JsonRequest). No other route has the same
    /// template.
    #[must_use]
    pub fn post_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(Route { has_body: true, ..Route::new(group, template) }, handlers)
    }

    /// Adds a route for GET and HEAD whose requests have no rate limit: they read nothing but the memory of the
    /// process. They are in flight with those of the group.
    #[must_use]
    pub fn unlimited_route(self, group: Group, template: &'static str, handlers: MethodRouter<S>) -> Self {
        self.push(Route { is_limited: false, ..Route::new(group, template) }, handlers)
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
        let long_polling: Option<Arc<dyn LongPolling>> = Some(Arc::new(long_polling));
        self.push(Route { long_polling, ..Route::new(group, template) }, handlers)
    }

    fn push(mut self, route: Route, handlers: MethodRouter<S>) -> Self {
        self.all.push((route, handlers));
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

    /// The method, the template and the group of each route, in the order in which they were added.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, &'static str, Group)> {
        let method = |route: &Route| if route.has_body { "POST" } else { "GET" };
        self.all.iter().map(move |(route, _)| (method(route), route.template, route.group))
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
        let all = self.all.into_iter().map(|(route, handlers)| (route, handlers.with_state(state.clone())));
        Routes { all: all.collect(), error_pages: self.error_pages, has_tags: self.has_tags }
    }
}

impl Routes {
    /// A router with these layers around each route, whose [`Route`] is an extension of the request by then,
    /// and around the responses to requests without a route.
    pub(crate) fn into_router<L>(self, layers: L) -> Router
    where
        L: Layer<routing::Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request, Error = Infallible, Response: IntoResponse, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let mut router = Router::new();
        let mut allowed = BTreeMap::new();
        for (route, handlers) in self.all {
            let methods = allowed.entry(route.template).or_insert(AllowedMethods::Read);
            if route.has_body {
                *methods = AllowedMethods::Post;
            }
            let template = route.template;
            let route = Extension(Arc::new(route));
            let layers = ServiceBuilder::new().layer(route).layer(layers.clone());
            router = router.route(template, handlers.route_layer(layers));
        }
        for (template, methods) in allowed {
            let other_method = any(async move |request: Request| method_not_allowed(&request, methods));
            router = router.route(template, other_method.layer(layers.clone()));
        }
        router.fallback_service(any(no_endpoint).layer(layers))
    }
}

/// Responds to a request of a path that has routes for these methods only.
fn method_not_allowed(request: &Request, allowed: AllowedMethods) -> Result<Response, ApiError> {
    cors::preflight(request, allowed).ok_or(ApiError::MethodNotAllowed(allowed))
}

async fn no_endpoint(request: Request) -> Result<Response, ApiError> {
    let ends_with_slash = request.uri().path().ends_with('/');
    let resource = if ends_with_slash { Resource::EndpointWithSlash } else { Resource::Endpoint };
    cors::preflight(&request, AllowedMethods::Read).ok_or(ApiError::NotFound(resource))
}

impl Route {
    fn new(group: Group, template: &'static str) -> Self {
        Self { template, group, is_limited: true, has_body: false, is_framed: false, long_polling: None }
    }
}
