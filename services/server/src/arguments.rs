//! The command line. Every setting is a flag and an environment variable; an error about one names both.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use anyhow::Context;
use chart_index_cache::{Cache, CacheConfig, CacheConnections, CatalogueStatusSource};
use chart_index_cli::parse_milliseconds;
use chart_index_domain::ReadError;
use chart_index_http::{HttpRateLimiter, RequestLimitConfig, ResponseCache, ServerConfig};
use chart_index_ratelimit::{Limiter, LimiterConfig, Limits, TrustedProxies};
use chart_index_redis::{RedisArguments, RedisConfig, RedisConnection};
use chart_index_search::MeilisearchArguments;
use chart_index_store::{DatabaseUrl, StoreConfig};
use chart_index_telemetry::LogConfig;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// The chart index: where a chart can be downloaded, the chart itself, and the catalogue.
#[derive(Debug, Parser)]
#[command(name = "chart-index", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the public API, and health on a private listener, until SIGTERM or SIGINT.
    Serve(Box<ServeArguments>),
    /// Ask a running server on this machine how it is; the exit code is 0 when it is well, 1 when it is not.
    Healthcheck(HealthcheckArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The services to serve, separated by commas.
    #[arg(long, env = "SERVICES", value_enum, value_delimiter = ',', default_value = "lookup,browse")]
    pub(crate) services: Vec<Service>,

    /// The address of the public API. With port 0 the system chooses one; the log says which.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) admin: AdminListen,

    #[command(flatten)]
    pub(crate) store: StoreArguments,

    #[command(flatten)]
    redis: RedisArguments,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,

    /// The memory for finished answers in bytes. A quarter of it is for what is known not to be there.
    #[arg(long, env = "CACHE_BYTES", default_value = "67108864")]
    cache_bytes: NonZeroU64,

    /// The most reads of PostgreSQL in flight at once for responses that are not cached, and as many of the search
    /// engine for lists. Those above it wait for 2 seconds at most; then they are answered with 503.
    #[arg(long, env = "MAX_FILLS_IN_FLIGHT", default_value = "64")]
    max_fills_in_flight: NonZeroUsize,

    #[command(flatten)]
    pub(crate) meilisearch: MeilisearchArguments,

    /// How old, in milliseconds, the oldest change may be that a Meilisearch node does not hold; a node that lags
    /// further behind is not asked.
    #[arg(
        long = "search-max-lag-ms",
        env = "SEARCH_MAX_LAG_MS",
        value_name = "SEARCH_MAX_LAG_MS",
        default_value = "30000",
        value_parser = parse_milliseconds
    )]
    pub(crate) search_max_lag: Duration,

    #[command(flatten)]
    pub(crate) source_pages: chart_index_browse::SourcePages,

    #[command(flatten)]
    pub(crate) layers: RequestLimitConfig,

    #[command(flatten)]
    pub(crate) server: ServerConfig,

    #[command(flatten)]
    pub(crate) logging: LogConfig,
}

/// A part of the public API that can be served alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Service {
    /// Chart lookups and ROX files: `/api/charts`.
    Lookup,
    /// Chartsets and redirects: `/api/chartsets`, `/go/chartset`.
    Browse,
}

#[derive(Debug, Args)]
pub(crate) struct AdminListen {
    /// The address of the private listener, which has `/livez` and `/readyz`.
    #[arg(long, env = "ADMIN_LISTEN", default_value = "127.0.0.1:9090")]
    pub(crate) admin_listen: SocketAddr,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// The PostgreSQL database of the index, `postgres://user:password@host:port/database`.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: DatabaseUrl,

    /// The maximum number of connections to the database for requests. Two more are for health checks and for
    /// following the catalogue.
    #[arg(long, env = "DATABASE_MAX_CONNECTIONS", default_value = "16")]
    pub(crate) database_max_connections: NonZeroU32,

    /// The maximum number of searches that PostgreSQL runs concurrently, as the only engine or as the fallback of
    /// Meilisearch; at most half of the connections. Further searches wait, and are answered with 503 after 4
    /// seconds.
    #[arg(long, env = "POSTGRES_MAX_SEARCHES", default_value = "4")]
    pub(crate) postgres_max_searches: NonZeroUsize,
}

impl StoreArguments {
    pub(crate) fn config(&self) -> StoreConfig {
        StoreConfig {
            max_connections: self.database_max_connections.get(),
            max_searches: self.postgres_max_searches,
            ..StoreConfig::new(self.database_url.clone())
        }
    }
}

