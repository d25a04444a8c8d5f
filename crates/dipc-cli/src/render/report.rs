//! Standard error: errors with their help, warnings, and notes on progress.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};

use anstyle::{AnsiColor, Style};

use crate::exit::Failure;
use crate::render::escape::{escape_controls, escape_output};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

/// The amount of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    Usual,
    Verbose,
}

/// One value for the whole program: it is set once, before the first message.
static VERBOSITY: AtomicU8 = AtomicU8::new(Verbosity::Usual as u8);

/// Sets how much is said from here on.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    VERBOSITY.store(verbosity as u8, Ordering::Relaxed);
}

/// Whether anything but errors is said.
pub(crate) fn is_quiet() -> bool {
    VERBOSITY.load(Ordering::Relaxed) == Verbosity::Quiet as u8
}

/// The last word of a command that failed.
pub(crate) fn failure(failure: &Failure) {
    labelled(ERROR, "error", failure);
    if let Some(text) = &failure.help {
        help(text);
    }
}

/// Prints a warning; the command goes on.
pub(crate) fn warning(text: impl fmt::Display) {
    if !is_quiet() {
        labelled(WARNING, "warning", text);
    }
}

/// Prints the remedy for the error or warning before.
pub(crate) fn help(text: impl fmt::Display) {
    labelled(HELP, "help", text);
}

/// Prints one line of progress.
pub(crate) fn note(text: impl fmt::Display) {
    if !is_quiet() {
        line(&text);
    }
}

/// Several lines, which are this program's own.
pub(crate) fn lines(text: impl fmt::Display) {
    if !is_quiet() {
        write(&text.to_string());
    }
}

/// Whether more is wanted than usual.
pub(crate) fn is_verbose() -> bool {
    VERBOSITY.load(Ordering::Relaxed) == Verbosity::Verbose as u8
}

/// Prints a line only with `--verbose`.
pub(crate) fn detail(text: impl fmt::Display) {
    if is_verbose() {
        line(&text);
    }
}

fn labelled(style: Style, label: &str, text: impl fmt::Display) {
    write(&format!("{style}{label}{style:#}: {}\n", escape_controls(&text.to_string())));
}

/// Text may hold names that somebody else chose.
fn line(text: &dyn fmt::Display) {
    write(&format!("{}\n", escape_controls(&text.to_string())));
}

/// The only way to standard error. Nobody can be told that it is gone.
fn write(text: &str) {
    #[allow(clippy::disallowed_methods, reason = "escaped on this line")]
    let _ = write!(anstream::stderr(), "{}", escape_output(text));
}
