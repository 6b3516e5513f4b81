//! The command line. Every setting is a flag and an environment variable.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use chart_index_cli::{SecretParser, parse_milliseconds};
use chart_index_http::{CdnConfig, RequestLimitConfig, ServerConfig};
use chart_index_objects::{ObjectStoreArguments, PublicObjectsUrl};
use chart_index_ratelimit::{Limits, TrustedProxies};
use chart_index_redis::RedisArguments;
use chart_index_search::MeilisearchArguments;
use chart_index_store::{DatabaseArguments, DatabaseUrl, Store, StoreConfig};
use chart_index_telemetry::{LogConfig, OtlpConfig};
use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum, value_parser};

/// Serves the chart index: the API with chart lookups, ROX files and the chartset catalogue, and the web site.
#[derive(Debug, Parser)]
#[command(name = "chart-index", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// # Errors
    /// Settings contradict each other.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let arguments = match &self.command {
            Command::Serve(arguments) => arguments,
            Command::Check(arguments) => &arguments.serve,
            Command::Healthcheck(_) => return Ok(()),
        };
        arguments.meilisearch.nodes()?;
        Ok(arguments.redis.check()?)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and the web site, and health endpoints and metrics on a private listener, until SIGTERM or
    /// SIGINT.
    Serve(Box<ServeArguments>),
    /// Check an installation: read the settings as `serve` does, connect to every server, and print what is
    /// right, what is wrong, and which section of the documentation is about it.
    ///
    /// Exits with 0 if there is no problem, with 1 if there is one, and with 2 if a setting is invalid. A
    /// warning is no problem. Changes nothing.
    Check(Box<CheckArguments>),
    /// Check the health of a server on this machine. Exits with 0 if it is healthy, else with 1.
    Healthcheck(HealthcheckArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder of the dumps of PostgreSQL, files whose names end in `.dump`, whose age is checked.
    #[arg(long, env = "DUMPS_DIR", value_name = "FOLDER")]
    pub(crate) dumps_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) serve: ServeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Services to run, separated by commas.
    #[arg(
        long,
        env = "SERVICES",
        value_enum,
        value_delimiter = ',',
        default_value = "lookup,browse,pages,bulk"
    )]
    pub(crate) services: Vec<Service>,

    /// Listen address of the API. With port 0 the system selects a free port, which is logged.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) admin: AdminListen,

    /// Threads that handle requests, each with a connection to Redis. Default: one for each core, within the
    /// CPU limit of the container if it has one.
    #[arg(
        long,
        env = "WORKER_THREADS",
        value_parser = value_parser!(u16)
            .range(1..=MAX_WORKER_THREADS)
            .try_map(|threads| NonZeroUsize::try_from(usize::from(threads)))
    )]
    pub(crate) worker_threads: Option<NonZeroUsize>,

    #[command(flatten, next_help_heading = "PostgreSQL")]
    pub(crate) store: StoreArguments,

    #[command(flatten, next_help_heading = "Object store")]
    pub(crate) objects: ObjectStoreArguments,

    /// Address below which the objects are public. Requests for ROX files that are objects are redirected
    /// there; without it they are answered with the files.
    #[arg(long, env = "OBJECTS_PUBLIC_URL")]
    pub(crate) objects_public_url: Option<PublicObjectsUrl>,

    #[command(flatten, next_help_heading = "Redis")]
    pub(crate) redis: RedisArguments,

    #[command(flatten, next_help_heading = "Rate limits")]
    pub(crate) rate_limits: RateLimitArguments,

    #[command(flatten, next_help_heading = "Response cache")]
    pub(crate) cache: CacheArguments,

    #[command(flatten, next_help_heading = "Meilisearch")]
    pub(crate) meilisearch: MeilisearchArguments,

    /// Maximum lag of a Meilisearch node, in milliseconds: the age of the oldest change that its index lacks.
    /// Nodes that lag more are not used.
    #[arg(
        long = "search-max-lag-ms",
        env = "SEARCH_MAX_LAG_MS",
        value_name = "SEARCH_MAX_LAG_MS",
        default_value = "30000",
        value_parser = parse_milliseconds
    )]
    pub(crate) search_max_lag: Duration,

    #[command(flatten, next_help_heading = "Source pages")]
    pub(crate) source_pages: chart_index_http::SourcePages,

    #[command(flatten, next_help_heading = "Pages")]
    pub(crate) pages: chart_index_pages::PagesSettings,

    #[command(flatten, next_help_heading = "Change feed")]
    pub(crate) changes: chart_index_bulk::ChangesSettings,

    #[command(flatten, next_help_heading = "Exports")]
    pub(crate) exports: chart_index_bulk::ExportsSettings,

    #[command(flatten, next_help_heading = "Request limits")]
    pub(crate) request_limits: RequestLimitConfig,

    #[command(flatten, next_help_heading = "CDN")]
    pub(crate) cdn: CdnConfig,

    #[command(flatten, next_help_heading = "Connections")]
    pub(crate) server: ServerConfig,

    #[command(flatten, next_help_heading = "Log")]
    pub(crate) log: LogConfig,

    #[command(flatten, next_help_heading = "OpenTelemetry")]
    pub(crate) otlp: OtlpConfig,
}

