//! The queues of the pool: one for all threads, one for work that comes first, and one of each worker.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Threading/ThreadPoolWorkQueue.cs`,
//! `System/Collections/Concurrent/ConcurrentQueue.cs`, `ConcurrentQueueSegment.cs`; the same names in
//! dotnet/coreclr.

mod reader;

use hashbrown::HashMap;

use crate::memory::address::{Address, TypeHandle};
use crate::pool::ThreadPool;
use crate::pool::queue::reader::{Reader, element_offset};
use crate::pool::work::Work;
use crate::threads::thread::Thread;
use crate::types::field::StaticField;

/// The static fields that have the pool's queues: of .NET 5 and later, and of .NET Core 3.1.
const QUEUES: [(&str, &str); 2] =
    [("System.Threading.ThreadPool", "s_workQueue"), ("System.Threading.ThreadPoolGlobals", "workQueue")];
/// The static field that has the queues of workers, which was renamed.
const LOCAL_TYPE: &str = "System.Threading.ThreadPoolWorkQueue+WorkStealingQueueList";
const LOCAL_FIELDS: [&str; 2] = ["s_queues", "_queues"];
/// The static field of each worker with its queue.
const LOCALS_TYPE: &str = "System.Threading.ThreadPoolWorkQueueThreadLocals";
const LOCALS_FIELD: &str = "threadLocals";

/// Maximum number of queues of workers.
const MAX_QUEUES: u32 = 1 << 15;

/// A queue of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WorkQueue {
    /// Work that comes before all other work, such as timers that are due.
    HighPriority,
    /// Work for any worker. On machines with many processors it has several parts.
    Global,
    /// Work that comes after all other work.
    LowPriority,
    /// Work that a worker queued, which it runs before that of the global queue. Others take it if they have
    /// nothing else to do.
    Local {
        /// The worker's thread id in the system; `None` if unknown.
        thread: Option<u64>,
    },
}

/// Equal work in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedWork {
    /// The queue.
    pub queue: WorkQueue,
    /// The type of the work items.
    pub type_handle: TypeHandle,
    /// The work of the first item.
    pub work: Work,
    /// The number of items.
    pub count: u64,
    /// The item that is taken first.
    pub first: Address,
}

/// The work that waits for workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolQueues {
    /// The number of work items in all queues.
    pub count: u64,
    /// Equal work items, the most frequent first.
    pub work: Vec<QueuedWork>,
    /// True if a limit or missing memory cut off work.
    pub is_incomplete: bool,
}

impl ThreadPool<'_> {
    /// Reads the work that waits in the pool's queues; `None` if the memory lacks them. `threads` are those
    /// that local queues can belong to.
    ///
    /// .NET Core 3.1 has timers that are due and waits that have ended in native memory, which is not read.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let queues = dump.thread_pool().queues(&dump.threads().list()?).unwrap_or_default();
    /// println!("{} work items wait, most of them {:?}", queues.count, queues.work.first());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queues(self, threads: &[Thread]) -> Option<PoolQueues> {
        let statics = self.dump.statics();
        let (of_pool, _) =
            QUEUES.iter().find_map(|(type_name, field)| statics.core_library_field(type_name, field))?;
        let mut reader = Reader::new(self, self.dump);
        for (name, queue) in [
            ("highPriorityWorkItems", WorkQueue::HighPriority),
            ("workItems", WorkQueue::Global),
            ("lowPriorityWorkItems", WorkQueue::LowPriority),
        ] {
            if let Some(of) = self.dump.heap().reference_field(of_pool, name) {
                reader.concurrent_queue(of, queue);
            }
        }
        if let Some(parts) = self.dump.heap().reference_field(of_pool, "_assignableWorkItemQueues") {
            for part in self.elements(parts) {
                reader.concurrent_queue(part, WorkQueue::Global);
            }
        }
        let owners = self.owners(threads);
        let local = LOCAL_FIELDS.iter().find_map(|field| statics.core_library_field(LOCAL_TYPE, field));
        for of in local.map(|(array, _)| self.elements(array)).unwrap_or_default() {
            let queue = WorkQueue::Local { thread: owners.get(&of).copied() };
            reader.local_queue(of, queue);
        }
        Some(reader.finish())
    }

    /// The threads of local queues.
    fn owners(self, threads: &[Thread]) -> HashMap<Address, u64> {
        let statics = self.dump.statics();
        let fields = statics.core_library_fields(LOCALS_TYPE, threads);
        let fields = fields.iter().filter(|place| place.field.name == LOCALS_FIELD);
        let owner = |place: &StaticField| {
            let (locals, _) = self.dump.heap().reference_at(place.address)?;
            Some((self.dump.heap().reference_field(locals, "workStealingQueue")?, place.thread?))
        };
        fields.filter_map(owner).collect()
    }

    /// The references in an array that are not null.
    fn elements(self, array: Address) -> Vec<Address> {
        let memory = self.memory();
        let count = memory.u32(array.at(8)).unwrap_or_default().min(MAX_QUEUES);
        let element = |index: u32| memory.pointer(array.at(element_offset(index.into(), 8))).ok();
        (0..count).filter_map(element).filter(|element| !element.is_null()).collect()
    }
}