/// The limits of the groups, and whose word on a client's address is taken.
#[derive(Debug, Args)]
pub(crate) struct LimitArguments {
    /// The most chart lookups of an address in any 60 seconds.
    #[arg(long, env = "RATE_LIMIT_LOOKUP", default_value = "240")]
    rate_limit_lookup: NonZeroU32,

    /// The most ROX files of an address in any 60 seconds.
    #[arg(long, env = "RATE_LIMIT_ROX", default_value = "240")]
    rate_limit_rox: NonZeroU32,

    /// The most lists of an address in any 60 seconds.
    #[arg(long, env = "RATE_LIMIT_LIST", default_value = "240")]
    rate_limit_list: NonZeroU32,

    /// The most details and redirects of an address in any 60 seconds.
    #[arg(long, env = "RATE_LIMIT_DETAIL", default_value = "240")]
    rate_limit_detail: NonZeroU32,

    /// Maximum requests that no endpoint answers (404, 405, 414), per client per 60 seconds.
    #[arg(long, env = "RATE_LIMIT_OTHER", default_value = "240")]
    rate_limit_other: NonZeroU32,

    /// Networks of proxies whose `X-Forwarded-For` is believed, separated by commas.
    #[arg(long, env = "TRUSTED_PROXIES", default_value = "")]
    pub(crate) trusted_proxies: TrustedProxies,
}

impl ServeArguments {
    /// The limits and the cache of this process, which connect in the background.
    ///
    /// # Errors
    /// Redis cannot be used as it is configured.
    pub(crate) fn response_cache(
        &self,
        catalogue: CatalogueStatusSource,
    ) -> anyhow::Result<(HttpRateLimiter, ResponseCache)> {
        let redis = RedisConfig::new(self.redis.endpoint());
        let (connections, cache) =
            self.cache(redis, catalogue).context("REDIS_URL or REDIS_CLUSTER_URLS cannot be used")?;
        let config = LimiterConfig { limits: self.limits.limits(), ..LimiterConfig::default() };
        // Over the main connection of the cache: a rate limit check and a cache read take one round trip.
        let limiter = Limiter::new(config, connections.main);
        let rate_limiter = HttpRateLimiter::new(limiter, self.limits.trusted_proxies.clone());
        Ok((rate_limiter.clone(), ResponseCache::new(rate_limiter, cache)))
    }

    fn cache(
        &self,
        redis: RedisConfig,
        catalogue: CatalogueStatusSource,
    ) -> anyhow::Result<(CacheConnections, Cache<ReadError>)> {
        let connections = CacheConnections {
            main: RedisConnection::connect(redis.clone())?,
            rox: RedisConnection::connect(redis.clone())?,
        };
        let config = CacheConfig {
            bytes: self.cache_bytes.get(),
            // No request waits longer.
            fill_timeout: self.layers.request_deadline,
            max_fills: self.max_fills_in_flight,
            max_waiting_requests: max_waiting(self.layers.max_requests_in_flight),
            catalogue: Some(catalogue),
            invalidations: redis,
            ..CacheConfig::default()
        };
        let cache = Cache::new(config, connections.clone())?;
        Ok((connections, cache))
    }
}

/// How many requests may wait for PostgreSQL, and as many for the search engine: three eighths each of all that may be
/// in flight. A quarter is left for responses from the cache, of which a thousand take a few milliseconds.
fn max_waiting(max_requests_in_flight: NonZeroU32) -> NonZeroUsize {
    let waiting = u64::from(max_requests_in_flight.get()) * 3 / 8;
    usize::try_from(waiting).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN)
}

