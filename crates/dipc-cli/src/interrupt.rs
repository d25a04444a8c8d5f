//! Ctrl-C and its relatives, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

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
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|error| Failure::new(Exit::Failed, format_args!("watch for signals: {error}")))?;
        let count = Arc::clone(&interrupts.count);
        thread::spawn(move || {
            for _ in signals.forever() {
                if count.fetch_add(1, Ordering::Relaxed) + 1 >= PATIENCE {
                    std::process::exit(Exit::Failed as i32);
                }
            }
        });
        Ok(interrupts)
    }

    /// How many there were.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
