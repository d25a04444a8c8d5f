//! Single events: as JSON objects for programs, as columns for people.
//!
//! Nothing here allocates for each event. No text can steer a terminal: control characters are escaped as
//! JSON escapes them.
//!
//! ```no_run
//! use nettrace_export::events::{JsonLines, LineContent};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
//! let mut lines = JsonLines::new(LineContent::default());
//! let mut line = Vec::new();
//! while let Some(event) = events.next()? {
//!     line.clear();
//!     lines.push(&mut line, &event);
//!     println!("{}", String::from_utf8_lossy(&line));
//! }
//! # Ok(())
//! # }
//! ```

mod fields;
mod line;
mod metadata_cache;

pub use line::{JsonLines, LineContent, StackSymbols, TableLines};