/// More threads than any machine has cores are a mistake, and take minutes to start.
const MAX_WORKER_THREADS: i64 = 1_024;
/// No server of PostgreSQL accepts more.
const MAX_DATABASE_CONNECTIONS: i64 = 262_143;

/// A part of the service that can be served alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Service {
    /// Chart lookups, ROX files and variants: `/api/charts`, `/api/variants`.
    Lookup,
    /// Chartsets and redirects to sources: `/api/chartsets`, `/api/random`, `/go`.
    Browse,
    /// The web site: `/`, and all other paths.
    Pages,
    /// The change feed, exports and hash filters: `/api/changes`, `/api/exports`, `/api/charts/filter`.
    Bulk,
}

impl Service {
    /// The name in `SERVICES`.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[derive(Debug, Args)]
pub(crate) struct AdminListen {
    /// Listen address of the private listener with `/livez`, `/readyz` and `/metrics`.
    #[arg(long, env = "ADMIN_LISTEN", default_value = "127.0.0.1:9090")]
    pub(crate) admin_listen: SocketAddr,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("database").args(["database_url", "database_url_file"]).required(true))]
pub(crate) struct StoreArguments {
    #[command(flatten)]
    database: DatabaseArguments,

    /// Streaming standby of the database, in the form of `DATABASE_URL`: serves reads while it has every change
    /// of two seconds ago.
    #[arg(long, env = "DATABASE_READ_URL", hide_env_values = true, value_name = "URL")]
    database_read_url: Option<DatabaseUrl>,

    /// File with the value of `DATABASE_READ_URL`.
    #[arg(
        long,
        env = "DATABASE_READ_URL_FILE",
        value_name = "FILE",
        conflicts_with = "database_read_url",
        value_parser = SecretParser::<DatabaseUrl>::in_file()
    )]
    database_read_url_file: Option<DatabaseUrl>,

    /// Host of the standby, instead of `DATABASE_READ_URL`: the rest is as in `DATABASE_URL`.
    #[arg(
        long,
        env = "DATABASE_READ_HOST",
        value_name = "HOST",
        conflicts_with_all = ["database_read_url", "database_read_url_file"]
    )]
    database_read_host: Option<String>,

    /// Maximum connections to PostgreSQL for requests, and to the standby. Two more to each server are for
    /// readiness checks and for following changes.
    #[arg(
        long,
        env = "DATABASE_MAX_CONNECTIONS",
        default_value = "16",
        value_parser = value_parser!(u32).range(1..=MAX_DATABASE_CONNECTIONS).try_map(NonZeroU32::try_from)
    )]
    pub(crate) database_max_connections: NonZeroU32,
}

impl StoreArguments {
    /// # Errors
    /// No database is configured.
    pub(crate) fn store(&self) -> anyhow::Result<Store> {
        let url = self.database.url().context("no database: set DATABASE_URL or DATABASE_URL_FILE")?;
        let max_connections = self.database_max_connections.get();
        let store = Store::new(&StoreConfig { max_connections, ..StoreConfig::new(url.clone()) });
        Ok(match self.standby() {
            Some(standby) => store.with_standby(standby),
            None => store,
        })
    }

