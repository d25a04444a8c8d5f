//! A table's file: rows collected in row groups, which are written as they fill.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::column::{Column, Scratch};
use crate::error::Error;
use crate::id::Id;
use crate::promoted::{PromotedColumn, PromotedType};
use crate::schema::{ColumnType, Table};

/// Maximum number of rows of a row group.
const MAX_ROWS: u32 = 1 << 18;

/// Maximum number of bytes that a row group holds before it is written.
const MAX_BYTES: usize = 8 << 20;

/// Bytes of a page of mostly distinct values: the longer, the better they are compressed.
const LONG_PAGE: usize = 2 << 20;

/// A table's file that is being written.
#[derive(Debug)]
pub(crate) struct TableWriter {
    path: PathBuf,
    file: Option<SerializedFileWriter<BufWriter<File>>>,
    columns: Vec<Column>,
    /// The sort key by row.
    keys: Vec<(u64, i64)>,
    bytes: usize,
    rows: u64,
    scratch: Scratch,
}

impl TableWriter {
    /// Creates the file of a table, with promoted columns after its own.
    pub(crate) fn create(
        path: PathBuf,
        table: &'static Table,
        promoted: &[PromotedColumn],
    ) -> Result<Self, Error> {
        let file = File::create(&path).map_err(Error::file(&path))?;
        let own = table.columns.iter().map(|column| (column.name, column.kind));
        let all = own.chain(promoted.iter().map(|column| (column.name(), column_type(column.kind()))));
        let fields = all.clone().map(|(name, kind)| field(name, kind).map(Arc::new));
        let schema = fields
            .collect::<ParquetResult<Vec<_>>>()
            .and_then(|fields| Type::group_type_builder(table.name).with_fields(fields).build());
        let file = schema
            .and_then(|schema| {
                SerializedFileWriter::new(
                    BufWriter::new(file),
                    Arc::new(schema),
                    Arc::new(properties(table, promoted)),
                )
            })
            .map_err(Error::parquet(&path))?;
        let columns = all.map(|(_, kind)| Column::new(kind)).collect();
        Ok(Self {
            path,
            file: Some(file),
            columns,
            keys: Vec::new(),
            bytes: 0,
            rows: 0,
            scratch: Scratch::default(),
        })
    }

    /// Begins a row. Within a row group, rows are sorted by `key` and time.
    #[inline]
    pub(crate) fn row(&mut self, key: u64, time: i64) -> Row<'_> {
        let index = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.push((key, time));
        self.bytes += 16;
        Row { columns: &mut self.columns, bytes: &mut self.bytes, index }
    }

    /// Writes the row group if it is full.
    #[inline]
    pub(crate) fn end_row(&mut self) -> Result<(), Error> {
        if self.keys.len() >= MAX_ROWS as usize || self.bytes >= MAX_BYTES {
            return self.flush();
        }
        Ok(())
    }

    #[inline(never)]
    fn flush(&mut self) -> Result<(), Error> {
        let Self { path, file, columns, keys, bytes, rows, scratch } = self;
        let mut order: Vec<u32> = (0..).take(keys.len()).collect();
        if !keys.is_sorted() {
            order.sort_by_key(|row| keys.get(*row as usize).copied());
        }
        *rows += keys.len() as u64;
        keys.clear();
        *bytes = 0;
        if let Some(file) = file {
            write_row_group(file, columns, &order, scratch).map_err(Error::parquet(path))?;
        }
        Ok(())
    }

    /// Writes the remaining rows, and the file's end. Returns the number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        if !self.keys.is_empty() {
            self.flush()?;
        }
        let Some(file) = self.file.take() else { return Ok(self.rows) };
        let file = file.into_inner().map_err(Error::parquet(&self.path))?;
        let file = file.into_inner().map_err(|error| Error::file(&self.path)(error.into_error()))?;
        file.sync_all().map_err(Error::file(&self.path))?;
        Ok(self.rows)
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn write_row_group(
    file: &mut SerializedFileWriter<BufWriter<File>>,
    columns: &mut [Column],
    order: &[u32],
    scratch: &mut Scratch,
) -> ParquetResult<()> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        column.write(order, scratch, writer.untyped())?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// A row that is being filled. Columns that are not set are null.
#[derive(Debug)]
pub(crate) struct Row<'t> {
    columns: &'t mut [Column],
    bytes: &'t mut usize,
    index: u32,
}

macro_rules! setters {
    ($($name:ident $push:ident $type:ty;)*) => {
        impl Row<'_> {
            $(
                #[inline]
                pub(crate) fn $name(&mut self, column: usize, value: $type) {
                    if let Some(column) = self.columns.get_mut(column) {
                        *self.bytes += column.$push(self.index, value);
                    }
                }
            )*
        }
    };
}

