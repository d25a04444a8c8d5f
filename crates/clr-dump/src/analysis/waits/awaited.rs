//! The ends of the awaits of the tasks that threads wait for: all of them have to end.
//!
//! # Source
//! dotnet/runtime `src/libraries/System.Private.CoreLib/src/System/Threading`: `Tasks/Task.cs`
//! (`WhenAllPromise`, `WaitAllCore`), `Tasks/TaskFactory.cs` (`CompleteOnInvokePromise`), `SemaphoreSlim.cs`;
//! `AsyncHelpers.CoreCLR.cs` (`RuntimeAsyncTask`).

use std::collections::{BTreeSet, VecDeque};
use std::iter;

use super::ThreadWait;
use super::finder::{Finder, UnreferencedAwaits};
use crate::awaits::async_roles::Roles;
use crate::awaits::async_type::{AsyncRole, MethodBox, RUNTIME_TASK};
use crate::heap::{HeapObject, HeapVisitor};
use crate::memory::address::Address;

/// Maximum number of tasks from those that a thread waits for to the ends of their awaits.
const MAX_AWAITS: usize = 1 << 10;
/// Maximum number of references of an object.
const MAX_REFERENCES: usize = 256;
/// Maximum number of tasks that others await without a reference to them.
const MAX_AWAITED: usize = 1 << 16;

/// The task of `SemaphoreSlim.WaitAsync`.
pub(super) const SEMAPHORE_TASK: &str = "System.Threading.SemaphoreSlim+TaskNode";
/// The part of the name of the task of `Task.WhenAll`, which does not refer to those that it awaits (.NET 8
/// and later).
const ALL_PROMISE: &str = "+WhenAllPromise";
/// The parts of the names of tasks that end with one of those that they await.
pub(super) const ANY_PROMISES: [&str; 2] = ["WhenAnyPromise", "CompleteOnInvokePromise"];

impl Finder<'_> {
    /// The tasks that a thread waits for, each with the objects at the ends of its awaits: all have to end.
    pub(super) fn await_ends(&self, wait: &ThreadWait) -> Vec<(Address, Address)> {
        let mut ends = Vec::new();
        let mut seen = BTreeSet::new();
        let tasks = iter::once(wait.object).chain(wait.others.iter().copied());
        let mut open: VecDeque<_> = tasks.map(|task| (task, task)).collect();
        while let Some((task, end)) = open.pop_front().filter(|_| seen.len() < MAX_AWAITS) {
            if !seen.insert(end) {
                continue;
            }
            let awaited = self.awaited_by(end);
            if awaited.is_empty() {
                ends.push((task, self.awaited_semaphore(end).unwrap_or(end)));
            }
            open.extend(awaited.into_iter().map(|end| (task, end)));
        }
        ends
    }

    /// The tasks that have not ended and that a task awaits, all of them; empty if one of several is enough.
    fn awaited_by(&self, task: Address) -> Vec<Address> {
        let heap = self.dump.heap();
        let name = heap.type_name(task).unwrap_or_default();
        if ANY_PROMISES.iter().any(|promise| name.contains(promise)) {
            return Vec::new();
        }
        if awaits_unreferenced(&name) {
            return self.unreferenced_awaits().get(&task).cloned().unwrap_or_default();
        }
        let waiting = [task].into();
        let is_awaited = |of: &Address| {
            let awaited = self.dump.awaits().task(*of);
            awaited.is_some_and(|of| !of.is_completed && self.resumes_any(of.continuation, &waiting))
        };
        heap.references_of(task, MAX_REFERENCES).into_iter().filter(is_awaited).collect()
    }

    fn unreferenced_awaits(&self) -> &UnreferencedAwaits {
        self.unreferenced_awaits.get_or_init(|| {
            let mut found = AwaitedTasks { finder: self, roles: Roles::new(self.dump), found: Vec::new() };
            // What a damaged heap lacks is not known to be awaited.
            let _ = self.dump.heap().walk(&mut found);
            let mut all = UnreferencedAwaits::new();
            for (promise, task) in found.found {
                all.entry(promise).or_default().push(task);
            }
            all
        })
    }

    /// The semaphore that a task of `SemaphoreSlim.WaitAsync` waits for.
    fn awaited_semaphore(&self, task: Address) -> Option<Address> {
        (*self.dump.heap().type_name(task)? == *SEMAPHORE_TASK).then_some(())?;
        let semaphores =
            self.semaphores.get_or_init(|| self.dump.heap().awaited_semaphores().unwrap_or_default());
        semaphores.iter().find(|of| of.tasks.contains(&task)).map(|of| of.address)
    }
}

/// Returns true for a task without a reference to those that it awaits, by the name of its type: that of
/// `Task.WhenAll`, and that of calls which the runtime suspends.
fn awaits_unreferenced(type_name: &str) -> bool {
    type_name.contains(ALL_PROMISE) || type_name.starts_with(RUNTIME_TASK)
}

/// The tasks that continue with tasks without a reference to them.
struct AwaitedTasks<'f, 'm> {
    finder: &'f Finder<'m>,
    roles: Roles<'m, 'm>,
    /// The task that awaits, and one that it awaits.
    found: Vec<(Address, Address)>,
}

impl HeapVisitor for AwaitedTasks<'_, '_> {
    fn object(&mut self, object: &HeapObject) {
        let role = self.roles.of(object.type_handle);
        let (AsyncRole::Task(fields) | AsyncRole::Method(MethodBox { task: Some(fields), .. })) = &*role
        else {
            return;
        };
        let dump = self.finder.dump;
        let continuation = dump.memory().pointer(object.address.at(fields.continuation)).unwrap_or_default();
        if continuation.is_null() || self.roles.is_completed(object.address, fields) {
            return;
        }
        let continuations = match &*self.roles.of_object(continuation) {
            AsyncRole::List { .. } => self.finder.listed(continuation),
            _ => vec![continuation],
        };
        let room = MAX_AWAITED.saturating_sub(self.found.len());
        let promises = continuations.into_iter().filter_map(|continuation| {
            let task = match &*self.roles.of_object(continuation) {
                AsyncRole::Task(_) => continuation,
                // The delegate by which a task goes on.
                AsyncRole::Delegate => dump.heap().delegate_target(continuation).ok()?,
                _ => return None,
            };
            dump.heap().type_name(task).filter(|name| awaits_unreferenced(name))?;
            Some((task, object.address))
        });
        self.found.extend(promises.take(room));
    }
}
