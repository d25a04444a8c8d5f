//! Output: standard output and error, result files, tables, charts, JSON and units.
//!
//! # Modules
//!
//! - `output`, `messages`: the only access to standard output and error. `escape`: untrusted text.
//! - `destination`, `output_file`, `output_link`: result files, which get their names when they are complete.
//!   `background_writer`: writing on a thread of its own.
//! - `browser`: opening pages.
//! - `table`, `charts`, `markdown`, `screen`, `list_screen`, `live_line`, `units`, `width`: output for
//!   people. `frame_name`, `command_line`, `shell`: names, command lines, and printed commands.

pub(crate) mod background_writer;
pub(crate) mod browser;
pub(crate) mod charts;
pub(crate) mod command_line;
pub(crate) mod destination;
pub(crate) mod escape;
pub(crate) mod frame_name;
pub(crate) mod list_screen;
pub(crate) mod live_line;
pub(crate) mod markdown;
pub(crate) mod messages;
pub(crate) mod output;
pub(crate) mod output_file;
mod output_link;
pub(crate) mod screen;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod units;
pub(crate) mod width;
