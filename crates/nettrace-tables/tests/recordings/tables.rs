//! Tables, read back by the Parquet crate's own reader.

use std::fs::File;
use std::path::{Path, PathBuf};

use nettrace_tables::{Dataset, Input, Labels, Options, Plan};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

/// A data set in a directory of its own.
pub(crate) struct Written {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) plan: Plan,
}

/// Exports recordings, each given by name and bytes.
pub(crate) fn export(recordings: &[(&str, &[u8])], options: Options) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path(), recordings);
    let dataset = Dataset::new(folder.path().join("data"), options);
    let plan = dataset.plan(inputs).unwrap();
    for shard in &plan.shards {
        dataset.export(shard).unwrap();
    }
    Written { folder, plan }
}

pub(crate) fn inputs(folder: &Path, recordings: &[(&str, &[u8])]) -> Vec<Input> {
    let mut labels = Labels::default();
    labels.insert("service", "shop/eu");
    labels.insert("version", "1.4");
    let input = |(name, bytes): &(&str, &[u8])| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        Input::open(&path, labels.clone()).unwrap()
    };
    recordings.iter().map(input).collect()
}

impl Written {
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// All rows of a table.
    pub(crate) fn rows(&self, table: &str) -> Vec<Row> {
        let rows = |reader: SerializedFileReader<File>| {
            reader.get_row_iter(None).unwrap().map(Result::unwrap).collect::<Vec<_>>()
        };
        self.readers(table).flat_map(rows).collect()
    }

    pub(crate) fn count(&self, table: &str) -> i64 {
        self.readers(table).map(|reader| reader.metadata().file_metadata().num_rows()).sum()
    }

    /// Reads that column alone.
    pub(crate) fn column(&self, table: &str, column: &str) -> Vec<Field> {
        let fields = |reader: SerializedFileReader<File>| {
            let schema = reader.metadata().file_metadata().schema_descr().root_schema().clone();
            let of_column =
                schema.get_fields().iter().find(|field| field.name() == column).expect("a column");
            let projection = Type::group_type_builder(schema.name()).with_fields(vec![of_column.clone()]);
            let rows = reader.get_row_iter(Some(projection.build().unwrap())).unwrap();
            rows.map(|row| field(&row.unwrap(), column)).collect::<Vec<_>>()
        };
        self.readers(table).flat_map(fields).collect()
    }

    fn readers(&self, table: &str) -> impl Iterator<Item = SerializedFileReader<File>> {
        let paths = files(&self.root().join(table)).into_iter();
        paths.map(|path| SerializedFileReader::new(File::open(path).unwrap()).unwrap())
    }

    pub(crate) fn sum(&self, table: &str, column: &str) -> i64 {
        self.column(table, column)
            .iter()
            .map(|field| if let Field::Long(value) = field { *value } else { 0 })
            .sum()
    }
}

pub(crate) fn field(row: &Row, column: &str) -> Field {
    row.get_column_iter().find(|(name, _)| *name == column).expect("a column").1.clone()
}

/// All files below a directory, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The content of all files, by path below the directory.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let below = |path: &PathBuf| path.strip_prefix(folder).unwrap().to_owned();
    files(folder).iter().map(|path| (below(path), std::fs::read(path).unwrap())).collect()
}
