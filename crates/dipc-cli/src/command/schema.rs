//! `dipc schema`: the views of a data set as SQL.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use nettrace_tables::views::{self, Dialect};
use nettrace_tables::{PROMOTED_FOLDER, PromotedColumn};

use crate::exit::{Exit, Failure, Outcome};
use crate::render::output;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The directory of the tables
    #[arg(value_hint = ValueHint::DirPath, default_value = "data")]
    dir: PathBuf,
    /// The engine that reads the SQL
    #[arg(long, value_enum, default_value_t)]
    dialect: DialectArg,
}

/// An engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum DialectArg {
    /// DuckDB
    #[default]
    Duckdb,
    /// Apache DataFusion
    Datafusion,
    /// Apache Spark
    Spark,
    /// ClickHouse
    Clickhouse,
}

pub(crate) fn run(args: &SchemaArgs) -> Outcome {
    let dialect = match args.dialect {
        DialectArg::Duckdb => Dialect::DuckDb,
        DialectArg::Datafusion => Dialect::DataFusion,
        DialectArg::Spark => Dialect::Spark,
        DialectArg::Clickhouse => Dialect::ClickHouse,
    };
    output::print(views::views(dialect, &args.dir.to_string_lossy(), &promoted(&args.dir)?))?;
    Ok(Exit::Done)
}

/// Returns the columns that were promoted in the data set of a directory; empty if the directory does not
/// exist.
pub(super) fn promoted(dir: &Path) -> Result<Vec<PromotedColumn>, Failure> {
    let Ok(entries) = fs::read_dir(dir.join(PROMOTED_FOLDER)) else { return Ok(Vec::new()) };
    let mut columns = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Failure::new(Exit::Failed, error))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = fs::read_to_string(&path);
        let text =
            text.map_err(|error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display())))?;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let column = value["field"].as_str().and_then(|field| field.parse().ok());
        columns.push(column.ok_or_else(|| {
            Failure::new(Exit::Failed, format_args!("{}: this is not a promoted column", path.display()))
                .with_help("remove the file, and dipc export --promote the field again")
        })?);
    }
    columns.sort();
    Ok(columns)
}
