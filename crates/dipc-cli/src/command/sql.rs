//! `dipc sql`: a query over a data set, by the DuckDB that is installed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use nettrace_tables::views::{self, Dialect};

use crate::exit::{Exit, Failure, Outcome};
use crate::process::companion;

use super::schema;

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// The directory of the tables
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// The query
    query: String,
    /// Format of the rows
    #[arg(long, value_enum, default_value_t)]
    format: RowFormat,
}

/// The format of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum RowFormat {
    /// For people
    #[default]
    Table,
    /// An array of objects
    Json,
    /// Comma-separated, with a header line
    Csv,
}

pub(crate) fn run(args: &SqlArgs) -> Outcome {
    // For an address, the engine reports whether there is a data set.
    let is_address = args.dir.to_string_lossy().contains("://");
    if !is_address && !args.dir.join("recordings").is_dir() {
        return Err(Failure::new(
            Exit::Failed,
            format_args!("sql: {}: there is no data set", args.dir.display()),
        )
        .with_help("dipc export FILE… --to DIR writes one"));
    }
    let mut arguments: Vec<OsString> = vec!["-batch".into()];
    match args.format {
        RowFormat::Table => {}
        RowFormat::Json => arguments.push("-json".into()),
        RowFormat::Csv => arguments.push("-csv".into()),
    }
    arguments.push("-c".into());
    let views = views::views(Dialect::DuckDb, &args.dir.to_string_lossy(), &schema::promoted(&args.dir)?);
    arguments.push(format!("{views}\n{}", args.query).into());
    companion::run("duckdb", arguments).unwrap_or_else(|| {
        Err(Failure::new(Exit::Failed, "sql: duckdb is not in PATH").with_help(
            "get it from https://duckdb.org/install, or print the views for another engine: dipc schema DIR --dialect",
        ))
    })
}
