//! The Parquet file while it is written, without Arrow, which would add seven crates.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chart_index_domain::{ExportFile, ExportedFile, hex};
use parquet::basic::{Compression, Type, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use rusqlite::types::Value;

use crate::export::output::{COMPRESSION_LEVEL, Output, create, finish, not_written};

const NAME: ExportFile = ExportFile::Parquet;
/// The columns, in the order of the values of a row.
const SCHEMA: &str = include_str!("catalogue.schema");
/// The version of the schema, in the metadata of the file.
const VERSION: (&str, &str) = ("schema_version", "2");
/// Rows are in memory until a row group has so many of them, about 1 KB each.
const ROW_GROUP_ROWS: usize = 1 << 16;

/// A file in the folder of an export.
pub(super) struct ParquetFile {
    writer: SerializedFileWriter<Output>,
    /// The rows of the row group that is not written yet.
    columns: Vec<Column>,
    rows: usize,
}

impl ParquetFile {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let create = || {
            let schema = Arc::new(parse_message_type(SCHEMA)?);
            let columns = schema.get_fields().iter().map(|field| Column::new(field.get_physical_type()));
            let columns = columns.collect::<Result<_>>()?;
            let writer = SerializedFileWriter::new(create(folder, NAME)?, schema, Arc::new(properties()?))?;
            anyhow::Ok(Self { writer, columns, rows: 0 })
        };
        create().with_context(|| not_written(NAME))
    }

    /// Adds a row, with a value for each column.
    pub(super) fn insert(&mut self, row: Vec<Value>) -> Result<()> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value)?;
        }
        self.rows += 1;
        if self.rows == ROW_GROUP_ROWS {
            self.write_row_group().with_context(|| not_written(NAME))?;
        }
        Ok(())
    }

    fn write_row_group(&mut self) -> Result<()> {
        let mut row_group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let mut writer = row_group.next_column()?.context("a column is not in the schema")?;
            column.write(&mut writer)?;
            writer.close()?;
        }
        row_group.close()?;
        self.rows = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<ExportedFile> {
        if self.rows > 0 {
            self.write_row_group().with_context(|| not_written(NAME))?;
        }
        finish(self.writer.into_inner().with_context(|| not_written(NAME))?, NAME)
    }
}

fn properties() -> Result<WriterProperties> {
    let (key, version) = VERSION;
    Ok(WriterProperties::builder()
        .set_key_value_metadata(Some(vec![KeyValue::new(key.to_owned(), version.to_owned())]))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(COMPRESSION_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build())
}

/// The values of a column, without those that are NULL, and for each row whether it has one: 1 or 0.
struct Column {
    values: Values,
    levels: Vec<i16>,
}

enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl Column {
    fn new(physical_type: Type) -> Result<Self> {
        let values = match physical_type {
            Type::INT32 => Values::Int32(Vec::new()),
            Type::INT64 => Values::Int64(Vec::new()),
            Type::DOUBLE => Values::Double(Vec::new()),
            Type::BYTE_ARRAY => Values::Text(Vec::new()),
            other => bail!("a column has the type {other}"),
        };
        Ok(Self { values, levels: Vec::new() })
    }

    fn push(&mut self, value: Value) -> Result<()> {
        self.levels.push((value != Value::Null).into());
        match (&mut self.values, value) {
            (_, Value::Null) => {}
            (Values::Int32(values), Value::Integer(value)) => values.push(value.try_into()?),
            (Values::Int64(values), Value::Integer(value)) => values.push(value),
            (Values::Double(values), Value::Real(value)) => values.push(value),
            (Values::Text(values), Value::Text(value)) => {
                // Charts of a chartset share theirs.
                let same = values.last().filter(|last| last.data() == value.as_bytes()).cloned();
                values.push(same.unwrap_or_else(|| value.into_bytes().into()));
            }
            // Some readers shorten fixed-length bytes, and round integers of 64 bits.
            (Values::Text(values), Value::Blob(digest)) => {
                let mut digits = String::with_capacity(2 * digest.len());
                hex::push(&mut digits, &digest);
                values.push(digits.into_bytes().into());
            }
            (_, value) => bail!("a column does not have the type {}", value.data_type()),
        }
        Ok(())
    }

    /// Writes the values, and removes them.
    fn write(&mut self, writer: &mut SerializedColumnWriter) -> Result<()> {
        match &mut self.values {
            Values::Int32(values) => write::<Int32Type>(writer, values, &self.levels),
            Values::Int64(values) => write::<Int64Type>(writer, values, &self.levels),
            Values::Double(values) => write::<DoubleType>(writer, values, &self.levels),
            Values::Text(values) => write::<ByteArrayType>(writer, values, &self.levels),
        }?;
        self.levels.clear();
        Ok(())
    }
}

fn write<T: DataType>(
    writer: &mut SerializedColumnWriter,
    values: &mut Vec<T::T>,
    levels: &[i16],
) -> Result<()> {
    writer.typed::<T>().write_batch(values, Some(levels), None)?;
    values.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::metadata::RowGroupMetaData;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    const PROJECTION: &str =
        "message catalogue { REQUIRED BYTE_ARRAY id (STRING); OPTIONAL INT32 source_ref; }";

    /// Rows whose values are like these. Every other one has NULL where a column may have it.
    fn rows(count: usize) -> impl Iterator<Item = Vec<Value>> {
        let schema = parse_message_type(SCHEMA).unwrap();
        let columns: Vec<_> = schema
            .get_fields()
            .iter()
            .map(|field| (field.is_optional(), field.get_physical_type()))
            .collect();
        (0..count).map(move |row| {
            let value = |(is_optional, physical_type)| match physical_type {
                _ if is_optional && row % 2 == 0 => Value::Null,
                Type::INT32 | Type::INT64 => Value::Integer(i64::try_from(row).unwrap()),
                Type::DOUBLE => Value::Real(0.5),
                _ => Value::Text(format!("text {}", row / 4)),
            };
            columns.iter().copied().map(value).collect()
        })
    }

    #[test]
    fn rows_are_written_in_groups() {
        for (count, groups) in [(0, vec![]), (ROW_GROUP_ROWS + 3, vec![ROW_GROUP_ROWS, 3])] {
            let folder = tempfile::tempdir().unwrap();
            let mut file = ParquetFile::create(folder.path()).unwrap();
            rows(count).for_each(|row| file.insert(row).unwrap());
            file.finish().unwrap();
            let reader =
                SerializedFileReader::new(File::open(folder.path().join(NAME.name())).unwrap()).unwrap();
            let read_groups = reader.metadata().row_groups().iter().map(RowGroupMetaData::num_rows);
            assert!(read_groups.eq(groups.into_iter().map(|rows| i64::try_from(rows).unwrap())));
            let mut read = reader.get_row_iter(Some(parse_message_type(PROJECTION).unwrap())).unwrap();
            for row in 0..count {
                let columns = read.next().unwrap().unwrap();
                assert_eq!(columns.get_string(0).unwrap(), &format!("text {}", row / 4));
                assert_eq!(columns.get_int(1).ok(), (row % 2 == 1).then(|| i32::try_from(row).unwrap()));
            }
            assert!(read.next().is_none());
        }
    }

    #[test]
    fn values_of_another_type_are_refused() {
        let mut column = Column::new(Type::INT32).unwrap();
        column.push(Value::Null).unwrap();
        column.push(Value::Integer(1)).unwrap();
        assert!(column.push(Value::Integer(1 << 31)).is_err());
        assert!(column.push(Value::Real(1.0)).is_err());
    }
}