setters! {
    long push_long i64;
    int push_int i32;
    double push_double f64;
    bool push_bool bool;
    text push_text &str;
    bytes push_bytes &[u8];
    id push_id Id;
}

impl Row<'_> {
    pub(crate) fn ids(&mut self, column: usize, ids: impl Iterator<Item = Id>) {
        if let Some(column) = self.columns.get_mut(column) {
            *self.bytes += column.push_ids(self.index, ids);
        }
    }
}

fn field(name: &str, kind: ColumnType) -> ParquetResult<Type> {
    let primitive = |physical| Type::primitive_type_builder(name, physical);
    let of = |physical| primitive(physical).with_repetition(Repetition::OPTIONAL);
    match kind {
        ColumnType::Long => of(PhysicalType::INT64).build(),
        ColumnType::Int => of(PhysicalType::INT32).build(),
        ColumnType::Double => of(PhysicalType::DOUBLE).build(),
        ColumnType::Bool => of(PhysicalType::BOOLEAN).build(),
        ColumnType::Text | ColumnType::LongText => {
            of(PhysicalType::BYTE_ARRAY).with_logical_type(Some(LogicalType::String)).build()
        }
        ColumnType::Bytes => of(PhysicalType::BYTE_ARRAY).build(),
        ColumnType::Id => of(PhysicalType::FIXED_LEN_BYTE_ARRAY).with_length(16).build(),
        ColumnType::IdList => {
            let element = Type::primitive_type_builder("element", PhysicalType::FIXED_LEN_BYTE_ARRAY)
                .with_repetition(Repetition::REQUIRED)
                .with_length(16)
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            Type::group_type_builder(name)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build()
        }
    }
}

/// The type of a promoted column. It is not known whether its strings repeat: a dictionary is tried, and
/// abandoned if it grows.
const fn column_type(kind: PromotedType) -> ColumnType {
    match kind {
        PromotedType::Text => ColumnType::Text,
        PromotedType::Long => ColumnType::Long,
        PromotedType::Double => ColumnType::Double,
        PromotedType::Bool => ColumnType::Bool,
    }
}

fn properties(table: &Table, promoted: &[PromotedColumn]) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("nettrace-tables ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(compression())
        .set_statistics_enabled(EnabledStatistics::Chunk);
    if !promoted.is_empty() {
        let fields: Vec<_> = promoted.iter().map(|column| (column.name(), column.to_string())).collect();
        let text = serde_json::to_string(&fields).unwrap_or_default();
        builder = builder.set_key_value_metadata(Some(vec![KeyValue::new("promoted".to_owned(), text)]));
    }
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        match column.kind {
            ColumnType::Long if column.name == "time_ns" => {
                builder = builder
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                    .set_column_statistics_enabled(path, EnabledStatistics::Page);
            }
            // Times are mostly distinct: a dictionary is half as large again.
            ColumnType::Long if column.name == "ns" => {
                builder = builder.set_column_dictionary_enabled(path, false);
            }
            // Neighbours of one kind have common prefixes. With prefixes stored as lengths, JSON takes less
            // than half of its size in a dictionary.
            ColumnType::LongText | ColumnType::Bytes => {
                builder = builder
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path.clone(), Encoding::DELTA_BYTE_ARRAY)
                    .set_column_compression(path.clone(), thorough_compression())
                    .set_column_data_page_size_limit(path.clone(), LONG_PAGE)
                    .set_column_statistics_enabled(path, EnabledStatistics::None);
            }
            ColumnType::Id => {
                builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
            }
            ColumnType::IdList => {
                let path = ColumnPath::new(vec![column.name.into(), "list".into(), "element".into()]);
                builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
            }
            _ => {}
        }
    }
    builder.build()
}

#[cfg(feature = "zstd")]
fn compression() -> Compression {
    // For mostly distinct numbers and JSON, level 1 is a tenth to a quarter smaller than level 3, which looks
    // for matches that do not pay.
    Compression::ZSTD(parquet::basic::ZstdLevel::try_new(1).unwrap_or_default())
}

/// The compression of the columns that take most of a file.
#[cfg(feature = "zstd")]
fn thorough_compression() -> Compression {
    Compression::ZSTD(parquet::basic::ZstdLevel::try_new(6).unwrap_or_default())
}

#[cfg(not(feature = "zstd"))]
fn thorough_compression() -> Compression {
    compression()
}

#[cfg(not(feature = "zstd"))]
fn compression() -> Compression {
    Compression::GZIP(parquet::basic::GzipLevel::default())
}
