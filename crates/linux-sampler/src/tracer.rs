//! The thread that traces a process.
//!
//! # Source
//! ptrace(2): "a tracee is a thread", and so is its tracer, from which alone the kernel takes requests.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::error::Error;
use crate::tracing::Tracing;

type Job = Box<dyn FnOnce(&mut Tracing) + Send>;

/// A thread that does all work on a trace, so that its results can be held by any other. The trace has ended
/// when this is dropped.
#[derive(Debug)]
pub(crate) struct Tracer {
    /// `None` once the thread is to end.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Tracer {
    pub(crate) fn start() -> Result<Self, Error> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = thread::Builder::new().name("tracer".to_owned()).spawn(move || {
            let mut tracing = Tracing::default();
            for job in queue {
                job(&mut tracing);
            }
        });
        let thread = thread.map_err(Error::io("starting the thread that traces"))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Does work on the thread, and waits for its result.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tracing) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, result) = mpsc::sync_channel(1);
        let job: Job = Box::new(move |tracing| {
            let _ = sender.send(work(tracing));
        });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        let ended = || Error::io("the thread that traces")(io::ErrorKind::BrokenPipe.into());
        if sent { result.recv().unwrap_or_else(|_| Err(ended())) } else { Err(ended()) }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