impl LimitArguments {
    const fn limits(&self) -> Limits {
        Limits {
            lookup: self.rate_limit_lookup,
            rox: self.rate_limit_rox,
            list: self.rate_limit_list,
            detail: self.rate_limit_detail,
            other: self.rate_limit_other,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct HealthcheckArguments {
    /// What to ask. A container is best restarted by `livez` alone: a database that is away does not come back by
    /// that.
    #[arg(value_enum, default_value = "livez")]
    pub(crate) probe: Probe,

    #[command(flatten)]
    pub(crate) admin: AdminListen,
}

/// A question to the private listener.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Probe {
    /// Whether the process runs and answers.
    Livez,
    /// Whether it should be sent requests: it has seen the schema of its version once since it started, and it is
    /// not shutting down. An outage of the database does not change that, since cached responses are still served.
    Readyz,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    const DATABASE: &str = "postgres://someone:hunter2@db.example/charts";

    fn serve(arguments: &[&str]) -> Result<ServeArguments, String> {
        let arguments = ["chart-index", "serve", "--database-url", DATABASE].iter().chain(arguments);
        match Arguments::try_parse_from(arguments).map_err(|error| error.to_string())?.command {
            Command::Serve(arguments) => Ok(*arguments),
            Command::Healthcheck(_) => Err("healthcheck".to_owned()),
        }
    }

    #[test]
    fn every_setting_is_a_flag_and_a_variable_and_is_explained() {
        Arguments::command().debug_assert();
        for command in Arguments::command().get_subcommands() {
            for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
                let name = argument.get_id();
                assert!(argument.get_help().is_some(), "{name} is not explained");
                assert!(argument.get_env().is_some(), "{name} has no variable");
            }
        }
    }

    #[test]
    fn services_are_chosen_by_name() {
        let services = |list| serve(&["--services", list]).map(|arguments| arguments.services);
        assert_eq!(services("lookup,browse"), Ok(vec![Service::Lookup, Service::Browse]));
        assert_eq!(services("browse"), Ok(vec![Service::Browse]));
        assert!(services("search").is_err_and(|error| error.contains("SERVICES")));
    }

    #[test]
    fn an_error_names_the_variable() {
        for (flag, value, variable) in [
            ("--listen", "everywhere", "LISTEN"),
            ("--admin-listen", "9090", "ADMIN_LISTEN"),
            ("--alpha-source-page", "alpha.example", "ALPHA_SOURCE_PAGE"),
            ("--beta-source-page", "ftp://beta.example", "BETA_SOURCE_PAGE"),
            ("--request-deadline-ms", "5s", "REQUEST_DEADLINE_MS"),
            ("--shutdown-grace-ms", "0", "SHUTDOWN_GRACE_MS"),
            ("--header-read-timeout-ms", "0", "HEADER_READ_TIMEOUT_MS"),
            ("--write-timeout-ms", "0", "WRITE_TIMEOUT_MS"),
            ("--max-connections", "0", "MAX_CONNECTIONS"),
            ("--max-requests-in-flight", "-1", "MAX_REQUESTS_IN_FLIGHT"),
            ("--max-connections-per-peer", "0", "MAX_CONNECTIONS_PER_PEER"),
            ("--rate-limit-list", "0", "RATE_LIMIT_LIST"),
            ("--rate-limit-other", "many", "RATE_LIMIT_OTHER"),
            ("--trusted-proxies", "everybody", "TRUSTED_PROXIES"),
            ("--redis-url", "http://redis", "REDIS_URL"),
            ("--cache-bytes", "64 MiB", "CACHE_BYTES"),
            ("--max-fills-in-flight", "0", "MAX_FILLS_IN_FLIGHT"),
            ("--meilisearch-url", "search", "MEILISEARCH_URL"),
            ("--postgres-max-searches", "0", "POSTGRES_MAX_SEARCHES"),
            ("--search-max-lag-ms", "0", "SEARCH_MAX_LAG_MS"),
            ("--database-max-connections", "0", "DATABASE_MAX_CONNECTIONS"),
            ("--log-format", "xml", "LOG_FORMAT"),
            ("--log-filter", "info,=", "RUST_LOG"),
        ] {
            let error = serve(&[&format!("{flag}={value}")]).expect_err(flag);
            assert!(error.contains(variable), "{flag}: {error}");
        }
    }

    #[test]
    fn room_is_left_for_responses_from_the_cache() {
        for (in_flight, waiting) in [(1024, 384), (8, 3), (1, 1)] {
            assert_eq!(max_waiting(NonZeroU32::new(in_flight).unwrap()).get(), waiting, "{in_flight}");
        }
    }

    #[test]
    fn the_database_url_is_never_shown() {
        let shown = format!("{:?}", serve(&[]).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
        let malformed = ["chart-index", "serve", "--database-url", "mysql://someone:hunter2@db/charts"];
        let error = Arguments::try_parse_from(malformed).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let error = error.to_string();
        assert!(error.contains("DATABASE_URL") && !error.contains("hunter2"), "{error}");
    }
}
