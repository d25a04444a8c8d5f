//! The waits of threads for one another: monitors, locks, threads that are joined, and tasks.

use std::collections::{BTreeMap, BTreeSet};

use clr_dump::{Dump, HeapObject, HeapVisitor, Monitors, Value, WaitKind, deadlocks};

use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::inspect::core_text::FrameText;

/// Maximum number of threads to look up among the readers of a lock.
const MAX_READ_LOCKS: usize = 64;
/// Maximum number of tasks from a continuation to the task that a thread waits for.
const MAX_LINKS: usize = 64;

const LOCK: &str = "System.Threading.Lock";
const READER_WRITER_LOCK: &str = "System.Threading.ReaderWriterLockSlim";
const MUTEX: &str = "System.Threading.Mutex";
const SEMAPHORE: &str = "System.Threading.Semaphore";
/// The class that a mutex refers to, as does a thread that waits for the mutex.
const WAIT_HANDLE: &str = "Microsoft.Win32.SafeHandles.SafeWaitHandle";
const SEMAPHORE_SLIM: &str = "System.Threading.SemaphoreSlim";
const THREAD: &str = "System.Threading.Thread";
/// The event that a thread waits for in `Task.Wait`.
const TASK_EVENT: &str = "System.Threading.Tasks.Task+SetOnInvokeMres";
/// The continuation of an `await` that goes on in a SynchronizationContext.
const CONTEXT_CONTINUATION: &str = "System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation";

/// A wait of a thread for other threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadWait {
    pub(crate) kind: WaitedFor,
    /// The address of the object.
    pub(crate) object: u64,
    /// The indexes of the threads that have to act; empty if unknown.
    pub(crate) owners: Vec<usize>,
}

/// A kind of object that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitedFor {
    Monitor,
    /// `System.Threading.Lock`.
    Lock,
    /// `ReaderWriterLockSlim`.
    ReaderWriterLock,
    /// `Mutex`; its holder is not recorded in managed memory.
    Mutex,
    /// `SemaphoreSlim` or `Semaphore`, which lack holders.
    Semaphore,
    /// The end of a thread (`Thread.Join`).
    Thread,
    /// The end of a task (`Task.Wait`, `Task.Result`).
    Task,
    /// The same of a task that goes on in the SynchronizationContext of a thread.
    TaskInContext,
}

impl WaitedFor {
    /// The word for programs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Lock => "lock",
            Self::ReaderWriterLock => "reader_writer_lock",
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore",
            Self::Thread => "thread",
            Self::Task => "task",
            Self::TaskInContext => "task_in_context",
        }
    }

    /// Returns true if threads enter it and leave it.
    pub(crate) const fn is_lock(self) -> bool {
        matches!(self, Self::Monitor | Self::Lock | Self::ReaderWriterLock | Self::Mutex)
    }

    /// Returns the reason if threads hold such an object, or have entered it, and no memory that is read says which.
    pub(crate) const fn holder_unknown(self) -> Option<&'static str> {
        match self {
            Self::Mutex => Some("a Mutex's holder is in native memory"),
            Self::Semaphore => Some("a semaphore does not record which threads have entered it"),
            _ => None,
        }
    }

    /// The kind by the innermost method of the framework; `None` for methods that wait for something else.
    fn of_method(name: &str) -> Option<Self> {
        const METHODS: [(&str, WaitedFor); 9] = [
            // The object can be another one, too.
            ("System.Threading.WaitHandle.WaitOne", WaitedFor::Mutex),
            ("System.Threading.SemaphoreSlim.Wait", WaitedFor::Semaphore),
            ("System.Threading.Lock.", WaitedFor::Lock),
            ("System.Threading.ReaderWriterLockSlim.Enter", WaitedFor::ReaderWriterLock),
            ("System.Threading.ReaderWriterLockSlim.TryEnter", WaitedFor::ReaderWriterLock),
            ("System.Threading.Thread.Join", WaitedFor::Thread),
            ("System.Threading.Tasks.Task.Wait", WaitedFor::Task),
            ("System.Threading.Tasks.Task.InternalWait", WaitedFor::Task),
            ("System.Threading.Tasks.Task.SpinThenBlockingWait", WaitedFor::Task),
        ];
        METHODS.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, kind)| *kind)
    }
}

/// The waits of all threads, indexed by thread.
pub(crate) struct Waits {
    waits: Vec<Option<ThreadWait>>,
}

