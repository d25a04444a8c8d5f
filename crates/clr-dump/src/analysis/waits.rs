//! The waits of threads for one another: monitors, locks, threads that are joined, and tasks.

mod awaited;
mod finder;
mod primitive;
mod signaler;
mod suspended;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use self::finder::{Finder, Objects, handle_kind, lock_kind};
#[cfg(test)]
use self::primitive::Primitive;
use self::signaler::Signalers;
use self::suspended::Suspended;
use crate::analysis::ThreadSnapshot;
use crate::awaits::graph::AwaitNode;
use crate::dump::Dump;
use crate::memory::address::Address;
use crate::threads::lock::{Monitors, deadlocks};

/// A wait of a thread for other threads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadWait {
    /// The kind of object.
    pub kind: WaitedFor,
    /// The address of the object.
    pub object: Address,
    /// The indexes of the threads that have to act; empty if unknown. If [`is_any`](Self::is_any), these are
    /// the threads in methods that would let the waiter go on, with the object in reach.
    pub owners: Vec<usize>,
    /// The methods of the object's type that let a waiter go on; empty if the object states its holders.
    pub signals: &'static [&'static str],
    /// The object at the end of the awaits of a task: what the innermost `async` method awaits. Of several
    /// (`Task.WaitAll`, `Task.WhenAll`), one with owners, or else one whose signals are known.
    pub awaited: Option<Address>,
    /// The other tasks that have to end, too (`Task.WaitAll`), or the other objects of `WaitHandle.WaitAll`
    /// and `WaitAny`.
    pub others: Vec<Address>,
    /// True if one of the objects is enough (`WaitHandle.WaitAny`).
    pub is_one_enough: bool,
}

impl ThreadWait {
    pub(crate) const fn new(kind: WaitedFor, object: Address, owners: Vec<usize>) -> Self {
        Self { kind, object, owners, signals: &[], awaited: None, others: Vec::new(), is_one_enough: false }
    }

    /// Returns true if each of the owners could let the thread go on: memory does not say which one will.
    pub const fn is_any(&self) -> bool {
        !self.signals.is_empty()
    }

    /// The other objects of a thread that waits for several by `WaitHandle`.
    pub(crate) fn other_handles(&self) -> &[Address] {
        if self.is_any() && self.awaited.is_none() { &self.others } else { &[] }
    }

    /// Takes the threads that could signal each object.
    ///
    /// Memory does not state which of several handles are signaled: any of the threads could let the waiter
    /// go on. If one handle is enough and nothing is known of it, its owners are not known.
    fn add_signalers(&mut self, signaled: &BTreeMap<Address, SignaledObject>) {
        let of = |object: &Address| signaled.get(object).map_or(&[][..], |of| &of.owners);
        let all: Vec<_> = iter::once(self.end()).chain(self.other_handles().iter().copied()).collect();
        if self.is_one_enough && all.iter().any(|object| of(object).is_empty()) {
            return;
        }
        let owners: BTreeSet<usize> = all.iter().flat_map(|object| of(object).iter().copied()).collect();
        self.owners = owners.into_iter().collect();
    }

    /// The object that a thread has to act on.
    pub(crate) fn end(&self) -> Address {
        self.awaited.unwrap_or(self.object)
    }
}

/// A kind of object that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum WaitedFor {
    /// A monitor (`lock`).
    Monitor,
    /// `System.Threading.Lock`.
    Lock,
    /// `ReaderWriterLockSlim`.
    ReaderWriterLock,
    /// `Mutex`; its holder is not recorded in managed memory.
    Mutex,
    /// `SemaphoreSlim` or `Semaphore`, which lack holders.
    Semaphore,
    /// `ManualResetEventSlim`, `ManualResetEvent` or `AutoResetEvent`.
    Event,
    /// `Barrier`: other participants.
    Barrier,
    /// `CountdownEvent`.
    Countdown,
    /// An element of a `BlockingCollection`, or a place in it.
    Collection,
    /// The end of a thread (`Thread.Join`).
    Thread,
    /// The end of a task (`Task.Wait`, `Task.Result`).
    Task,
    /// The same of a task that goes on in the SynchronizationContext of a thread.
    TaskInContext,
}

