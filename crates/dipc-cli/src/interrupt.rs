//! Ctrl-C and its relatives, counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::exit::{Exit, Failure};

/// How often the user has asked for an end since this was made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts {
    count: Arc<AtomicUsize>,
    hung_up: Arc<AtomicBool>,
}

/// When even the second request has led to nothing, the program is stuck where it cannot look, in a write perhaps.
const PATIENCE: usize = 3;

impl Interrupts {
    /// Counts SIGINT, SIGTERM and SIGHUP from now on, instead of dying of them.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let interrupts = Self::default();
        let heard = interrupts.clone();
        watch(move |hung_up| {
            heard.hung_up.fetch_or(hung_up, Ordering::Relaxed);
            if heard.count.fetch_add(1, Ordering::Relaxed) + 1 >= PATIENCE {
                std::process::exit(i32::from(Exit::Failed.code()));
            }
        })
        .map_err(unwatched)?;
        Ok(interrupts)
    }

    /// How many there were.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether one of them was that the terminal is gone: nobody is there to ask again.
    pub(crate) fn hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Relaxed)
    }
}

/// Calls `heard` for each SIGINT, SIGTERM and SIGHUP from now on, none of which ends the program any more.
pub(crate) fn on_each_signal(mut heard: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    watch(move |_| heard()).map_err(unwatched)
}

#[allow(clippy::needless_pass_by_value, reason = "what map_err hands over")]
fn unwatched(error: io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("watch for signals: {error}"))
}

/// Tells of each, and whether it is SIGHUP.
#[cfg(unix)]
fn watch(mut heard: impl FnMut(bool) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || signals.forever().for_each(|signal| heard(signal == SIGHUP)));
    Ok(())
}

/// Ctrl-C and Ctrl-Break. There is nothing here that a thread could wait for.
#[cfg(windows)]
fn watch(mut heard: impl FnMut(bool) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&signalled))?;
    }
    thread::spawn(move || {
        loop {
            thread::sleep(PAUSE);
            if signalled.swap(false, Ordering::Relaxed) {
                heard(false);
            }
        }
    });
    Ok(())
}
