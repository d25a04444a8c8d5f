//! The samples of all intervals as a flame graph.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use nettrace_export::{Format, WriteOptions};

use crate::command::top::history::History;
use crate::exit::Failure;
use crate::render::destination::Destination;
use crate::render::output_file::NameOrigin;

/// Writes all samples since the session of the process began. Without a path, the file is created in the
/// current folder and named after the process.
pub(super) fn write(history: &History, path: Option<&Path>, is_one_of_many: bool) -> Result<(), Failure> {
    let number =
        history.process.pid.map_or_else(|| history.process.number.to_string(), |pid| pid.to_string());
    let (path, origin) = match path {
        Some(path) if is_one_of_many => (beside(path, &number), NameOrigin::Derived),
        Some(path) => (path.to_owned(), NameOrigin::User),
        None => (PathBuf::from(format!("top-{number}.html")), NameOrigin::Chosen),
    };
    let mut out = Destination::create((path.as_os_str() != "-").then_some(&*path), origin)?;
    let title = history.process.title();
    let options = WriteOptions::new(&title, concat!("dipc ", env!("CARGO_PKG_VERSION")));
    let written = nettrace_export::write(history.sums.sum(), Format::Flamegraph, options, &mut out);
    match written.and_then(|()| out.flush()) {
        Ok(()) => out.close(),
        Err(error) => Err(out.failed(&error)),
    }
}

/// The path with a number before its extension.
fn beside(path: &Path, number: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{number}.{extension}"))
}
