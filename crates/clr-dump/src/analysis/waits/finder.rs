//! The search for the objects that threads wait for, on their stacks and in the heap, and for their holders.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use super::primitive::{COLLECTION, Primitive, has_handle};
use super::{ThreadWait, WaitedFor};
use crate::analysis::ThreadSnapshot;
use crate::analysis::named_frame::NamedFrame;
use crate::awaits::async_type::RUNTIME_TASK;
use crate::dump::Dump;
use crate::heap::semaphore::Semaphore;
use crate::heap::{HeapObject, HeapVisitor};
use crate::memory::address::Address;
use crate::threads::lock::{Monitors, WaitKind};
use crate::threads::thread::Thread;

/// Maximum number of threads to look up among the readers of a lock.
const MAX_READ_LOCKS: usize = 64;
/// Maximum number of tasks from a continuation to the task that a thread waits for.
const MAX_LINKS: usize = 64;
/// Maximum number of continuations of a task.
const MAX_CONTINUATIONS: u64 = 1 << 12;
/// Maximum number of continuations to look at for the waits of all threads.
const MAX_ALL_CONTINUATIONS: usize = 1 << 20;

/// Maximum number of handles that a thread waits for: that of `WaitHandle.WaitAll`.
const MAX_HANDLES: usize = 64;

/// The class that a mutex refers to, as does a thread that waits for the mutex.
const WAIT_HANDLE: &str = "Microsoft.Win32.SafeHandles.SafeWaitHandle";
const WAIT_MULTIPLE: &str = "System.Threading.WaitHandle.WaitMultiple";
const WAIT_HANDLES: &str = "Microsoft.Win32.SafeHandles.SafeWaitHandle[]";
const LOCK: &str = "System.Threading.Lock";
const READER_WRITER_LOCK: &str = "System.Threading.ReaderWriterLockSlim";
const THREAD: &str = "System.Threading.Thread";
/// The events that a thread waits for in `Task.Wait` and in `Task.WaitAll`.
const TASK_EVENTS: [&str; 2] =
    ["System.Threading.Tasks.Task+SetOnInvokeMres", "System.Threading.Tasks.Task+SetOnCountdownMres"];
/// The list of the tasks that `Task.WaitAll` waits for.
const TASK_LIST: &str = "System.Collections.Generic.List`1[System.Threading.Tasks.Task]";
/// The continuation of an `await` that goes on in a SynchronizationContext.
const CONTEXT_CONTINUATION: &str = "System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation";

/// The tasks without a reference to those that they await, each with those of them that have not ended.
pub(super) type UnreferencedAwaits = BTreeMap<Address, Vec<Address>>;

/// The handles that a thread waits for.
pub(super) struct AwaitedHandles {
    pub(super) handles: Vec<Address>,
    /// True if one of them is enough.
    pub(super) is_one_enough: bool,
}

pub(super) struct Finder<'a> {
    pub(super) threads: &'a [&'a ThreadSnapshot],
    pub(super) dump: &'a Dump<'a>,
    /// The managed objects of threads.
    pub(super) objects: Vec<Option<Address>>,
    /// The tasks without a reference to those that they await, once they are asked for.
    pub(super) unreferenced_awaits: OnceCell<UnreferencedAwaits>,
    /// The semaphores that tasks wait for, once they are asked for.
    pub(super) semaphores: OnceCell<Vec<Semaphore>>,
    /// The number of continuations that may still be looked at.
    continuations: Cell<usize>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(
        threads: &'a [&'a ThreadSnapshot],
        dump: &'a Dump<'a>,
        objects: Vec<Option<Address>>,
    ) -> Self {
        Self {
            threads,
            dump,
            objects,
            unreferenced_awaits: OnceCell::new(),
            semaphores: OnceCell::new(),
            continuations: Cell::new(MAX_ALL_CONTINUATIONS),
        }
    }
}