impl WaitedFor {
    /// Returns true if threads enter it and leave it.
    pub const fn is_lock(self) -> bool {
        matches!(self, Self::Monitor | Self::Lock | Self::ReaderWriterLock | Self::Mutex)
    }

    /// Returns true if threads hold such an object, or have entered it, and managed memory does not say
    /// which.
    pub const fn has_unknown_holder(self) -> bool {
        matches!(
            self,
            Self::Mutex | Self::Semaphore | Self::Event | Self::Barrier | Self::Countdown | Self::Collection
        )
    }
}

/// The waits of all threads, indexed by thread, and of suspended `async` methods that could let others go on.
///
/// ```no_run
/// use clr_dump::{Dump, ThreadWaits};
///
/// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
/// let dump = Dump::open(&core)?;
/// let read = |thread: clr_dump::Thread| {
///     let registers = core.registers(thread.os_id);
///     let stack = dump.threads().stack(&thread, registers);
///     dump.threads().snapshot(thread, stack, registers)
/// };
/// let threads: Vec<_> = dump.threads().list()?.into_iter().map(read).collect();
/// let threads: Vec<_> = threads.iter().collect();
/// let waits = ThreadWaits::find(&dump, &threads, &dump.locks().monitors());
/// for (thread, wait) in waits.iter() {
///     println!("{} waits for {:#x}, held by {:?}", threads[thread].thread.os_id, wait.object, wait.owners);
/// }
/// println!("{} deadlocks", waits.deadlocks().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ThreadWaits {
    waits: Vec<Option<ThreadWait>>,
    /// The objects without a recorded holder that threads and methods wait for.
    signaled: BTreeMap<Address, SignaledObject>,
    /// The suspended `async` methods that could signal one, with indexes after those of threads.
    methods: Vec<AwaitNode>,
    /// True once the heap was searched.
    has_heap: bool,
}

/// An object that threads wait for, which does not state its holders.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignaledObject {
    /// The kind of object.
    pub kind: WaitedFor,
    /// The methods of the object's type that let a waiter go on.
    pub signals: &'static [&'static str],
    /// The indexes of the threads in methods that call one of them, with the object in reach, and of such
    /// suspended methods (see [`ThreadWaits::method`]).
    pub owners: Vec<usize>,
}

impl ThreadWaits {
    /// Finds the wait of each thread.
    pub fn find(dump: &Dump<'_>, threads: &[&ThreadSnapshot], monitors: &Monitors) -> Self {
        let object = |of: &&ThreadSnapshot| dump.threads().object(&of.thread).ok().flatten();
        let finder = Finder::new(threads, dump, threads.iter().map(object).collect());
        let of_thread = |index| finder.monitor_wait(index, monitors).or_else(|| finder.stack_wait(index));
        let mut waits: Vec<_> = (0..threads.len()).map(of_thread).collect();
        finder.add_runners(&mut waits);
        let signaled = Signalers::new(&finder).add(&mut waits);
        Self { waits, signaled, methods: Vec::new(), has_heap: false }
    }

    /// Searches the heap, once: for the mutexes, semaphores and events of which only a handle is on a
    /// stack, and for suspended `async` methods that could let others go on, which have waits of their
    /// own.
    pub fn search_heap(&mut self, dump: &Dump<'_>, threads: &[&ThreadSnapshot]) {
        if std::mem::replace(&mut self.has_heap, true) {
            return;
        }
        let finder = Finder::new(threads, dump, Vec::new());
        self.add_handles(&finder);
        self.add_suspended(&finder);
    }