impl Waits {
    /// Finds the wait of each thread.
    pub(crate) fn new(analysis: &Analysis<'_>, monitors: &Monitors) -> Self {
        let objects: Vec<_> = analysis.threads.iter().map(|of| analysis.thread_object(of)).collect();
        let finder = Finder { analysis, dump: &analysis.dump, objects };
        let of_thread = |index| finder.monitor_wait(index, monitors).or_else(|| finder.stack_wait(index));
        let mut waits: Vec<_> = (0..analysis.threads.len()).map(of_thread).collect();
        finder.add_runners(&mut waits);
        Self { waits }
    }

    /// Adds the waits for mutexes and semaphores of which only a handle is on the stack: the heap is searched for
    /// them.
    pub(crate) fn add_handles(&mut self, analysis: &Analysis<'_>) {
        let dump = &analysis.dump;
        let finder = Finder { analysis, dump, objects: Vec::new() };
        let mut waiting: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for index in (0..self.waits.len()).filter(|index| self.of(*index).is_none()) {
            let Some((WaitedFor::Mutex, words)) = finder.stack_words(index) else { continue };
            let is_handle = |word: &u64| dump.heap().type_name(*word).as_deref() == Some(WAIT_HANDLE);
            for handle in words.into_iter().filter(is_handle) {
                waiting.entry(handle).or_default().push(index);
            }
        }
        let mut objects = Objects { dump, kind_of: handle_kind, found: Vec::new() };
        if waiting.is_empty() || dump.heap().walk(&mut objects).is_err() {
            return;
        }
        for (object, kind) in objects.found {
            let Some(Value::Reference { address, .. }) = dump.heap().field_value(object, "_waitHandle")
            else {
                continue;
            };
            for index in waiting.get(&address).into_iter().flatten() {
                if let Some(wait) = self.waits.get_mut(*index) {
                    *wait = Some(ThreadWait { kind, object, owners: Vec::new() });
                }
            }
        }
    }

    /// The wait of a thread.
    pub(crate) fn of(&self, index: usize) -> Option<&ThreadWait> {
        self.waits.get(index)?.as_ref()
    }

    /// All waits with the indexes of their threads.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &ThreadWait)> {
        self.waits.iter().enumerate().filter_map(|(index, wait)| Some((index, wait.as_ref()?)))
    }

    /// The number of threads that wait for a lock.
    pub(crate) fn lock_waits(&self) -> usize {
        self.iter().filter(|(_, wait)| wait.kind.is_lock()).count()
    }

    /// The threads that wait for one another, each cycle once: the thread, its wait, and the thread that it waits
    /// for.
    pub(crate) fn deadlocks(&self) -> Vec<Vec<(usize, &ThreadWait, usize)>> {
        let owners = |index: usize| self.of(index).map_or(&[][..], |wait| &wait.owners);
        let next: Vec<_> = (0..self.waits.len())
            .map(|index| {
                let leads_back = |owner: &&usize| reaches(**owner, index, self.waits.len(), &owners);
                owners(index).iter().find(leads_back).or_else(|| owners(index).first()).copied()
            })
            .collect();
        let step = |index: usize| Some((index, self.of(index)?, next.get(index).copied()??));
        deadlocks(&next).into_iter().map(|cycle| cycle.into_iter().filter_map(step).collect()).collect()
    }
}

/// Returns true if one thread waits for another, through others.
fn reaches<'w>(from: usize, to: usize, count: usize, owners: &impl Fn(usize) -> &'w [usize]) -> bool {
    let mut seen = vec![false; count];
    let mut pending = vec![from];
    while let Some(index) = pending.pop() {
        if index == to {
            return true;
        }
        if seen.get_mut(index).is_some_and(|seen| !std::mem::replace(seen, true)) {
            pending.extend(owners(index));
        }
    }
    false
}

struct Finder<'a> {
    analysis: &'a Analysis<'a>,
    dump: &'a Dump<'a>,
    /// The managed objects of threads.
    objects: Vec<Option<u64>>,
}

