//! Runtimes that connect to a port while another one is recorded, above all the runtimes of programs that the
//! recorded program starts. None of them may wait forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use dipc_client::{Deadline, PortEvent, PortRuntime, PortServer};

use super::TICK;
use crate::record::session::resume_other;
use crate::render::messages;

/// A thread that serves the port until this is dropped.
#[derive(Debug)]
pub(crate) struct PortWatcher {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PortWatcher {
    /// Resumes each runtime that connects from now on.
    pub(crate) fn resuming(port: PortServer) -> Self {
        Self::start(port, |runtime| resume_other(&runtime))
    }

    /// Calls `arrived` for each runtime that connects from now on.
    pub(crate) fn start(port: PortServer, mut arrived: impl FnMut(PortRuntime) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let over = Arc::clone(&over);
            move || {
                while !over.load(Ordering::Acquire) {
                    match port.next(Deadline::after(TICK)) {
                        Ok(PortEvent::Connected(runtime)) => arrived(runtime),
                        Ok(PortEvent::Error(error)) => messages::warning(error),
                        Ok(_) => {}
                        Err(error) if error.is_deadline() => {}
                        Err(error) => return messages::warning(error),
                    }
                }
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for PortWatcher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was printed where it happened.
            let _ = thread.join();
        }
    }
}