    fn add_handles(&mut self, finder: &Finder<'_>) {
        let dump = finder.dump;
        let is_open = |index: &usize| self.of(*index).is_none() && !finder.is_idle(*index);
        let handles = |index: usize| Some((index, finder.awaited_handles(index)?));
        let waiting: Vec<_> = (0..self.waits.len()).filter(is_open).filter_map(handles).collect();
        let mut objects = Objects { dump, kind_of: handle_kind, found: Vec::new() };
        if waiting.is_empty() || dump.heap().walk(&mut objects).is_err() {
            return;
        }
        let handle = |object: Address| Some((dump.heap().reference_field(object, "_waitHandle")?, object));
        let objects = objects.found.into_iter().filter_map(|(object, _)| handle(object));
        let objects: BTreeMap<Address, Address> = objects.collect();
        for (index, of) in waiting {
            let mut found = of.handles.iter().filter_map(|handle| objects.get(handle).copied());
            let first = found.next().and_then(|object| finder.wait_for_object(None, object));
            if let (Some(first), Some(wait)) = (first, self.waits.get_mut(index)) {
                *wait =
                    Some(ThreadWait { others: found.collect(), is_one_enough: of.is_one_enough, ..first });
            }
        }
        self.signaled.extend(Signalers::new(finder).add(&mut self.waits));
    }

    fn add_suspended(&mut self, finder: &Finder<'_>) {
        let Ok(suspended) = Suspended::read(finder) else { return };
        suspended.add_semaphores(&mut self.signaled);
        for method in suspended.methods(&mut self.signaled) {
            self.methods.push(method.node);
            self.waits.push(method.wait);
        }
        for wait in self.waits.iter_mut().flatten().filter(|wait| wait.is_any()) {
            wait.add_signalers(&self.signaled);
        }
    }

    /// The suspended `async` method with an index after those of threads.
    pub fn method(&self, index: usize) -> Option<&AwaitNode> {
        let threads = self.waits.len().checked_sub(self.methods.len())?;
        self.methods.get(index.checked_sub(threads)?)
    }

    /// The wait of a thread.
    pub fn of(&self, index: usize) -> Option<&ThreadWait> {
        self.waits.get(index)?.as_ref()
    }

    /// The objects without a recorded holder that threads wait for, with the threads that could signal them.
    pub fn signaled(&self) -> impl Iterator<Item = (Address, &SignaledObject)> {
        self.signaled.iter().map(|(object, of)| (*object, of))
    }

