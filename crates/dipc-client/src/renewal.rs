//! A session that enables the providers of other sessions again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Deadline, Error, SessionConfig, Target};

/// Maximum duration of a read between checks for the end.
const TICK: Duration = Duration::from_millis(250);
/// The time for which the end of its session is awaited when a renewal is dropped.
const END: Duration = Duration::from_secs(3);
/// The stack of its thread.
const STACK: usize = 256 << 10;

/// A session that enables the providers of other sessions again, with their arguments. Its own stream is read
/// and discarded; the events that it enables are in the streams of the others.
///
/// When a session ends, the runtime sends each of its EventSources a command without arguments, even if other
/// sessions still use that EventSource. Sessions with filters (`Microsoft-Diagnostics-DiagnosticSource`,
/// `Microsoft-Extensions-Logging`) take it as the end of all sessions, and are silent from then on. The
/// arguments last until the session that sent them ends, so a renewal has to live as long as the sessions
/// that it is for.
///
/// ```no_run
/// use dipc_client::{Providers, Renewal, SessionConfig, Target};
///
/// let mut renewal = Renewal::new(Target::from_pid(4711)?);
/// // Whenever another client has ended its session of the same source.
/// renewal.renew(SessionConfig::new(Providers::parse("System.Diagnostics.Metrics")?));
/// println!("{:?}", renewal.state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Renewal {
    target: Target,
    worker: Option<Worker>,
}

/// The thread of a renewal's session.
#[derive(Debug)]
struct Worker {
    is_over: Arc<AtomicBool>,
    state: Arc<Mutex<RenewalState>>,
    ended: mpsc::Receiver<()>,
    thread: JoinHandle<()>,
}

/// The state of a [`Renewal`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RenewalState {
    /// Not requested so far.
    #[default]
    Idle,
    /// The session is being started.
    Starting,
    /// The providers are enabled again.
    Done,
    /// The session could not be started, for this reason.
    Failed(String),
}

impl Renewal {
    /// Creates a renewal without a session.
    pub const fn new(target: Target) -> Self {
        Self { target, worker: None }
    }

    /// Starts a session of `config`, in a thread of its own, after the end of the earlier session, which also
    /// disables the providers.
    pub fn renew(&mut self, config: SessionConfig) {
        let earlier = self.worker.take().map(Worker::end);
        let (is_over, state) =
            (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(RenewalState::Starting)));
        let (has_ended, ended) = mpsc::channel::<()>();
        let (over, result, target) = (Arc::clone(&is_over), Arc::clone(&state), self.target.clone());
        let run = move || {
            // A panic there is reported there.
            let _ = earlier.map(JoinHandle::join);
            match target.start_session(&config) {
                Ok(session) => {
                    *lock(&result) = RenewalState::Done;
                    discard(session, &over);
                }
                Err(error) => *lock(&result) = RenewalState::Failed(error.to_string()),
            }
            drop(has_ended);
        };
        let thread = thread::Builder::new().name("renewal".to_owned()).stack_size(STACK);
        // Without a thread it stays idle, and is requested again later.
        self.worker = thread.spawn(run).ok().map(|thread| Worker { is_over, state, ended, thread });
    }

    /// The state of the last request.
    pub fn state(&self) -> RenewalState {
        self.worker.as_ref().map_or(RenewalState::Idle, |worker| lock(&worker.state).clone())
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.is_over.store(true, Ordering::Release);
            // The channel only ever disconnects.
            let _ = worker.ended.recv_timeout(END);
        }
    }
}

impl Worker {
    /// Has the session end, and returns its thread.
    fn end(self) -> JoinHandle<()> {
        self.is_over.store(true, Ordering::Release);
        self.thread
    }
}

/// Reads a session until it ends or is to end. Its drop stops it.
fn discard(mut session: crate::Session, is_over: &AtomicBool) {
    let mut buffer = vec![0; 16 << 10];
    while !is_over.load(Ordering::Acquire) {
        let result: Result<Option<usize>, Error> = session.poll_read(&mut buffer, Deadline::after(TICK));
        if !matches!(result, Ok(None | Some(1..))) {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