impl Finder<'_> {
    fn thread(&self, index: usize) -> Option<&ManagedThread> {
        self.analysis.threads.get(index)
    }

    fn monitor_wait(&self, index: usize, monitors: &Monitors) -> Option<ThreadWait> {
        let wait = self.thread(index)?.waits.iter().find(|wait| wait.kind == WaitKind::Enter)?;
        let monitor = monitors.at(wait.monitor)?;
        let owner = monitor.owner.and_then(|owner| {
            self.analysis.threads.iter().position(|other| other.thread.address == owner.thread)
        });
        let owners = owner.into_iter().collect();
        Some(ThreadWait { kind: WaitedFor::Monitor, object: monitor.object, owners })
    }

    /// The wait that the innermost methods of a thread are in: its object is on the stack of these methods.
    fn stack_wait(&self, index: usize) -> Option<ThreadWait> {
        let (kind, words) = self.stack_words(index)?;
        self.wait_for(index, kind, &words)
    }

    /// The kind of wait that the innermost methods of a thread are in, and the objects on the stack of these methods.
    fn stack_words(&self, index: usize) -> Option<(WaitedFor, Vec<u64>)> {
        let thread = self.thread(index)?;
        let mut found = None;
        let managed = thread.stack.frames.iter().zip(&thread.frames).filter(|(_, text)| text.is_managed());
        for (frame, text) in managed {
            if let Some((_, end)) = &mut found
                && *end == 0
            {
                *end = frame.sp;
            }
            let name = text.name.as_ref().map_or("", |name| &*name.text);
            if !name.starts_with("System.Threading.") {
                break;
            }
            if let Some(kind) = WaitedFor::of_method(name) {
                found = Some((kind, 0));
            }
        }
        let (kind, end) = found.filter(|(_, end)| *end != 0)?;
        let start = self.analysis.stack_start(thread)?;
        Some((kind, self.dump.heap().objects_between(start, end)))
    }

    /// Finds the object of a kind of wait among words of a stack.
    fn wait_for(&self, index: usize, kind: WaitedFor, words: &[u64]) -> Option<ThreadWait> {
        let is_of = |word: &u64, name: &str| self.dump.heap().type_name(*word).as_deref() == Some(name);
        let mut candidates = words.iter().copied();
        let (object, owners) = match kind {
            WaitedFor::Lock | WaitedFor::ReaderWriterLock => {
                let name = if kind == WaitedFor::Lock { LOCK } else { READER_WRITER_LOCK };
                let mut locks = candidates.filter(|word| is_of(word, name));
                locks.find_map(|word| Some((word, self.holders(index, word, kind)?)))?
            }
            WaitedFor::Mutex | WaitedFor::Semaphore => return self.wait_for_handle(words),
            WaitedFor::Thread => candidates.find_map(|word| {
                let of = is_of(&word, THREAD).then_some(Some(word))?;
                let owner = self.objects.iter().position(|object| *object == of)?;
                (owner != index).then(|| (word, vec![owner]))
            })?,
            WaitedFor::Task | WaitedFor::Monitor | WaitedFor::TaskInContext => {
                let events: BTreeSet<u64> =
                    words.iter().copied().filter(|word| is_of(word, TASK_EVENT)).collect();
                let tasks = candidates.filter_map(|word| Some((word, self.dump.awaits().task(word)?)));
                let mut tasks = tasks.filter(|(_, task)| !task.is_completed);
                (tasks.find(|(_, task)| events.contains(&task.continuation))?.0, Vec::new())
            }
        };
        Some(ThreadWait { kind, object, owners })
    }

    /// The wait for a mutex or a semaphore, with unknown holders.
    fn wait_for_handle(&self, words: &[u64]) -> Option<ThreadWait> {
        words.iter().find_map(|word| {
            let kind = handle_kind(&self.dump.heap().type_name(*word)?)?;
            Some(ThreadWait { kind, object: *word, owners: Vec::new() })
        })
    }

    /// The threads that hold a lock, other than the waiter; `None` without holders.
    fn holders(&self, waiter: usize, lock: u64, kind: WaitedFor) -> Option<Vec<usize>> {
        if kind == WaitedFor::Lock {
            let id = self.number(lock, "_owningThreadId").filter(|id| *id != 0)?;
            // The id in the system.
            let is_of = |of: &ManagedThread| of.thread.os_id == id;
            let owner = self.analysis.threads.iter().position(is_of);
            return owner
                .map_or_else(|| self.owners(waiter, [id]), |owner| (owner != waiter).then(|| vec![owner]));
        }
        let ids = ["_writeLockOwnerId", "_upgradeLockOwnerId"].map(|name| self.number(lock, name));
        let writers = self.owners(waiter, ids.into_iter().flatten());
        writers.or_else(|| self.readers(waiter, lock))
    }

    /// The other threads with managed ids; `None` without any.
    fn owners(&self, waiter: usize, ids: impl IntoIterator<Item = u64>) -> Option<Vec<usize>> {
        let index = |id: u64| {
            let is_of = |of: &ManagedThread| id != 0 && u64::from(of.thread.managed_id) == id;
            self.analysis.threads.iter().position(is_of)
        };
        let owners: Vec<_> = ids.into_iter().filter_map(index).filter(|index| *index != waiter).collect();
        (!owners.is_empty()).then_some(owners)
    }

    /// The threads that have entered a lock to read: each has a list of such locks.
    fn readers(&self, waiter: usize, lock: u64) -> Option<Vec<usize>> {
        let id = self.number(lock, "_lockID")?;
        let threads: Vec<_> = self.analysis.threads.iter().map(|of| of.thread.clone()).collect();
        let fields = self.dump.statics().fields_of(self.dump.heap().type_of(lock)?, &threads);
        let mut readers = Vec::new();
        for field in fields.iter().filter(|field| field.field.name == "t_rwc") {
            let mut entry = self.dump.heap().reference_at(field.address).map(|(entry, _)| entry);
            for _ in 0..MAX_READ_LOCKS {
                let Some(of) = entry else { break };
                if self.number(of, "lockID") == Some(id)
                    && self.number(of, "readercount").is_some_and(|count| count > 0)
                {
                    let is_of = |other: &ManagedThread| Some(other.thread.os_id) == field.thread;
                    readers.extend(self.analysis.threads.iter().position(is_of));
                }
                entry = match self.dump.heap().field_value(of, "next") {
                    Some(Value::Reference { address, .. }) => Some(address),
                    _ => None,
                };
            }
        }
        readers.retain(|index| *index != waiter);
        (!readers.is_empty()).then_some(readers)
    }

    /// The value of a field that is a number, unless it is negative.
    fn number(&self, object: u64, field: &str) -> Option<u64> {
        match self.dump.heap().field_value(object, field)? {
            Value::Signed(number) => u64::try_from(number).ok(),
            Value::Unsigned(number) => Some(number),
            _ => None,
        }
    }

    /// Adds the threads that run the tasks which others wait for, and the threads with the context in which
    /// tasks go on.
    fn add_runners(&self, waits: &mut [Option<ThreadWait>]) {
        let tasks: BTreeSet<u64> = waits
            .iter()
            .flatten()
            .filter(|wait| wait.kind == WaitedFor::Task)
            .map(|wait| wait.object)
            .collect();
        if tasks.is_empty() {
            return;
        }
        let mut runners = Vec::new();
        for (index, thread) in self.analysis.threads.iter().enumerate() {
            for task in self.running_tasks(thread).into_iter().filter(|task| tasks.contains(task)) {
                runners.push((task, index));
            }
        }
        for (index, wait) in waits.iter_mut().enumerate() {
            let Some(wait) = wait.as_mut().filter(|wait| wait.kind == WaitedFor::Task) else { continue };
            let of_task = runners.iter().filter(|(task, runner)| *task == wait.object && *runner != index);
            wait.owners = of_task.map(|(_, runner)| *runner).collect();
            if wait.owners.is_empty() && self.goes_on_in_context_of(index, wait.object) {
                wait.kind = WaitedFor::TaskInContext;
                wait.owners = vec![index];
            }
        }
    }

    /// The tasks with delegates that a thread runs: they are on the stack of the methods that call these.
    fn running_tasks(&self, thread: &ManagedThread) -> Vec<u64> {
        let frames = &thread.stack.frames;
        let calls = |text: &FrameText| {
            text.name
                .as_ref()
                .is_some_and(|name| name.text.starts_with("System.Threading.Tasks.Task.Execute"))
        };
        let mut tasks = Vec::new();
        for (index, _) in thread.frames.iter().enumerate().filter(|(_, text)| calls(text)) {
            // Registers that hold it are on the stack of the method that it calls.
            let start = index.checked_sub(1).and_then(|callee| frames.get(callee)).map(|callee| callee.sp);
            let Some(caller) = frames.get(index + 1) else { continue };
            let words = self.dump.heap().objects_between(start.unwrap_or_default(), caller.sp);
            let is_running = |word: &u64| self.dump.awaits().task(*word).is_some_and(|task| task.is_running);
            tasks.extend(words.into_iter().filter(is_running));
        }
        tasks
    }

    /// Returns true if a task goes on in the SynchronizationContext of a thread.
    fn goes_on_in_context_of(&self, index: usize, task: u64) -> bool {
        let context = || {
            let thread = self.objects.get(index).copied().flatten()?;
            match self.dump.heap().field_value(thread, "_synchronizationContext")? {
                Value::Reference { address, .. } => Some(address),
                _ => None,
            }
        };
        let Some(context) = context() else { return false };
        let mut found = Continuations { dump: self.dump, found: Vec::new() };
        if self.dump.heap().walk(&mut found).is_err() {
            return false;
        }
        found.found.into_iter().any(|continuation| {
            let reference = |of: u64, name: &str| match self.dump.heap().field_value(of, name) {
                Some(Value::Reference { address, .. }) => Some(address),
                _ => None,
            };
            let action = reference(continuation, "m_action");
            reference(continuation, "m_syncContext") == Some(context)
                && action
                    .and_then(|action| reference(action, "_target"))
                    .is_some_and(|of| self.leads_to(of, task))
        })
    }

    /// Returns true if a method ends a task: it is the task itself, or the task waits for it.
    fn leads_to(&self, method: u64, task: u64) -> bool {
        let mut of = method;
        for _ in 0..MAX_LINKS {
            if of == task {
                return true;
            }
            match self.dump.awaits().task(of) {
                Some(next) if !next.is_completed => of = next.continuation,
                _ => return false,
            }
        }
        false
    }
}

