//! `dipc export`: recordings as tables that SQL engines read.

#[cfg(feature = "export")]
mod run;
#[cfg(feature = "cloud")]
mod store;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use nettrace_edit::Redaction;
use nettrace_tables::PromotedColumn;

use crate::args::format::Format;
use crate::exit::Outcome;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The recordings
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "files_from")]
    pub(crate) file: Vec<PathBuf>,
    /// The directory of the tables, created if missing; or s3://BUCKET/FOLDER, gs://BUCKET/FOLDER,
    /// az://CONTAINER/FOLDER
    #[arg(long, value_name = "DIR|URL", value_hint = ValueHint::DirPath)]
    pub(crate) to: PathBuf,
    /// Also export the recordings that this file lists, one per line; '-' is standard input
    #[arg(long, value_name = "LIST", value_hint = ValueHint::FilePath)]
    pub(crate) files_from: Option<PathBuf>,
    /// A label of the recordings: service=shop, version=1.4, pod=shop-7; may be given several times. Further
    /// labels are read from FILE.json next to each recording
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// Also write rows for the events by which the runtime lists its methods at the end of a recording
    #[arg(long)]
    pub(crate) rundown: bool,
    /// Leave out values that may hold secrets: fields, payloads, messages of exceptions, tags of counters,
    /// command lines, promoted strings
    #[arg(long)]
    pub(crate) drop_fields: bool,
    /// Replace the text of a class (command-lines, paths, user-names, exception-messages, sql, urls) or of a
    /// field (Provider/Event.field, where * matches any text). Each letter becomes an x; may be given several
    /// times
    #[arg(long, value_name = "CLASS|FIELD")]
    pub(crate) redact: Vec<Redaction>,
    /// Add a column for a field of events, Provider/Event.field[:text|long|double|bool]:
    /// Shop/Order.Total:double becomes events.p_shop_order_total. It stays for later exports; may be given
    /// several times
    #[arg(long, value_name = "FIELD[:TYPE]")]
    pub(crate) promote: Vec<PromotedColumn>,
    /// Number of shards written at the same time, each taking some 50 MB of memory [default: one per
    /// processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Format of the summary
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Splits `name=value`.
fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not NAME=VALUE")),
    }
}

/// Writes the tables.
#[cfg(feature = "export")]
pub(crate) fn run(args: &ExportArgs) -> Outcome {
    run::run(args)
}

/// Runs the program that was built with the table writer.
#[cfg(not(feature = "export"))]
pub(crate) fn run(_: &ExportArgs) -> Outcome {
    crate::process::companion::run_fleet("export", "the writer of tables")
}
