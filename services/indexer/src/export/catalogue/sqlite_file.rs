//! A file of SQLite while it is written.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chart_index_domain::{ExportFile, ExportedFile};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::export::output::{COMPRESSION_LEVEL, create, finish, not_written};

/// Nothing is read after a crash, and one connection at a time uses the file. The cache limits the memory; what
/// is sorted beyond it is in files of the folder.
const SETTINGS: &str = "PRAGMA journal_mode = OFF;
                        PRAGMA synchronous = OFF;
                        PRAGMA locking_mode = EXCLUSIVE;
                        PRAGMA cache_size = -16384;";

/// A file in the folder of an export. Rows are inserted into another one, which [`finish`](Self::finish) copies:
/// the copy has each table in its order and without gaps, and depends on the rows only.
pub(super) struct SqliteFile {
    connection: Connection,
    folder: PathBuf,
    name: ExportFile,
}

impl SqliteFile {
    pub(super) fn create(folder: &Path, name: ExportFile, schema: &str) -> Result<Self> {
        let file = Self {
            connection: Connection::open(unsorted(folder, name)).with_context(|| not_written(name))?,
            folder: folder.to_owned(),
            name,
        };
        file.execute(SETTINGS)?;
        let temporary = folder.to_str().context("the path of the exports is not UTF-8")?;
        file.connection
            .pragma_update(None, "temp_store_directory", temporary)
            .with_context(|| not_written(name))?;
        file.execute("BEGIN")?;
        file.execute(schema)?;
        Ok(file)
    }

    fn execute(&self, statements: &str) -> Result<()> {
        self.connection.execute_batch(statements).with_context(|| not_written(self.name))
    }

    pub(super) fn insert(&self, table: &str, row: Vec<Value>) -> Result<()> {
        let places = vec!["?"; row.len()].join(", ");
        let insert = || {
            let mut statement =
                self.connection.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))?;
            statement.execute(params_from_iter(row))
        };
        insert().map(drop).with_context(|| not_written(self.name))
    }

    /// Runs the last statements and compresses the file.
    pub(super) fn finish(self, last_statements: &str) -> Result<ExportedFile> {
        self.execute(last_statements)?;
        self.execute("COMMIT")?;
        let Self { connection, folder, name } = self;
        let sorted = folder.join(name.name().trim_end_matches(".zst"));
        let copy = || {
            connection.execute("VACUUM INTO ?1", [sorted.to_str()])?;
            connection.close().map_err(|(_, error)| error)?;
            anyhow::Ok(fs::remove_file(unsorted(&folder, name))?)
        };
        copy().with_context(|| not_written(name))?;
        let compress = || {
            let mut encoder = zstd::Encoder::new(create(&folder, name)?, COMPRESSION_LEVEL)?;
            io::copy(&mut File::open(&sorted)?, &mut encoder)?;
            anyhow::Ok(encoder.finish()?)
        };
        let file = finish(compress().with_context(|| not_written(name))?, name)?;
        fs::remove_file(&sorted).with_context(|| not_written(name))?;
        Ok(file)
    }
}

fn unsorted(folder: &Path, name: ExportFile) -> PathBuf {
    folder.join(format!("{}.unsorted", name.name()))
}
