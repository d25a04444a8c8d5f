//! Output: standard output and error, files of results, tables, charts, JSON and units.

pub(crate) mod behind;
pub(crate) mod charts;
pub(crate) mod command_line;
pub(crate) mod destination;
pub(crate) mod escape;
pub(crate) mod frame_name;
pub(crate) mod live_line;
pub(crate) mod markdown;
pub(crate) mod messages;
pub(crate) mod output;
pub(crate) mod output_file;
pub(crate) mod screen;
pub(crate) mod shell;
pub(crate) mod staged_file;
pub(crate) mod table;
pub(crate) mod units;
pub(crate) mod width;