    /// All waits with the indexes of their threads, and of suspended methods.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &ThreadWait)> {
        self.waits.iter().enumerate().filter_map(|(index, wait)| Some((index, wait.as_ref()?)))
    }

    /// The number of threads that wait for a lock.
    pub fn lock_waits(&self) -> usize {
        self.iter().filter(|(_, wait)| wait.kind.is_lock()).count()
    }

    /// The threads and suspended methods that wait for one another, each cycle once: the waiter, its
    /// wait, and the one that it waits for.
    ///
    /// A thread that any of several threads could let go on is in a cycle only if none of them can go on.
    pub fn deadlocks(&self) -> Vec<Vec<(usize, &ThreadWait, usize)>> {
        let stuck = self.stuck();
        let is_stuck = |index: usize| stuck.get(index).copied().unwrap_or_default();
        let of_stuck: Vec<Vec<usize>> = (0..self.waits.len())
            .map(|index| {
                let wait = self.of(index).filter(|_| is_stuck(index));
                let owners = wait.into_iter().flat_map(|wait| wait.owners.iter().copied());
                owners.filter(|owner| is_stuck(*owner)).collect()
            })
            .collect();
        let owners = |index: usize| of_stuck.get(index).map_or(&[][..], |owners| owners);
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

impl ThreadWaits {
    /// Finds the threads that wait, directly or through others, for threads that cannot go on.
    fn stuck(&self) -> Vec<bool> {
        let mut stuck: Vec<bool> =
            self.waits.iter().map(|wait| wait.as_ref().is_some_and(|wait| !wait.owners.is_empty())).collect();
        loop {
            let is_stuck = |owner: &usize| stuck.get(*owner).copied().unwrap_or_default();
            let goes_on = |wait: &ThreadWait| {
                let mut owners = wait.owners.iter();
                if wait.is_any() { !owners.all(is_stuck) } else { !owners.any(is_stuck) }
            };
            let free = self.iter().filter(|(index, wait)| is_stuck(index) && goes_on(wait));
            let free: Vec<usize> = free.map(|(index, _)| index).collect();
            if free.is_empty() {
                return stuck;
            }
            for index in free {
                if let Some(stuck) = stuck.get_mut(index) {
                    *stuck = false;
                }
            }
        }
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

/// A held lock other than a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldLock {
    /// The address of the lock.
    pub object: Address,
    /// The indexes of the threads that hold it.
    pub owners: Vec<usize>,
}

/// Finds the held locks of the heap other than monitors; empty if the heap cannot be read.
pub fn held_locks(dump: &Dump<'_>, threads: &[&ThreadSnapshot]) -> Vec<HeldLock> {
    let mut found = Objects { dump, kind_of: lock_kind, found: Vec::new() };
    if dump.heap().walk(&mut found).is_err() {
        return Vec::new();
    }
    let finder = Finder::new(threads, dump, Vec::new());
    let held = |(object, kind): (Address, WaitedFor)| {
        let owners = finder.holders(usize::MAX, object, kind)?;
        Some(HeldLock { object, owners })
    };
    found.found.into_iter().filter_map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_an_async_method_does_not_wait() {
        let of = |method: &str| Primitive::of_method(&format!("System.Threading.{method}")).map(|of| of.kind);
        assert_eq!(of("SemaphoreSlim.WaitUntilCountOrTimeout"), Some(WaitedFor::Semaphore));
        assert_eq!(of("SemaphoreSlim.Wait"), Some(WaitedFor::Semaphore));
        assert_eq!(of("Tasks.Task.Wait"), Some(WaitedFor::Task));
        // The method that the program calls, and the one that goes on later.
        assert_eq!(of("SemaphoreSlim.WaitAsync"), None);
        assert_eq!(of("SemaphoreSlim.WaitUntilCountOrTimeoutAsync"), None);
        assert_eq!(of("SemaphoreSlim.<WaitUntilCountOrTimeoutAsync>d__31.MoveNext"), None);
        assert_eq!(of("Tasks.Task.WaitAsync"), None);
    }

    /// Waits of threads for others: their indexes, and whether any of them suffices.
    fn waits(of: &[Option<(&[usize], bool)>]) -> ThreadWaits {
        let wait = |(owners, is_any): (&[usize], bool)| ThreadWait {
            signals: if is_any { &["Release"] } else { &[] },
            ..ThreadWait::new(WaitedFor::Semaphore, Address::default(), owners.to_vec())
        };
        ThreadWaits {
            waits: of.iter().map(|of| of.map(wait)).collect(),
            signaled: BTreeMap::new(),
            methods: Vec::new(),
            has_heap: false,
        }
    }

    fn cycles(of: &[Option<(&[usize], bool)>]) -> Vec<Vec<usize>> {
        let cycle = |cycle: Vec<(usize, &ThreadWait, usize)>| cycle.into_iter().map(|(of, ..)| of).collect();
        waits(of).deadlocks().into_iter().map(cycle).collect()
    }

    #[test]
    fn one_thread_that_can_signal_ends_a_wait() {
        // 0 waits for 1, which any of 0 and 2 lets go on.
        let pair: [Option<(&[usize], bool)>; 3] = [Some((&[1], false)), Some((&[0, 2], true)), None];
        assert_eq!(cycles(&pair), [[0; 0]; 0]);
        // It takes both readers of a lock to leave it.
        let pair: [Option<(&[usize], bool)>; 3] = [Some((&[1], false)), Some((&[0, 2], false)), None];
        assert_eq!(cycles(&pair), [[0, 1]]);
        // 2 waits for the others.
        let three: [Option<(&[usize], bool)>; 3] =
            [Some((&[1], false)), Some((&[0, 2], true)), Some((&[1], true))];
        assert_eq!(cycles(&three), [[0, 1]]);
    }
}
