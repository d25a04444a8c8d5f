//! Roles of threads, as far as events state them.

use core::fmt;

use hashbrown::{HashMap, HashSet};
use nettrace::{Event, ThreadId};

use crate::enums::{StartupFlags, ThreadFlags};
use crate::provider::Provider;
use crate::sets;
use crate::view::ClrEvent;

/// The role of a thread.
///
/// Prints as TraceEvent does, such as `.NET ThreadPool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ThreadRole {
    /// Runs work of the thread pool.
    PoolWorker,
    /// Runs I/O completions of the thread pool.
    PoolIo,
    /// Runs finalizers.
    Finalizer,
    /// Collects in the background.
    BackgroundGc,
    /// Collects one heap of a server collector.
    ServerGc(u32),
}

impl fmt::Display for ThreadRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoolWorker => f.write_str(".NET ThreadPool"),
            Self::PoolIo => f.write_str(".NET IO ThreadPool Worker"),
            Self::Finalizer => f.write_str(".NET Finalizer Thread"),
            Self::BackgroundGc => f.write_str(".NET Background GC Thread"),
            Self::ServerGc(heap) => write!(f, ".NET Server GC Thread({heap})"),
        }
    }
}

/// A process and one of its threads.
type ThreadKey = (Option<u64>, ThreadId);

/// The roles of the threads of a recording. The first role stated for a thread is kept.
///
/// Memory: some 50 bytes for each thread. Names that V6 recordings give are
/// [`Thread::name`](nettrace::Thread::name).
///
/// ```no_run
/// use clr_events::ThreadRoles;
///
/// let mut roles = ThreadRoles::default();
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// events.for_each(|event| roles.add(&event))?;
/// for thread in events.threads() {
///     println!("{} {:?}", thread.id(), roles.get(thread.process_id(), thread.id()));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct ThreadRoles {
    roles: HashMap<ThreadKey, ThreadRole>,
    /// Threads that marked a heap: they are the collector's own if it is a server's, which a later event may
    /// state.
    marked: HashMap<ThreadKey, u32>,
    /// Processes with a server collector.
    servers: HashSet<Option<u64>>,
}

impl ThreadRoles {
    /// Adds the roles that an event states. Most events state none.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        if sets::THREAD_ROLES.contains(event.metadata()) {
            self.add_role(event);
        }
    }

    #[inline(never)]
    fn add_role(&mut self, event: &Event<'_>) {
        let view = ClrEvent::of(event).ok().flatten();
        self.add_decoded(event, view.as_ref());
    }

    /// Returns the number of threads and processes with known facts.
    pub fn len(&self) -> usize {
        self.roles.len().saturating_add(self.marked.len()).saturating_add(self.servers.len())
    }

    /// Returns true if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the role that a decoded event of [`sets::THREAD_ROLES`] states; `view` is `None` if the event is
    /// cut or does not have a view.
    pub fn add_decoded(&mut self, event: &Event<'_>, view: Option<&ClrEvent<'_>>) {
        let process = event.process_id();
        let this = (process, event.thread_id());
        let (thread, role) = match view {
            Some(ClrEvent::ThreadCreated(thread) | ClrEvent::ThreadDcStop(thread)) => {
                let role = if thread.flags.contains(ThreadFlags::FINALIZER) {
                    ThreadRole::Finalizer
                } else if thread.flags.contains(ThreadFlags::THREAD_POOL_WORKER) {
                    ThreadRole::PoolWorker
                } else {
                    return;
                };
                ((process, ThreadId(thread.os_thread_id.into())), role)
            }
            Some(ClrEvent::GcMarkWithType(marked)) => {
                self.marked.insert(this, marked.heap_num);
                return;
            }
            Some(ClrEvent::RuntimeStart(runtime) | ClrEvent::RuntimeDcStart(runtime)) => {
                if runtime.startup_flags.contains(StartupFlags::SERVER_GC) {
                    self.servers.insert(process);
                }
                return;
            }
            Some(ClrEvent::GcFinalizersStart(_) | ClrEvent::GcFinalizersStop(_)) => {
                (this, ThreadRole::Finalizer)
            }
            Some(ClrEvent::ThreadPoolIoDequeue(_)) => (this, ThreadRole::PoolIo),
            // Events of the background collector do not have views.
            None if Provider::of(event.metadata()) == Some(Provider::Private) => {
                (this, ThreadRole::BackgroundGc)
            }
            // The others of the set are events of pool workers.
            _ => (this, ThreadRole::PoolWorker),
        };
        self.roles.entry(thread).or_insert(role);
    }

    /// Returns the role of a thread of a process; `None` if no event states one.
    pub fn get(&self, process: Option<u64>, thread: ThreadId) -> Option<ThreadRole> {
        let stated = self.roles.get(&(process, thread)).copied();
        stated.or_else(|| {
            let heap = self.marked.get(&(process, thread))?;
            self.servers.contains(&process).then_some(ThreadRole::ServerGc(*heap))
        })
    }
}
