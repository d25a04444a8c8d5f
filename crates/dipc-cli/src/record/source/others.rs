//! Those that come to the port while one is recorded: programs that the program starts, above all. They must not wait for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use dipc_client::{Deadline, PortEvent, PortRuntime, PortServer};

use super::TICK;
use crate::render::report;

/// A thread that serves the port until this is dropped.
pub(crate) struct Others {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Others {
    /// Calls `arrived` for each runtime that comes from now on.
    pub(crate) fn serve(port: PortServer, mut arrived: impl FnMut(PortRuntime) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let over = Arc::clone(&over);
            move || {
                while !over.load(Ordering::Acquire) {
                    match port.next(Deadline::after(TICK)) {
                        Ok(PortEvent::Connected(runtime)) => arrived(runtime),
                        Ok(PortEvent::Error(error)) => report::warning(error),
                        Ok(_) => {}
                        Err(error) if error.is_deadline() => {}
                        Err(error) => return report::warning(error),
                    }
                }
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was printed where it happened.
            let _ = thread.join();
        }
    }
}