impl Finder<'_> {
    pub(super) fn thread(&self, index: usize) -> Option<&ThreadSnapshot> {
        self.threads.get(index).copied()
    }

    pub(super) fn monitor_wait(&self, index: usize, monitors: &Monitors) -> Option<ThreadWait> {
        let wait = self.thread(index)?.monitor_waits.iter().find(|wait| wait.kind == WaitKind::Enter)?;
        let monitor = monitors.at(wait.monitor)?;
        let owner = monitor
            .owner
            .and_then(|owner| self.threads.iter().position(|other| other.thread.address == owner.thread));
        let owners = owner.into_iter().collect();
        Some(ThreadWait::new(WaitedFor::Monitor, monitor.object, owners))
    }

    /// The wait that the innermost methods of a thread are in: its object is on the stack of these methods.
    pub(super) fn stack_wait(&self, index: usize) -> Option<ThreadWait> {
        let Some((of, words)) = self.stack_words(index) else { return self.inlined_join(index) };
        // Their objects are found by all of their handles.
        if self.is_in(index, WAIT_MULTIPLE) {
            return None;
        }
        self.wait_for(index, of, &words)
    }

    /// The wait of a thread for the end of another where `Thread.Join` is inlined (.NET Core 3.1): the
    /// runtime's own method protects the object by the thread's explicit frame (`HelperMethodFrame_1OBJ`).
    /// `Thread.Sleep` has a frame without objects.
    ///
    /// # Source
    /// dotnet/runtime `src/coreclr/vm/frames.h`; the frame's end as in `threads/stack.rs` (`machine_state`).
    fn inlined_join(&self, index: usize) -> Option<ThreadWait> {
        /// The offset of the pointer to the protected variable, after the frame's `LazyMachState`.
        const PROTECTED: u64 = 0xe8;
        /// Maximum distance of the variable from the frame.
        const MAX_DISTANCE: u64 = 4096;
        let thread = self.thread(index)?;
        let is_framework =
            |named: &NamedFrame| named.full_name().is_some_and(|name| name.starts_with("System."));
        let is_called_by_user = thread.frames.first().is_some_and(|innermost| !is_framework(innermost));
        let has_helpers = self.dump.runtime().layout.frames.has_helpers;
        (has_helpers && is_called_by_user && thread.thread.state.is_waiting()).then_some(())?;
        let frame = thread.thread.frame;
        let variable = self.dump.memory().pointer(frame.at(PROTECTED)).ok()?;
        (variable.get().abs_diff(frame.get()) < MAX_DISTANCE).then_some(())?;
        let object = self.dump.memory().pointer(variable.get()).ok()?;
        let owner = self.objects.iter().position(|other| *other == Some(object))?;
        (owner != index).then(|| ThreadWait::new(WaitedFor::Thread, object, vec![owner]))
    }

    /// The kind of wait that the innermost methods of a thread are in, and the objects on the stack of these
    /// methods.
    pub(super) fn stack_words(&self, index: usize) -> Option<(&'static Primitive, Vec<Address>)> {
        let thread = self.thread(index)?;
        let mut found: Option<(_, Address)> = None;
        let managed =
            thread.stack.frames.iter().zip(&thread.frames).filter(|(frame, _)| frame.code.is_some());
        for (frame, named) in managed {
            if let Some((_, end)) = &mut found
                && end.is_null()
            {
                *end = frame.sp;
            }
            let name = named.full_name().unwrap_or_default();
            if !name.starts_with("System.Threading.") && !name.starts_with(COLLECTION) {
                break;
            }
            if let Some(of) = Primitive::of_method(&name) {
                found = Some((of, Address::default()));
            }
        }
        let (of, end) = found.filter(|(_, end)| !end.is_null())?;
        let start = thread.stack_start()?;
        Some((of, self.dump.heap().objects_between(start, end)))
    }

    /// The handles on the stack of the methods of `WaitHandle` that a thread is in; `None` in other methods.
    pub(super) fn awaited_handles(&self, index: usize) -> Option<AwaitedHandles> {
        let (Primitive { kind: WaitedFor::Mutex, .. }, words) = self.stack_words(index)? else { return None };
        let heap = self.dump.heap();
        let is_of = |word: &Address, name: &str| heap.type_name(*word).as_deref() == Some(name);
        let mut handles: Vec<_> = words.iter().copied().filter(|word| is_of(word, WAIT_HANDLE)).collect();
        let is_multiple = self.is_in(index, WAIT_MULTIPLE);
        if is_multiple {
            let arrays = words.iter().filter(|word| is_of(word, WAIT_HANDLES));
            handles.extend(arrays.flat_map(|array| heap.references_of(*array, MAX_HANDLES)));
        }
        handles.sort_unstable();
        handles.dedup();
        // WaitAny returns what its callee returns: its own frame can be missing.
        let is_one_enough = is_multiple && !self.is_in(index, "System.Threading.WaitHandle.WaitAll");
        Some(AwaitedHandles { handles, is_one_enough })
    }

    /// Returns true for a thread that is in a method, by the beginning of its name.
    fn is_in(&self, index: usize, method: &str) -> bool {
        let mut frames = self.thread(index).into_iter().flat_map(|thread| &thread.frames);
        frames.any(|frame| frame.full_name().is_some_and(|name| name.starts_with(method)))
    }

    /// Returns true for a thread without methods of the program: such threads wait for work.
    pub(super) fn is_idle(&self, index: usize) -> bool {
        !self.thread(index).is_some_and(|thread| thread.frames.iter().any(is_of_program))
    }

    /// Finds the object of a kind of wait among words of a stack.
    fn wait_for(&self, index: usize, of: &'static Primitive, words: &[Address]) -> Option<ThreadWait> {
        let kind = of.kind;
        let is_of = |word: &Address, name: &str| self.dump.heap().type_name(*word).as_deref() == Some(name);
        let mut candidates = words.iter().copied();
        let (object, owners) = match kind {
            WaitedFor::Lock | WaitedFor::ReaderWriterLock => {
                let name = if kind == WaitedFor::Lock { LOCK } else { READER_WRITER_LOCK };
                let mut locks = candidates.filter(|word| is_of(word, name));
                locks.find_map(|word| Some((word, self.holders(index, word, kind)?)))?
            }
            _ if kind.has_unknown_holder() => {
                let wait = words.iter().find_map(|word| self.wait_for_object(Some(of), *word))?;
                let is_work = matches!(wait.kind, WaitedFor::Event | WaitedFor::Collection);
                return (!is_work || !self.is_idle(index)).then_some(wait);
            }
            WaitedFor::Thread => candidates.find_map(|word| {
                let of = is_of(&word, THREAD).then_some(Some(word))?;
                let owner = self.objects.iter().position(|object| *object == of)?;
                (owner != index).then(|| (word, vec![owner]))
            })?,
            _ => {
                let mut tasks = self.waited_tasks(words).into_iter();
                let first = tasks.next()?;
                return Some(ThreadWait {
                    others: tasks.collect(),
                    ..ThreadWait::new(kind, first, Vec::new())
                });
            }
        };
        Some(ThreadWait::new(kind, object, owners))
    }

    /// The tasks that have not ended and that let a thread go on, by the words of its stack.
    fn waited_tasks(&self, words: &[Address]) -> BTreeSet<Address> {
        let heap = self.dump.heap();
        let name = |word: &Address| heap.type_name(*word);
        let is_event = |word: &&Address| name(word).is_some_and(|name| TASK_EVENTS.contains(&&*name));
        let events: BTreeSet<Address> = words.iter().filter(is_event).copied().collect();
        if events.is_empty() {
            return events;
        }
        let is_list = |word: &&Address| name(word).as_deref() == Some(TASK_LIST);
        let listed = words.iter().filter(is_list).flat_map(|list| self.listed(*list));
        let is_waited = |word: &Address| {
            let task = self.dump.awaits().task(*word);
            task.is_some_and(|task| !task.is_completed && self.resumes_any(task.continuation, &events))
        };
        words.iter().copied().chain(listed).filter(is_waited).collect()
    }

    /// Returns true if a continuation is one of these objects, or a list with one: several threads wait for
    /// the task.
    pub(super) fn resumes_any(&self, continuation: Address, waiting: &BTreeSet<Address>) -> bool {
        let Some(left) = self.continuations.get().checked_sub(1) else { return false };
        self.continuations.set(left);
        if waiting.contains(&continuation) {
            return true;
        }
        let listed = self.listed(continuation);
        self.continuations.set(left.saturating_sub(listed.len()));
        listed.iter().any(|listed| waiting.contains(listed))
    }

    /// The objects of a list; empty for other objects.
    pub(super) fn listed(&self, list: Address) -> Vec<Address> {
        let heap = self.dump.heap();
        let Some(items) = heap.reference_field(list, "_items") else {
            return Vec::new();
        };
        let count = self.dump.heap().number_field(list, "_size").unwrap_or_default().min(MAX_CONTINUATIONS);
        // An array has its elements after its length.
        let start = items.saturating_add(16);
        let end = start.saturating_add(count.saturating_mul(8));
        heap.objects_between(start, end)
    }

    /// The wait for an object without a holder, by the methods that wait; `None` for other objects.
    pub(super) fn wait_for_object(
        &self,
        by: Option<&'static Primitive>,
        object: Address,
    ) -> Option<ThreadWait> {
        let name = self.dump.heap().type_name(object)?;
        let own = Primitive::of_type(&name).filter(|_| by.is_none_or(|by| by.is_for(&name)))?;
        // The methods that take from a collection and those that add to it wait for one another.
        let signals = by.filter(|by| by.types == own.types).unwrap_or(own).signals;
        Some(ThreadWait { signals, ..ThreadWait::new(own.kind, object, Vec::new()) })
    }

    /// The threads that hold a lock, other than the waiter; `None` without holders.
    pub(super) fn holders(&self, waiter: usize, lock: Address, kind: WaitedFor) -> Option<Vec<usize>> {
        if kind == WaitedFor::Lock {
            let id = self.dump.heap().number_field(lock, "_owningThreadId").filter(|id| *id != 0)?;
            // The id in the system.
            let is_of = |of: &&ThreadSnapshot| of.thread.os_id == id;
            let owner = self.threads.iter().position(is_of);
            return owner
                .map_or_else(|| self.owners(waiter, [id]), |owner| (owner != waiter).then(|| vec![owner]));
        }
        let ids = ["_writeLockOwnerId", "_upgradeLockOwnerId"]
            .map(|name| self.dump.heap().number_field(lock, name));
        let writers = self.owners(waiter, ids.into_iter().flatten());
        writers.or_else(|| self.readers(waiter, lock))
    }

    /// The other threads with managed ids; `None` without any.
    fn owners(&self, waiter: usize, ids: impl IntoIterator<Item = u64>) -> Option<Vec<usize>> {
        let index = |id: u64| {
            let is_of = |of: &&ThreadSnapshot| id != 0 && u64::from(of.thread.managed_id) == id;
            self.threads.iter().position(is_of)
        };
        let owners: Vec<_> = ids.into_iter().filter_map(index).filter(|index| *index != waiter).collect();
        (!owners.is_empty()).then_some(owners)
    }

    /// The threads that have entered a lock to read: each has a list of such locks.
    fn readers(&self, waiter: usize, lock: Address) -> Option<Vec<usize>> {
        let id = self.dump.heap().number_field(lock, "_lockID")?;
        let threads: Vec<Thread> = self.threads.iter().map(|of| of.thread.clone()).collect();
        let fields = self.dump.statics().fields_of(self.dump.heap().type_of(lock)?, &threads);
        let mut readers = Vec::new();
        for field in fields.iter().filter(|field| field.field.name == "t_rwc") {
            let mut entry = self.dump.heap().reference_at(field.address).map(|(entry, _)| entry);
            for _ in 0..MAX_READ_LOCKS {
                let Some(of) = entry else { break };
                if self.dump.heap().number_field(of, "lockID") == Some(id)
                    && self.dump.heap().number_field(of, "readercount").is_some_and(|count| count > 0)
                {
                    let is_of = |other: &&ThreadSnapshot| Some(other.thread.os_id) == field.thread;
                    readers.extend(self.threads.iter().position(is_of));
                }
                entry = self.dump.heap().reference_field(of, "next");
            }
        }
        readers.retain(|index| *index != waiter);
        (!readers.is_empty()).then_some(readers)
    }

    /// Adds the threads that run the tasks which others wait for, and the threads with the context in which
    /// tasks go on.
    pub(super) fn add_runners(&self, waits: &mut [Option<ThreadWait>]) {
        let mut ends = BTreeMap::new();
        for (index, wait) in waits.iter().enumerate() {
            if let Some(wait) = wait.as_ref().filter(|wait| wait.kind == WaitedFor::Task) {
                ends.insert(index, self.await_ends(wait));
            }
        }
        if ends.is_empty() {
            return;
        }
        let tasks: BTreeSet<Address> = ends.values().flatten().map(|(_, end)| *end).collect();
        let mut runners = Vec::new();
        for (index, thread) in self.threads.iter().enumerate() {
            for task in self.running_tasks(thread).into_iter().filter(|task| tasks.contains(task)) {
                runners.push((task, index));
            }
        }
        for (index, ends) in ends {
            let Some(wait) = waits.get_mut(index).and_then(Option::as_mut) else { continue };
            let runners_of = |end: Address| {
                let of_task = runners.iter().filter(move |(task, runner)| *task == end && *runner != index);
                of_task.map(|(_, runner)| *runner)
            };
            let is_run = |(_, end): &&(Address, Address)| runners_of(*end).next().is_some();
            let has_signals = |(_, end): &&(Address, Address)| {
                self.dump.heap().type_name(*end).is_some_and(|name| Primitive::of_type(&name).is_some())
            };
            wait.owners = ends.iter().flat_map(|(_, end)| runners_of(*end)).collect();
            let chosen = ends.iter().find(is_run).or_else(|| ends.iter().find(has_signals));
            if let Some((task, end)) = chosen.or_else(|| ends.first()) {
                let all = iter::once(wait.object).chain(std::mem::take(&mut wait.others));
                wait.others = all.filter(|other| other != task).collect();
                wait.object = *task;
                wait.awaited = (end != task).then_some(*end);
            }
            if wait.owners.is_empty() && self.goes_on_in_context_of(index, wait) {
                wait.kind = WaitedFor::TaskInContext;
                wait.owners = vec![index];
            }
        }
    }

    /// The tasks that a thread runs, by their delegates or by calls that the runtime had suspended: they are
    /// on the stack of the methods that call these.
    pub(super) fn running_tasks(&self, thread: &ThreadSnapshot) -> Vec<Address> {
        let frames = &thread.stack.frames;
        let calls = |frame: &NamedFrame| {
            frame.full_name().is_some_and(|name| {
                name.starts_with("System.Threading.Tasks.Task.Execute")
                    || (name.contains(".AsyncHelpers.RuntimeAsyncTask`1")
                        && name.ends_with(".DispatchContinuations"))
            })
        };
        let mut tasks = Vec::new();
        for (index, _) in thread.frames.iter().enumerate().filter(|(_, frame)| calls(frame)) {
            // Registers that hold it are on the stack of the method that it calls.
            let start = index.checked_sub(1).and_then(|callee| frames.get(callee)).map(|callee| callee.sp);
            let Some(caller) = frames.get(index.saturating_add(1)) else { continue };
            let words = self.dump.heap().objects_between(start.unwrap_or_default(), caller.sp);
            tasks.extend(words.into_iter().filter(|word| self.is_running(*word)));
        }
        tasks
    }

    /// Returns true for a task whose delegate has been called, or from which the runtime has taken the calls.
    fn is_running(&self, task: Address) -> bool {
        let Some(state) = self.dump.awaits().task(task) else { return false };
        let heap = self.dump.heap();
        let has_calls = || heap.type_name(task).is_some_and(|name| name.starts_with(RUNTIME_TASK));
        state.is_running || (has_calls() && heap.reference_field(task, "m_stateObject").is_none())
    }

    /// Returns true if one of the tasks that a thread waits for goes on in its SynchronizationContext.
    fn goes_on_in_context_of(&self, index: usize, wait: &ThreadWait) -> bool {
        let tasks = || iter::once(wait.object).chain(wait.others.iter().copied());
        let context = || {
            let thread = self.objects.get(index).copied().flatten()?;
            self.dump.heap().reference_field(thread, "_synchronizationContext")
        };
        let Some(context) = context() else { return false };
        let mut found = Continuations { dump: self.dump, found: Vec::new() };
        if self.dump.heap().walk(&mut found).is_err() {
            return false;
        }
        found.found.into_iter().any(|continuation| {
            let reference = |of: Address, name: &str| self.dump.heap().reference_field(of, name);
            let action = reference(continuation, "m_action");
            reference(continuation, "m_syncContext") == Some(context)
                && action
                    .and_then(|action| reference(action, "_target"))
                    .is_some_and(|of| tasks().any(|task| self.leads_to(of, task)))
        })
    }

    /// Returns true if a method ends a task: it is the task itself, or the task waits for it.
    fn leads_to(&self, method: Address, task: Address) -> bool {
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
    found: Vec<Address>,
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

/// Returns the kind of a lock, given its type.
pub(super) fn lock_kind(type_name: &str) -> Option<WaitedFor> {
    match type_name {
        LOCK => Some(WaitedFor::Lock),
        READER_WRITER_LOCK => Some(WaitedFor::ReaderWriterLock),
        _ => None,
    }
}

/// Returns the kind of an object with a handle, given its type.
pub(super) fn handle_kind(type_name: &str) -> Option<WaitedFor> {
    Primitive::of_type(type_name).filter(|_| has_handle(type_name)).map(|of| of.kind)
}

/// Returns true for a frame of a method that is not of the framework.
pub(super) fn is_of_program(frame: &NamedFrame) -> bool {
    frame.full_name().is_some_and(|name| is_name_of_program(&name))
}

/// Returns true for a type or a method that is not of the framework.
pub(super) fn is_name_of_program(name: &str) -> bool {
    const FRAMEWORK: [&str; 3] = ["System.", "Microsoft.", "Interop."];
    !FRAMEWORK.iter().any(|of| name.starts_with(of))
}

/// The objects of a heap that have a kind.
pub(super) struct Objects<'n> {
    pub(super) dump: &'n Dump<'n>,
    pub(super) kind_of: fn(&str) -> Option<WaitedFor>,
    pub(super) found: Vec<(Address, WaitedFor)>,
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
