//! Opening a page in the user's browser.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::render::messages;

/// The command that opens a file in the program that the user has chosen for its kind.
const OPENER: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else if cfg!(windows) {
    // `start` takes its first quoted argument as the title of a window.
    &["cmd", "/c", "start", ""]
} else {
    &["xdg-open"]
};

/// Opens a page. If that fails, a warning says so: the page is there in any case.
pub(crate) fn open(page: &Path) {
    // An absolute path is never mistaken for an option or an address.
    let started = std::path::absolute(page).and_then(|path| start(path.as_os_str()));
    warn_if_failed(started, &page.display());
}

/// Opens the page at an address of this program's own.
pub(crate) fn open_url(url: &str) {
    warn_if_failed(start(url.as_ref()), &url);
}

fn warn_if_failed(started: io::Result<()>, page: &dyn fmt::Display) {
    if let Err(error) = started {
        messages::warning(format_args!("--open: {}: {error}", OPENER.first().copied().unwrap_or_default()));
        messages::help(format_args!("open {page} in a browser"));
    }
}

/// Starts the opener and does not wait for it: it may live as long as the browser.
fn start(page: &OsStr) -> io::Result<()> {
    let (program, arguments) = OPENER.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(|_| ())
}
