//! Ctrl-C and its relatives, counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::exit::{Exit, Failure};

/// How often the user has asked for an end since this was made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts {
    count: Arc<AtomicUsize>,
}

/// When even the second request has led to nothing, the program is stuck where it cannot look, in a write perhaps.
const PATIENCE: usize = 3;

impl Interrupts {
    /// Counts SIGINT, SIGTERM and SIGHUP from now on, instead of dying of them.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let interrupts = Self::default();
        let count = Arc::clone(&interrupts.count);
        on_each_signal(move || {
            if count.fetch_add(1, Ordering::Relaxed) + 1 >= PATIENCE {
                std::process::exit(i32::from(Exit::Failed.code()));
            }
        })?;
        Ok(interrupts)
    }

    /// How many there were.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// Calls `heard` for each SIGINT, SIGTERM and SIGHUP from now on, none of which ends the program any more.
pub(crate) fn on_each_signal(heard: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    watch(heard).map_err(|error| Failure::new(Exit::Failed, format_args!("watch for signals: {error}")))
}

#[cfg(unix)]
fn watch(mut heard: impl FnMut() + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || signals.forever().for_each(|_| heard()));
    Ok(())
}

/// Ctrl-C and Ctrl-Break. There is nothing here that a thread could wait for.
#[cfg(windows)]
fn watch(mut heard: impl FnMut() + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
    let signalled = Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&signalled))?;
    }
    thread::spawn(move || {
        loop {
            thread::sleep(PAUSE);
            if signalled.swap(false, Ordering::Relaxed) {
                heard();
            }
        }
    });
    Ok(())
}
