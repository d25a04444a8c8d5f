//! Standard error: errors with their help, warnings, and notes on progress.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::marker::PhantomData;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstream::AutoStream;
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

/// The verbosity of the whole program, set once, before the first message.
static VERBOSITY: AtomicU8 = AtomicU8::new(Verbosity::Usual as u8);

/// Sets the amount of messages.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    VERBOSITY.store(verbosity as u8, Ordering::Relaxed);
}

/// True if messages show the time of day, as services' messages do.
static HAS_TIMES: AtomicBool = AtomicBool::new(false);

/// Begins each further message with the time of day, except for errors that end the program.
pub(crate) fn show_times() {
    HAS_TIMES.store(true, Ordering::Relaxed);
}

/// The beginning of a message.
fn time_of_day() -> String {
    if !HAS_TIMES.load(Ordering::Relaxed) {
        return String::new();
    }
    jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z ").to_string()
}

/// Returns true if only errors are printed, or if this thread's warnings are kept.
pub(crate) fn is_quiet() -> bool {
    VERBOSITY.load(Ordering::Relaxed) == Verbosity::Quiet as u8 || (is_kept() && !is_verbose())
}

/// Warnings for a command that shows them in its result. Clones share one list.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptWarnings(Arc<Mutex<Vec<String>>>);

thread_local! {
    /// The list for the warnings of this thread.
    static KEPT: RefCell<Option<KeptWarnings>> = const { RefCell::new(None) };
}

/// The guard of a thread that keeps its warnings, and prints its messages again once this is dropped.
#[derive(Debug)]
pub(crate) struct Keeping {
    before: Option<KeptWarnings>,
    /// It belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl KeptWarnings {
    /// Adds the warnings of this thread from now on, and leaves out its other messages; with `--verbose`, all
    /// are printed besides.
    pub(crate) fn keep(&self) -> Keeping {
        Keeping { before: KEPT.replace(Some(self.clone())), _not_send: PhantomData }
    }

    /// Takes the warnings so far.
    pub(crate) fn take(&self) -> Vec<String> {
        mem::take(&mut *self.list())
    }

    fn list(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        KEPT.set(self.before.take());
    }
}

fn is_kept() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Prints the error of a failed command, and its help.
pub(crate) fn failure(failure: &Failure) {
    HAS_TIMES.store(false, Ordering::Relaxed);
    labelled(ERROR, "error", failure);
    for candidate in &failure.candidates {
        line(&candidate);
    }
    if let Some(text) = &failure.help {
        help(text);
    }
}

/// Prints a warning; the command continues.
pub(crate) fn warning(text: impl fmt::Display) {
    let text = text.to_string();
    KEPT.with_borrow(|kept| kept.iter().for_each(|kept| kept.list().push(text.clone())));
    effect(text);
}

/// Prints a warning of an effect of the preceding one, which explains both.
pub(crate) fn effect(text: impl fmt::Display) {
    if !is_quiet() {
        labelled(WARNING, "warning", text);
    }
}

/// Prints the remedy for the preceding error or warning.
pub(crate) fn help(text: impl fmt::Display) {
    if !is_kept() || is_verbose() {
        labelled(HELP, "help", text);
    }
}

/// Prints one line of progress.
pub(crate) fn note(text: impl fmt::Display) {
    if !is_quiet() {
        line(&text);
    }
}

/// Prints a question, after which the user types the answer.
pub(crate) fn prompt(text: &str) {
    write(text);
}

/// Returns true if standard error is a terminal that can overwrite a line.
pub(crate) fn can_overwrite() -> bool {
    // Windows sets no TERM.
    let is_dumb = std::env::var("TERM").map_or(cfg!(not(windows)), |term| term == "dumb");
    #[allow(clippy::disallowed_methods, reason = "its kind is asked for, nothing is written")]
    let is_terminal = io::stderr().is_terminal();
    is_terminal && !is_dumb
}

/// Writes to the terminal as it is, including sequences that move the cursor. The text is this program's own.
pub(crate) fn control_terminal(text: &str) {
    #[allow(clippy::disallowed_methods, reason = "no text from outside")]
    let _ = AutoStream::always(io::stderr().lock()).write_all(text.as_bytes());
}

/// Prints several lines, which are this program's own.
pub(crate) fn lines(text: impl fmt::Display) {
    if !is_quiet() {
        write(&text.to_string());
    }
}

/// Returns true if details are printed.
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
    write(&format!("{}{style}{label}{style:#}: {}\n", time_of_day(), escape_controls(&text.to_string())));
}

/// Escapes a line: it may hold names from outside.
fn line(text: &dyn fmt::Display) {
    write(&format!("{}{}\n", time_of_day(), escape_controls(&text.to_string())));
}

/// Messages held back while the terminal shows a screen.
static HELD: Mutex<Option<HeldMessages>> = Mutex::new(None);

/// Maximum number of messages to hold back; further ones are only counted.
const MAX_HELD: usize = 100;

#[derive(Debug, Default)]
struct HeldMessages {
    texts: Vec<String>,
    left_out: usize,
}

/// The guard of held-back messages, which are printed when it is dropped.
#[derive(Debug)]
pub(crate) struct Hold(());

/// Holds messages back until the guard is dropped, while a screen is drawn on the terminal.
pub(crate) fn hold() -> Hold {
    *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(HeldMessages::default());
    Hold(())
}

/// Returns the number of held-back messages, and the last of them, without style.
pub(crate) fn last_held() -> (usize, String) {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(held) = &*held else { return (0, String::new()) };
    let last = held.texts.last().map_or("", |text| text.trim_end());
    (held.texts.len() + held.left_out, anstream::adapter::strip_str(last).to_string())
}

impl Drop for Hold {
    fn drop(&mut self) {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(held) = held else { return };
        held.texts.iter().for_each(|text| write(text));
        if held.left_out > 0 {
            warning(format_args!("{} further messages are left out", held.left_out));
        }
    }
}

/// Writes a message to standard error. If it is closed, there is nowhere to report that.
fn write(text: &str) {
    if let Some(held) = &mut *HELD.lock().unwrap_or_else(PoisonError::into_inner) {
        if held.texts.len() < MAX_HELD {
            held.texts.push(text.to_owned());
        } else {
            held.left_out += 1;
        }
        return;
    }
    #[allow(clippy::disallowed_methods, reason = "escaped on this line")]
    let _ = write!(anstream::stderr(), "{}", escape_output(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_kept_by_the_innermost_guard_of_the_thread() {
        let [outer, inner] = [(); 2].map(|()| KeptWarnings::default());
        let keeping = outer.keep();
        warning("one");
        let keeping_two = inner.keep();
        warning("two");
        effect("of two");
        note("a note");
        assert!(is_quiet());
        assert_eq!(std::thread::spawn(is_kept).join().ok(), Some(false));
        drop(keeping_two);
        warning("three");
        drop(keeping);
        assert_eq!(
            (inner.take(), outer.take()),
            (vec!["two".to_owned()], vec!["one".to_owned(), "three".to_owned()])
        );
        assert!(!is_kept());
    }
}