/// The continuations that go on in a context.
struct Continuations<'n> {
    dump: &'n Dump<'n>,
    found: Vec<u64>,
}

impl HeapVisitor for Continuations<'_> {
    fn object(&mut self, object: &HeapObject) {
        const MAX_ENTRIES: usize = 1 << 16;
        if self.found.len() < MAX_ENTRIES
            && self.dump.types().name(object.type_handle).as_deref() == Some(CONTEXT_CONTINUATION)
        {
            self.found.push(object.address);
        }
    }
}

/// A held lock other than a monitor.
pub(crate) struct HeldLock {
    pub(crate) object: u64,
    /// The indexes of the threads that hold it.
    pub(crate) owners: Vec<usize>,
}

/// Finds the held locks of the heap other than monitors; empty if the heap cannot be read.
pub(crate) fn held_locks(analysis: &Analysis<'_>) -> Vec<HeldLock> {
    let mut found = Objects { dump: &analysis.dump, kind_of: lock_kind, found: Vec::new() };
    if analysis.dump.heap().walk(&mut found).is_err() {
        return Vec::new();
    }
    let finder = Finder { analysis, dump: &analysis.dump, objects: Vec::new() };
    let held = |(object, kind): (u64, WaitedFor)| {
        let owners = finder.holders(usize::MAX, object, kind)?;
        Some(HeldLock { object, owners })
    };
    found.found.into_iter().filter_map(held).collect()
}

/// Returns the kind of a lock, given its type.
fn lock_kind(type_name: &str) -> Option<WaitedFor> {
    match type_name {
        LOCK => Some(WaitedFor::Lock),
        READER_WRITER_LOCK => Some(WaitedFor::ReaderWriterLock),
        _ => None,
    }
}

/// Returns the kind of a mutex or a semaphore, given its type.
fn handle_kind(type_name: &str) -> Option<WaitedFor> {
    match type_name {
        MUTEX => Some(WaitedFor::Mutex),
        SEMAPHORE | SEMAPHORE_SLIM => Some(WaitedFor::Semaphore),
        _ => None,
    }
}

/// The objects of a heap that have a kind.
struct Objects<'n> {
    dump: &'n Dump<'n>,
    kind_of: fn(&str) -> Option<WaitedFor>,
    found: Vec<(u64, WaitedFor)>,
}

impl HeapVisitor for Objects<'_> {
    fn object(&mut self, object: &HeapObject) {
        const MAX_ENTRIES: usize = 1 << 16;
        let name = self.dump.types().name(object.type_handle);
        if let Some(kind) = name.as_deref().and_then(self.kind_of)
            && self.found.len() < MAX_ENTRIES
        {
            self.found.push((object.address, kind));
        }
    }
}
