//! What a team would write without this project: a plain axum handler that reads a chart with sqlx and returns
//! it as JSON, with neither cache nor limits. It returns the same bytes as the service. It runs as a process of
//! its own, `load plain-handler`.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpListener;

use super::{Catalogue, Role, Target};
use crate::cpu::Cores;

/// As many connections as the service has by default.
const CONNECTIONS: u32 = 16;
/// `max-age` of a lookup, in milliseconds.
const TTL_MS: u32 = 300_000;

/// The handler as a child process. Dropping the value kills it.
#[derive(Debug)]
pub(crate) struct PlainHandler {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The process of its database.
    pub(crate) postgres: u32,
    process: Child,
}

impl PlainHandler {
    /// Starts the handler on a catalogue, and waits until it listens.
    pub(crate) fn start(catalogue: &Catalogue, cores: &Cores) -> Result<Self> {
        let _pinned = cores.on_servers()?;
        let mut process = Command::new(std::env::current_exe()?)
            .arg("plain-handler")
            .env("DATABASE_URL", catalogue.url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("the plain handler did not start")?;
        let output = process.stdout.take().context("its output is piped")?;
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address)?;
        let address = address.trim().parse().context("the plain handler did not listen")?;
        Ok(Self { address, postgres: catalogue.process_id()?, process })
    }

    /// The handler as a target of its own.
    pub(crate) fn into_target(self) -> Target {
        let processes = vec![(Role::Server, self.process_id()), (Role::Postgres, self.postgres)];
        Target::new("axum/sqlx", self.address, processes, vec![Box::new(self)])
    }

    /// The process id.
    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for PlainHandler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One source of a chart, with the chart in one of its chartsets.
#[derive(Debug, sqlx::FromRow)]
struct Row {
    exact_kind: Option<String>,
    exact_ref: Option<String>,
    declared_kind: Option<String>,
    declared_ref: Option<String>,
    checked_at_ms: i64,
    #[sqlx(flatten)]
    chart: Chart,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    chart_hash: &'a str,
    status: &'static str,
    sources: Vec<Source>,
    ttl_ms: u32,
    chart: &'a Chart,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    kind: String,
    #[serde(rename = "ref")]
    reference: String,
    confidence: &'static str,
    checked_at_ms: i64,
}

#[derive(Debug, sqlx::FromRow, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chart {
    hash: String,
    note_hash_version: i32,
    keys: i16,
    bpm_min: f64,
    bpm_max: f64,
    bpm_main: f64,
    length_ms: i64,
    notes: i64,
    lns: i64,
    density_avg: f64,
    density_peak: f64,
    rox_bytes: i64,
    title: String,
    artist: String,
    creator: String,
    difficulty: String,
}

/// The chart in its chartset with the smallest id. Generated charts are in one chartset each.
const QUERY: &str =
    "SELECT chartset.exact_kind, chartset.exact_ref, member.declared_kind, member.declared_ref,
        greatest(chartset.checked_at_ms, (SELECT checks.checked_at_ms FROM chartset_checks AS checks
            WHERE checks.chartset_id = chartset.id)) AS checked_at_ms,
        encode(chart.hash, 'hex') AS hash, 1 AS note_hash_version,
        chart.keys, chart.bpm_min, chart.bpm_max, chart.bpm_main, chart.length_ms, chart.notes, chart.lns,
        chart.density_avg, chart.density_peak, chart.rox_bytes,
        member.title, member.artist, member.creator, member.difficulty
    FROM charts AS chart
    JOIN chartset_charts AS member ON member.chart_hash = chart.hash
    JOIN chartsets AS chartset ON chartset.id = member.chartset_id
    WHERE chart.hash = decode($1, 'hex') AND chart.removed_at_ms IS NULL AND chartset.removed_at_ms IS NULL
    ORDER BY chartset.id LIMIT 1";

/// The statement that reads a chart, for this hash.
pub(crate) fn statement(hash: &str) -> String {
    QUERY.replace("$1", &format!("'{hash}'"))
}

/// Serves charts of the database until the process is killed, and prints the address.
#[expect(clippy::print_stdout, reason = "the process that starts this one reads the address")]
pub(crate) async fn serve(database_url: &str) -> Result<()> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(database_url).await?;
    let routes = Router::new()
        .route("/api/charts/{hash}", get(chart))
        .route("/api/charts/{hash}/rox", get(rox))
        .with_state(Arc::new(pool));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn chart(State(pool): State<Arc<PgPool>>, Path(hash): Path<String>) -> Response {
    match sqlx::query_as::<_, Row>(QUERY).bind(&hash).fetch_optional(&*pool).await {
        Ok(Some(row)) => json(&hash, &row),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn rox(State(pool): State<Arc<PgPool>>, Path(hash): Path<String>) -> Response {
    let file = sqlx::query_scalar::<_, Vec<u8>>("SELECT bytes FROM rox_files WHERE hash = decode($1, 'hex')");
    match file.bind(&hash).fetch_optional(&*pool).await {
        Ok(Some(bytes)) => (headers("application/octet-stream", &hash, "immutable"), bytes).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

fn headers(media_type: &str, hash: &str, policy: &str) -> [(HeaderName, String); 3] {
    [
        (CONTENT_TYPE, media_type.to_owned()),
        (CACHE_CONTROL, format!("public, max-age=300, {policy}")),
        (ETAG, format!("\"{hash}\"")),
    ]
}

fn json(hash: &str, row: &Row) -> Response {
    match serde_json::to_vec(&row.body()) {
        Ok(body) => (headers("application/json", hash, "must-revalidate"), body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl Row {
    fn body(&self) -> Body<'_> {
        let Self { chart, .. } = self;
        Body { chart_hash: &chart.hash, status: "known", sources: self.sources(), ttl_ms: TTL_MS, chart }
    }

    /// The exact source of the chartset, and the declared one of the file if it is another.
    fn sources(&self) -> Vec<Source> {
        let source = |kind: &Option<String>, reference: &Option<String>, confidence| {
            let (kind, reference) = (kind.clone()?, reference.clone()?);
            Some(Source { kind, reference, confidence, checked_at_ms: self.checked_at_ms })
        };
        let exact = source(&self.exact_kind, &self.exact_ref, "exact");
        let declared = source(&self.declared_kind, &self.declared_ref, "declared");
        let differs = |declared: &Source| {
            exact
                .as_ref()
                .is_none_or(|exact| (&exact.kind, &exact.reference) != (&declared.kind, &declared.reference))
        };
        let declared = declared.filter(differs);
        exact.into_iter().chain(declared).collect()
    }
}