    /// Maximum connections to all servers for requests.
    pub(crate) fn max_connections(&self) -> NonZeroU32 {
        let servers =
            if self.standby().is_some() { const { NonZeroU32::new(2).unwrap() } } else { NonZeroU32::MIN };
        self.database_max_connections.saturating_mul(servers)
    }

    fn standby(&self) -> Option<DatabaseUrl> {
        let url = self.database_read_url.as_ref().or(self.database_read_url_file.as_ref());
        url.cloned().or_else(|| Some(self.database.url()?.with_host(self.database_read_host.as_deref()?)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct RateLimitArguments {
    #[command(flatten)]
    pub(crate) limits: Limits,

    /// Addresses or CIDR blocks of trusted reverse proxies, separated by commas. Their `X-Forwarded-For`
    /// determines the client address.
    #[arg(long, env = "TRUSTED_PROXIES", default_value = "")]
    pub(crate) trusted_proxies: TrustedProxies,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArguments {
    /// Memory for cached responses, in bytes. A quarter of it is for unknown charts.
    #[arg(long, env = "CACHE_BYTES", default_value = "67108864")]
    pub(crate) cache_bytes: NonZeroU64,

    /// Maximum concurrent reads for lists that are not cached, and separately for all other responses. Further
    /// ones of a burst wait up to 2 seconds; under overload the response is 503 at once.
    #[arg(long, env = "MAX_FILLS_IN_FLIGHT", default_value = "64")]
    pub(crate) max_fills_in_flight: NonZeroUsize,

    /// Maximum concurrent reads for lists that PostgreSQL searches for, at most half of the connections to it.
    /// Further ones of a burst wait up to 4 seconds; under overload the response is 503 at once.
    #[arg(long, env = "POSTGRES_MAX_SEARCHES", default_value = "4")]
    pub(crate) postgres_max_searches: NonZeroUsize,
}

#[derive(Debug, Args)]
pub(crate) struct HealthcheckArguments {
    /// Endpoint to request. Restart containers on `livez` only: a restart does not bring back a database.
    #[arg(value_enum, default_value = "livez")]
    pub(crate) probe: Probe,

    #[command(flatten)]
    pub(crate) admin: AdminListen,
}

/// A health endpoint.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Probe {
    /// The process runs and responds.
    Livez,
    /// The process should receive requests: it has seen the database schema once and is not shutting down.
    Readyz,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    const DATABASE: &str = "postgres://user:hunter2@db.example/charts";

    fn serve(arguments: &[&str]) -> Result<ServeArguments, String> {
        let arguments = ["chart-index", "serve", "--database-url", DATABASE].iter().chain(arguments);
        match Arguments::try_parse_from(arguments).map_err(|error| error.to_string())?.command {
            Command::Serve(arguments) => Ok(*arguments),
            Command::Check(_) | Command::Healthcheck(_) => Err("another command".to_owned()),
        }
    }

    #[test]
    fn every_setting_has_a_flag_a_variable_and_help() {
        Arguments::command().debug_assert();
        for command in Arguments::command().get_subcommands() {
            for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
                let name = argument.get_id();
                if name == "json" {
                    continue;
                }
                assert!(argument.get_help().is_some(), "{name} has no help");
                assert!(argument.get_env().is_some(), "{name} has no variable");
            }
        }
    }

    #[test]
    fn standby_has_a_url_or_a_host() {
        let standby =
            |argument| serve(&[argument]).map(|arguments| format!("{:?}", arguments.store.standby()));
        let expected = |host| Ok(format!("Some(DatabaseUrl({host}:5432/charts))"));
        assert_eq!(standby("--database-read-url=postgres://other.example/charts"), expected("other.example"));
        assert_eq!(standby("--database-read-host=standbys.example"), expected("standbys.example"));
    }

    #[test]
    fn services_are_selected_by_name() {
        let services = |list| serve(&["--services", list]).map(|arguments| arguments.services);
        assert_eq!(services("lookup,browse"), Ok(vec![Service::Lookup, Service::Browse]));
        assert_eq!(services("browse"), Ok(vec![Service::Browse]));
        assert_eq!(
            serve(&[]).unwrap().services,
            [Service::Lookup, Service::Browse, Service::Pages, Service::Bulk]
        );
        assert!(services("search").is_err_and(|error| error.contains("SERVICES")));
    }

    #[test]
    fn errors_name_the_variable() {
        for (flag, value, variable) in [
            ("--listen", "everywhere", "LISTEN"),
            ("--admin-listen", "9090", "ADMIN_LISTEN"),
            ("--alpha-source-page", "alpha.example", "ALPHA_SOURCE_PAGE"),
            ("--beta-source-page", "ftp://beta.example", "BETA_SOURCE_PAGE"),
            ("--request-deadline-ms", "5s", "REQUEST_DEADLINE_MS"),
            ("--drain-delay-ms", "-1", "DRAIN_DELAY_MS"),
            ("--shutdown-grace-ms", "0", "SHUTDOWN_GRACE_MS"),
            ("--header-read-timeout-ms", "0", "HEADER_READ_TIMEOUT_MS"),
            ("--write-timeout-ms", "0", "WRITE_TIMEOUT_MS"),
            ("--max-connections", "0", "MAX_CONNECTIONS"),
            ("--max-requests-in-flight", "-1", "MAX_REQUESTS_IN_FLIGHT"),
            ("--max-connections-per-peer", "0", "MAX_CONNECTIONS_PER_PEER"),
            ("--rate-limit-list", "0", "RATE_LIMIT_LIST"),
            ("--rate-limit-bulk", "0", "RATE_LIMIT_BULK"),
            ("--rate-limit-feed", "0", "RATE_LIMIT_FEED"),
            ("--rate-limit-page", "0", "RATE_LIMIT_PAGE"),
            ("--rate-limit-other", "many", "RATE_LIMIT_OTHER"),
            ("--public-url", "charts.example", "PUBLIC_URL"),
            ("--trusted-proxies", "everybody", "TRUSTED_PROXIES"),
            ("--redis-url", "http://redis", "REDIS_URL"),
            ("--cache-bytes", "64 MiB", "CACHE_BYTES"),
            ("--max-fills-in-flight", "0", "MAX_FILLS_IN_FLIGHT"),
            ("--worker-threads", "0", "WORKER_THREADS"),
            ("--worker-threads", "1025", "WORKER_THREADS"),
            ("--meilisearch-url", "search", "MEILISEARCH_URL"),
            ("--postgres-max-searches", "0", "POSTGRES_MAX_SEARCHES"),
            ("--search-max-lag-ms", "0", "SEARCH_MAX_LAG_MS"),
            ("--database-max-connections", "0", "DATABASE_MAX_CONNECTIONS"),
            ("--database-max-connections", "262144", "DATABASE_MAX_CONNECTIONS"),
            ("--object-store-url", "/srv/objects", "OBJECT_STORE_URL"),
            ("--objects-public-url", "s3://bucket", "OBJECTS_PUBLIC_URL"),
            ("--database-read-url", "mysql://db/charts", "DATABASE_READ_URL"),
            ("--log-format", "xml", "LOG_FORMAT"),
            ("--log-filter", "info,=", "RUST_LOG"),
            ("--otlp-endpoint", "collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT"),
            ("--otlp-headers", "hunter2", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("--trace-sample-ratio", "2", "OTEL_TRACES_SAMPLER_ARG"),
        ] {
            let error = serve(&[&format!("{flag}={value}")]).expect_err(flag);
            assert!(error.contains(variable), "{flag}: {error}");
        }
    }

    #[test]
    fn database_url_is_never_printed() {
        let shown = format!("{:?}", serve(&[]).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
        let malformed = ["chart-index", "serve", "--database-url", "mysql://user:hunter2@db/charts"];
        let error = Arguments::try_parse_from(malformed).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let error = error.to_string();
        assert!(error.contains("DATABASE_URL") && !error.contains("hunter2"), "{error}");
    }
}
