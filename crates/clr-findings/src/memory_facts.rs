//! The threads and awaits of a process in memory, as data of their own.

mod awaits;
mod memory_until;
mod threads;

use std::time::{Duration, Instant};

use clr_dump::{
    Address, AwaitChains, CoreFile, Death, Dump, Semaphore, ThreadSnapshot, ThreadStacks, ThreadWait,
    ThreadWaits, WaitedFor,
};
use clr_events::escape_controls;
use serde::{Deserialize, Serialize};

use self::memory_until::MemoryUntil;
pub(crate) use self::threads::method_in_words;

/// Maximum time for which the heap of a process is searched for awaits; its threads run meanwhile.
const AWAIT_TIME: Duration = Duration::from_secs(2);
/// The same for a core dump.
const CORE_AWAIT_TIME: Duration = Duration::from_secs(60);

const SEMAPHORE: &str = "System.Threading.SemaphoreSlim";
const RELEASE: &str = "Release";

/// A `SemaphoreSlim`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SemaphoreFacts {
    /// The number of times that it can be entered now.
    pub count: u64,
    /// The maximum of the count; `None` if it was made without one.
    pub maximum: Option<u64>,
    /// True if the method that waits for it releases a semaphore, too: it guards something. Others can count
    /// work.
    pub is_guard: bool,
}

impl SemaphoreFacts {
    const fn of(semaphore: &Semaphore, is_guard: bool) -> Self {
        Self { count: semaphore.count, maximum: semaphore.maximum, is_guard }
    }

    /// Returns true if it cannot be entered, and those who wait for it are not idle.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.count == 0 && (self.maximum.is_some() || self.is_guard)
    }

    /// The semaphore in a sentence.
    pub(crate) fn in_words(&self) -> String {
        match self.maximum {
            Some(maximum) => format!("a semaphore of {maximum}"),
            None => "a semaphore".to_owned(),
        }
    }
}

/// The wait of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitFacts {
    /// The kind of object.
    pub kind: WaitedFor,
    /// The address of the object. Collections move objects.
    pub object: Address,
    /// The object's type in C#, if the memory has it.
    pub type_name: Option<String>,
    /// The indexes of the threads that have to act.
    pub owners: Vec<usize>,
    /// True if any of the owners could act, and the object does not state which one will.
    #[serde(default)]
    pub is_any: bool,
    /// The state of a `SemaphoreSlim`.
    pub semaphore: Option<SemaphoreFacts>,
    /// True for a task that no code of its own ends: that of a `TaskCompletionSource`.
    pub is_promise: bool,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThreadFacts {
    /// Thread id in the system; zero if it has not started or has ended.
    pub tid: u64,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// True for a worker of the thread pool.
    pub is_pool_worker: bool,
    /// True if it waits or sleeps in a method of the runtime.
    pub is_waiting: bool,
    /// The innermost method of the user's code, without parameters.
    pub method: Option<String>,
    /// The methods of the user's code, without parameters, the innermost first.
    pub methods: Vec<String>,
    /// The type with the static constructor that it runs, in C#; the innermost.
    pub initialized_type: Option<String>,
    /// True for the thread that runs finalizers, while it runs one.
    pub is_finalizer: bool,
    /// The framework's method that it called.
    pub called: Option<String>,
    /// The wait for other threads.
    pub wait: Option<WaitFacts>,
    /// The exception that it throws or handles, with its message.
    pub exception: Option<(String, Option<String>)>,
}

/// A suspended `async` method that could let others go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SuspendedFacts {
    /// The method, without parameters.
    pub method: String,
    /// What it waits for; `None` if unknown.
    pub wait: Option<WaitFacts>,
}

/// The kind of operation that an `async` method awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AwaitedFor {
    /// A task that no code of its own ends: that of a `TaskCompletionSource`.
    Promise,
    /// `SemaphoreSlim.WaitAsync`.
    Semaphore,
    /// A timer, an operation of a socket or the like.
    Other,
}

/// The chains of awaits, or the search for them.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum AwaitSearch<'c> {
    /// They were read.
    Done(&'c AwaitChains),
    /// The heap is searched for them, for at most this time.
    Within(Duration),
}

/// Calls of an `async` method of the user's code that await the same kind of operation at the same `await`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AwaitFacts {
    /// The method, without parameters.
    pub method: String,
    /// The number of the `await` in the method, from zero; `None` if unknown.
    pub state: Option<i32>,
    /// The kind of operation.
    pub awaited: AwaitedFor,
    /// The type of the operation in C#.
    pub type_name: String,
    /// The state of the semaphore.
    pub semaphore: Option<SemaphoreFacts>,
    /// The addresses of the calls. Collections move them.
    pub calls: Vec<Address>,
    /// The methods of the user's code that await the method, the nearest first.
    pub callers: Vec<String>,
}

/// Calls of an `async` method of the user's code that await a method of the framework, which awaits an
/// operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FrameworkAwaits {
    /// The method, without parameters.
    pub method: String,
    /// The method of the framework.
    pub awaited: String,
    /// The number of calls.
    pub calls: u64,
}

/// Calls that await delays which have elapsed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElapsedDelays {
    /// The number of calls.
    pub calls: u64,
    /// The method of the first of them, without parameters.
    pub method: Option<String>,
}

