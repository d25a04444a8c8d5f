//! The objects that threads wait for without a monitor: their types, the methods that wait for them, the
//! methods that let a waiter go on, and the fields with their states.
//!
//! # Source
//! dotnet/runtime `src/libraries/System.Private.CoreLib/src/System/Threading` (`SemaphoreSlim.cs`,
//! `ManualResetEventSlim.cs`, `ReaderWriterLockSlim.cs`), `System.Threading/src` (`Barrier.cs`),
//! `System.Collections.Concurrent/src` (`BlockingCollection.cs`).

use super::WaitedFor;

/// A kind of object with its methods.
#[derive(Debug)]
pub(super) struct Primitive {
    pub(super) kind: WaitedFor,
    /// Types, without their arguments.
    pub(super) types: &'static [&'static str],
    /// The beginning of the names of methods that wait, with their type, and a part of their own names.
    pub(super) waits: &'static [(&'static str, &'static str)],
    /// The methods of these types that let a waiter go on; empty if the object states its holders.
    pub(super) signals: &'static [&'static str],
    /// The parts of the state: a field, its lowest bit, the number of its bits, and a word for it.
    pub(super) state: &'static [(&'static str, u32, u32, &'static str)],
}

const fn primitive(
    kind: WaitedFor,
    types: &'static [&'static str],
    waits: &'static [(&'static str, &'static str)],
    signals: &'static [&'static str],
    state: &'static [(&'static str, u32, u32, &'static str)],
) -> Primitive {
    Primitive { kind, types, waits, signals, state }
}

pub(super) const COLLECTION: &str = "System.Collections.Concurrent.BlockingCollection`1";

/// All kinds, those with a handle first: the method that waits for these is the same.
pub(super) static PRIMITIVES: [Primitive; 13] = [
    primitive(
        WaitedFor::Mutex,
        &["System.Threading.Mutex"],
        &[
            ("System.Threading.WaitHandle.WaitOne", ""),
            ("System.Threading.WaitHandle.WaitMultiple", ""),
            ("System.Threading.WaitHandle.WaitAny", ""),
            ("System.Threading.WaitHandle.WaitAll", ""),
        ],
        &["ReleaseMutex"],
        &[],
    ),
    primitive(WaitedFor::Semaphore, &["System.Threading.Semaphore"], &[], &["Release"], &[]),
    primitive(
        WaitedFor::Event,
        &[
            "System.Threading.ManualResetEvent",
            "System.Threading.AutoResetEvent",
            "System.Threading.EventWaitHandle",
        ],
        &[],
        &["Set"],
        &[],
    ),
    primitive(
        WaitedFor::Semaphore,
        &["System.Threading.SemaphoreSlim"],
        &[("System.Threading.SemaphoreSlim.Wait", "")],
        &["Release"],
        &[("m_currentCount", 0, 31, "count"), ("m_maxCount", 0, 31, "maximum")],
    ),
    primitive(
        WaitedFor::Event,
        &["System.Threading.ManualResetEventSlim"],
        &[("System.Threading.ManualResetEventSlim.Wait", "")],
        &["Set"],
        &[("m_combinedState", 31, 1, "set"), ("_combinedState", 31, 1, "set")],
    ),
    primitive(
        WaitedFor::Countdown,
        &["System.Threading.CountdownEvent"],
        &[("System.Threading.CountdownEvent.Wait", "")],
        &["Signal"],
        &[("_currentCount", 0, 31, "left"), ("_initialCount", 0, 31, "of")],
    ),
    primitive(
        WaitedFor::Barrier,
        &["System.Threading.Barrier"],
        &[("System.Threading.Barrier.SignalAndWait", "")],
        &["SignalAndWait", "RemoveParticipant", "RemoveParticipants"],
        &[("_currentTotalCount", 16, 15, "arrived"), ("_currentTotalCount", 0, 15, "participants")],
    ),
    primitive(
        WaitedFor::Collection,
        &[COLLECTION],
        &[(COLLECTION, "Take")],
        &["Add", "TryAdd", "CompleteAdding"],
        &[],
    ),
    primitive(
        WaitedFor::Collection,
        &[COLLECTION],
        &[(COLLECTION, "Add")],
        &["Take", "TryTake", "GetConsumingEnumerable"],
        &[("_boundedCapacity", 0, 31, "capacity")],
    ),
    primitive(WaitedFor::Lock, &["System.Threading.Lock"], &[("System.Threading.Lock.", "")], &[], &[]),
    primitive(
        WaitedFor::ReaderWriterLock,
        &["System.Threading.ReaderWriterLockSlim"],
        &[
            ("System.Threading.ReaderWriterLockSlim.Enter", ""),
            ("System.Threading.ReaderWriterLockSlim.TryEnter", ""),
        ],
        &[],
        &[],
    ),
    primitive(WaitedFor::Thread, &[], &[("System.Threading.Thread.Join", "")], &[], &[]),
    primitive(
        WaitedFor::Task,
        &[],
        &[
            ("System.Threading.Tasks.Task.Wait", ""),
            ("System.Threading.Tasks.Task.InternalWait", ""),
            ("System.Threading.Tasks.Task.SpinThenBlockingWait", ""),
        ],
        &[],
        &[],
    ),
];

impl Primitive {
    /// The kind by a method of the framework that a thread is in; `None` for methods that wait for something
    /// else, and for `async` ones, whose thread does not wait.
    pub(super) fn of_method(name: &str) -> Option<&'static Self> {
        if name.ends_with("Async") {
            return None;
        }
        let waits =
            |(start, part): &(&str, &str)| name.strip_prefix(start).is_some_and(|rest| rest.contains(part));
        PRIMITIVES.iter().find(|of| of.waits.iter().any(waits))
    }

    /// The kind by the type of an object.
    pub(super) fn of_type(type_name: &str) -> Option<&'static Self> {
        let own = type_name.split('[').next().unwrap_or_default();
        PRIMITIVES.iter().find(|of| of.types.contains(&own))
    }

    /// Returns true if the methods of this kind wait for objects of a type: those of `WaitHandle` for all
    /// that have a handle.
    pub(super) fn is_for(&self, type_name: &str) -> bool {
        Self::of_type(type_name).is_some_and(|of| {
            let is_handle = |of: &Self| of.types.first().is_some_and(|first| has_handle(first));
            of.types == self.types || (is_handle(self) && is_handle(of))
        })
    }
}

/// Returns true for the types with a handle, which `WaitHandle.WaitOne` waits for.
pub(super) fn has_handle(type_name: &str) -> bool {
    const HANDLES: usize = 3;
    let handles = PRIMITIVES.iter().take(HANDLES);
    handles.flat_map(|of| of.types).any(|of| *of == type_name)
}
