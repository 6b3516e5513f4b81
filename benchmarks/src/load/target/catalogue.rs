//! A PostgreSQL server with a generated catalogue. Its data stays in a cache folder between runs.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chart_index_benchmarks::catalogue::{CatalogueOptions, fill};
use chart_index_domain::NoteHash;
use chart_index_store::{Store, StoreConfig};
use chart_index_tests::PrivatePostgres;

use crate::cpu::Cores;

/// Chartsets per ten charts, as in catalogues that were counted.
const CHARTSETS_PER_TEN_CHARTS: u64 = 3;
const SEED: u64 = 1;
/// ROX files of 60 KB.
const LARGE_FILES: usize = 100;
const LARGE_BYTES: usize = 60_000;
const TIMEOUT: Duration = Duration::from_mins(1);
/// Written when the catalogue is complete. The number is that of what it holds.
const COMPLETE: &str = "complete-2";

/// A catalogue on a server of its own. Dropping the value stops the server; the data stays.
#[derive(Debug)]
pub(crate) struct Catalogue {
    postgres: PrivatePostgres,
    charts: u64,
    _lock: File,
}

impl Catalogue {
    /// Starts the server with a catalogue of this size, which is generated if the cache folder does not have
    /// it.
    pub(crate) async fn open(charts: u64, cores: &Cores) -> Result<Self> {
        let folder = cache_folder()?.join(format!("load/charts-{charts}"));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = File::create(folder.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another run uses {}", folder.display()),
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the catalogue"),
        }
        let postgres = {
            let _pinned = cores.on_servers()?;
            PrivatePostgres::start_in(&folder)
        };
        let catalogue = Self { postgres, charts, _lock: lock };
        catalogue.complete(&folder.join(COMPLETE)).await?;
        Ok(catalogue)
    }

    async fn complete(&self, marker: &Path) -> Result<()> {
        let config = StoreConfig {
            acquire_timeout: TIMEOUT,
            statement_timeout: TIMEOUT,
            ..StoreConfig::new(self.url().parse()?)
        };
        let store = Store::new(&config);
        let cannot =
            || format!("cannot migrate the catalogue next to {}: delete the folder", marker.display());
        store.migrate().await.with_context(cannot)?;
        if !marker.exists() {
            crate::progress(&format!("generating {} charts, once", self.charts));
            fill(&store, CatalogueOptions::new(self.chartsets(), self.charts, SEED)?).await?;
            self.add_large_files();
            self.psql("VACUUM (ANALYZE)");
            self.psql("CHECKPOINT");
            File::create(marker)?;
        }
        store.close().await;
        Ok(())
    }

    /// Replaces some ROX files by files of 60 KB, which few generated charts have.
    fn add_large_files(&self) {
        let chosen = format!("(SELECT hash FROM charts ORDER BY hash DESC LIMIT {LARGE_FILES})");
        // An md5 has 16 bytes.
        let bytes = format!("decode(repeat(md5(hash), {LARGE_BYTES} / 16), 'hex')");
        self.psql(&format!("UPDATE rox_files SET bytes = {bytes} WHERE hash IN {chosen}"));
        self.psql(&format!("UPDATE charts SET rox_bytes = {LARGE_BYTES} WHERE hash IN {chosen}"));
    }

    /// The URL of the database.
    pub(crate) fn url(&self) -> &str {
        self.postgres.url()
    }

    /// The process id of the server.
    pub(crate) fn process_id(&self) -> Result<u32> {
        self.postgres.process_id().context("the PostgreSQL server has ended")
    }

    /// The hashes of this many charts, in ascending order: those of generated charts are random.
    pub(crate) fn hashes(&self, count: usize) -> Result<Vec<NoteHash>> {
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = self.psql(&format!("SELECT encode(hash, 'hex') FROM charts ORDER BY hash LIMIT {limit}"));
        rows.lines().map(|row| row.parse().with_context(|| format!("{row} is no note hash"))).collect()
    }

    /// The hashes and sizes of this many ROX files whose size is closest to `bytes`.
    pub(crate) fn rox_files(&self, count: usize, bytes: u32) -> Result<Vec<(NoteHash, u64)>> {
        let rows = self.psql(&format!(
            "SELECT encode(hash, 'hex'), rox_bytes FROM charts ORDER BY abs(rox_bytes - {bytes}), hash LIMIT {count}"
        ));
        let file = |row: &str| {
            let (hash, bytes) = row.split_once('|').with_context(|| format!("{row} is no file"))?;
            Ok((hash.parse()?, bytes.parse()?))
        };
        rows.lines().map(file).collect()
    }

    /// The ids of this many chartsets.
    pub(crate) fn chartset_ids(&self, count: usize) -> Vec<String> {
        self.rows(&format!("SELECT id FROM chartsets WHERE shown ORDER BY id LIMIT {count}"))
    }

    /// The ids of this many chartsets that have a public source.
    pub(crate) fn chartset_ids_with_source(&self, count: usize) -> Vec<String> {
        let condition = "shown AND source_kind IS NOT NULL";
        self.rows(&format!("SELECT id FROM chartsets WHERE {condition} ORDER BY id LIMIT {count}"))
    }

    /// The first words of this many titles.
    pub(crate) fn title_words(&self, count: usize) -> Vec<String> {
        self.rows(&format!(
            "SELECT split_part(title, ' ', 1) FROM chartsets WHERE shown ORDER BY id LIMIT {count}"
        ))
    }

    /// The number of charts.
    pub(crate) const fn charts(&self) -> u64 {
        self.charts
    }

    /// The number of chartsets.
    pub(crate) fn chartsets(&self) -> u64 {
        chartsets(self.charts)
    }

    fn rows(&self, statement: &str) -> Vec<String> {
        self.psql(statement).lines().map(str::to_owned).collect()
    }

    /// Runs a statement and returns its output, unaligned and without headers.
    fn psql(&self, statement: &str) -> String {
        chart_index_tests::TestDatabase::psql_on(self.url(), statement)
    }
}

/// The chartsets of a catalogue with this many charts.
fn chartsets(charts: u64) -> u64 {
    (charts * CHARTSETS_PER_TEN_CHARTS / 10).max(1)
}

/// The cache folder of the project, outside of the checkout.
fn cache_folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("CHART_INDEX_CACHE") {
        return Ok(folder.into());
    }
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Ok(base.context("neither CHART_INDEX_CACHE nor HOME is set")?.join("chart-index"))
}