/// The threads of a process at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryFacts {
    /// The threads.
    pub threads: Vec<ThreadFacts>,
    /// The suspended `async` methods that could let others go on.
    #[serde(default)]
    pub suspended: Vec<SuspendedFacts>,
    /// Threads and suspended methods that wait for each other: the indexes of each cycle, those of suspended
    /// methods after those of threads.
    pub deadlocks: Vec<Vec<usize>>,
    /// Calls of `async` methods that await.
    pub awaits: Vec<AwaitFacts>,
    /// Calls of such methods that await methods of the framework, those of the most calls first.
    pub framework_awaits: Vec<FrameworkAwaits>,
    /// Calls of `async` methods of the user's code that await a delay which has elapsed: no thread has run
    /// them since.
    pub elapsed_delays: ElapsedDelays,
    /// The number of objects that wait for their finalizers; `None` if unknown.
    pub finalizable: Option<u64>,
    /// The end of the process, of a core dump.
    #[serde(skip)]
    pub death: Option<Death>,
}

impl MemoryFacts {
    /// Reads the threads of a core dump.
    pub fn of_core(core: &CoreFile, dump: &Dump<'_>, stacks: ThreadStacks) -> Self {
        let threads = threads::snapshots(dump, stacks);
        let threads: Vec<_> = threads.iter().collect();
        let waits = ThreadWaits::find(dump, &threads, &dump.locks().monitors());
        Self::of_snapshots(Some(core), dump, (&threads, waits), AwaitSearch::Within(CORE_AWAIT_TIME))
    }

    /// Takes threads and their waits that were read already, with the core dump if they are of one. The heap
    /// is searched for mutexes that threads wait for, too.
    pub fn of_snapshots(
        core: Option<&CoreFile>,
        dump: &Dump<'_>,
        (threads, waits): (&[&ThreadSnapshot], ThreadWaits),
        awaits: AwaitSearch<'_>,
    ) -> Self {
        let death = core.and_then(|core| Death::find(core, dump, threads));
        Self { death, ..Self::of_threads(dump, threads, waits, awaits) }
    }

    /// Reads the threads of a process.
    pub fn of_process(dump: &Dump<'_>, stacks: ThreadStacks) -> Self {
        let threads = threads::snapshots(dump, stacks);
        let threads: Vec<_> = threads.iter().collect();
        let waits = ThreadWaits::find(dump, &threads, &dump.locks().monitors());
        Self::of_threads(dump, &threads, waits, AwaitSearch::Within(AWAIT_TIME))
    }

    fn of_threads(
        dump: &Dump<'_>,
        threads: &[&ThreadSnapshot],
        mut waits: ThreadWaits,
        awaits: AwaitSearch<'_>,
    ) -> Self {
        let time = match awaits {
            AwaitSearch::Done(_) => CORE_AWAIT_TIME,
            AwaitSearch::Within(time) => time,
        };
        let memory = MemoryUntil::new(dump.memory(), Instant::now().checked_add(time));
        let limited = dump.with_memory(&memory);
        let found = match awaits {
            AwaitSearch::Done(chains) => awaits::awaits(&limited, chains),
            AwaitSearch::Within(_) => {
                let chains = limited.awaits().chains();
                chains.map(|chains| awaits::awaits(&limited, &chains)).unwrap_or_default()
            }
        };
        waits.search_heap(&limited, threads);
        let facts =
            threads.iter().enumerate().map(|(index, thread)| threads::facts(dump, thread, waits.of(index)));
        let suspended = (threads.len()..).map_while(|index| Some((index, waits.method(index)?)));
        let suspended = suspended
            .map(|(index, method)| SuspendedFacts {
                method: awaits::user_method(dump, method).unwrap_or_else(|| "a method".to_owned()),
                wait: waits.of(index).map(|wait| threads::wait_facts(dump, wait, None)),
            })
            .collect();
        let cycle =
            |cycle: Vec<(usize, &ThreadWait, usize)>| cycle.into_iter().map(|(thread, ..)| thread).collect();
        Self {
            threads: facts.collect(),
            suspended,
            deadlocks: waits.deadlocks().into_iter().map(cycle).collect(),
            awaits: found.awaits,
            framework_awaits: found.framework,
            elapsed_delays: found.elapsed_delays,
            finalizable: dump.heap().regions().and_then(|regions| regions.finalizable_count()).ok(),
            death: None,
        }
    }

    /// The number of calls of the user's code that await what ends of itself, such as a timer or an operation
    /// of a socket.
    pub(crate) fn pending_operations(&self) -> u64 {
        let others = self.awaits.iter().filter(|facts| facts.awaited == AwaitedFor::Other);
        let of_framework = self.framework_awaits.iter().map(|awaits| awaits.calls);
        others.map(|facts| facts.calls.len() as u64).chain(of_framework).fold(0, u64::saturating_add)
    }

    /// The same thread in this reading.
    pub(crate) fn same_thread(&self, thread: &ThreadFacts) -> Option<&ThreadFacts> {
        self.threads.iter().find(|other| other.tid == thread.tid)
    }

    /// The thread with an index.
    pub(crate) fn thread(&self, index: usize) -> Option<&ThreadFacts> {
        self.threads.get(index)
    }
}

impl ThreadFacts {
    /// The thread in a sentence: its name, or its number.
    pub(crate) fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} ({})", escape_controls(name), self.tid),
            None => format!("thread {}", self.tid),
        }
    }
}
