//! `dipc schema`: the views of a data set as SQL.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use nettrace_tables::views::{self, Dialect};

use crate::exit::{Exit, Outcome};
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
    output::print(views::views(dialect, &args.dir.to_string_lossy()))?;
    Ok(Exit::Done)
}
